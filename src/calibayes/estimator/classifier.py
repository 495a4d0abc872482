"""`CalibayesClassifier`: every method behind scikit-learn's interface."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from calibayes.acting import ConformalScore, Threshold
from calibayes.acting.conformal_scores import ScoreName
from calibayes.calibration.measures import Measure
from calibayes.estimator.classifier_network import NetworkChoice
from calibayes.estimator.classifier_settings import OptimizerClass, Weight
from calibayes.estimator.cross_fitting import Tried
from calibayes.estimator.distinct_examples import Floats
from calibayes.estimator.example_uncertainty import Uncertainty
from calibayes.estimator.fit_by_folds import fit_by_folds
from calibayes.estimator.fit_once import fit_once
from calibayes.estimator.guaranteed_sets import decision_threshold, predict_set
from calibayes.estimator.member_predictions import predictive_of
from calibayes.estimator.method_choice import named_method
from calibayes.estimator.set_aside_fit import SetAside, fit_without_some
from calibayes.posterior.abstract_posterior import Posterior
from calibayes.posthoc import Scaling
from calibayes.predictive import Predictive
from calibayes.recipes.choosing import ChoiceMonitor
from calibayes.training import EarlyStopping

__all__ = ["CalibayesClassifier"]


class CalibayesClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""A classifier whose confidence can be trusted, for scikit-learn: by default the best of several, chosen by evidence.

    By default logistic regression, boosted trees (with the extra ``boosting``), networks with averaged weights and averages
    of trees and networks are each cross-fitted: a member is trained without each of five folds, and scored on it. The one with
    the lowest out-of-fold NLL is kept, or the simplest of those that are level with it; its members are an ensemble, with a
    scaling fitted on their out-of-fold predictions. So all rows train, and all rows calibrate.

    Tables are taken as they are: missing values (NaN), categories, texts, booleans and dates in data frames, columns of any
    scale, sparse matrices.

    Args:
        method: a name of `calibayes.METHODS`, in any case, to train no other; ``None`` to choose by evidence. With ``cv=None``
            the default is ``"ca-bnn"``, that of the paper.
        network: ``"auto"`` for one that suits the table; a function of the numbers of features and classes that returns a
            ``torch.nn.Module``; or such a module, which is copied with its weights. A network of one's own gets standardised
            numbers; the method is then ``"ema"`` unless named.
        cv: the number of folds; a splitter of scikit-learn; pairs of row numbers (to train on, to hold out); or ``None`` for
            one training on all rows, without a scaling, as in the paper.
        budget: seconds for trying methods; by default three minutes, seven for 100,000 rows of 50 columns, half an hour at
            most. The first method is always finished, so a time that is long enough gives the same result everywhere.
        scheme: the older name of ``method``.
        method_settings: further settings of the method by name, such as ``{"members": 3}`` for ``"ensemble"``;
            ``calibayes methods`` on the command line lists them.
        lam: $\lambda$, the weight of the calibration term; or, with ``cv=None``, ``"auto"``. By default 1 for ``"ca-fnn"`` and
            ``"ca-bnn"``, and the method's own default for others. It is ignored for ``"fnn"`` and ``"bnn"``.
        beta: $\beta$, the weight of the KL term, for methods that have one; or ``"auto"``, likewise. By default 0.1 for
            ``"bnn"`` and ``"ca-bnn"``, and the method's own default for others.
        prior_std: the standard deviation of the prior; by default 0.3 for ``"bnn"`` and ``"ca-bnn"``, likewise.
        init_std: the standard deviation that the posterior starts with; by default 0.02 for these two, likewise.
        calibration: the calibration measure, such as ``calibayes.MMCE()``; ``calibayes.WMMCE()`` by default.
        epochs: passes over the data; by default at most 200 with early stopping, or 100 with ``cv=None``.
        batch_size: examples a step, at most; by default by the number of rows, or 64 with ``cv=None``.
        learning_rate: the optimiser's; by default one that suits the method, or 0.01 with ``cv=None``, where it falls to zero
            along a cosine.
        optimizer: a class of ``torch.optim``, or a function that is called like one: ``optimizer(parameters, lr=...)``; Adam by
            default. ``"natural-gradient"`` has its own.
        samples: $R$, samples of the weights a step.
        predict_samples: $S$, samples of the weights behind a prediction.
        standardize: subtract each column's mean and divide by its standard deviation, for a network of one's own or
            ``cv=None``; of the two networks of a cross-fit, one does this by itself, and one takes numbers by their quantiles.
        early_stopping: stop when the held-out NLL has not improved for this number of epochs, and use the best epoch's weights;
            or a `calibayes.EarlyStopping`. By default 12, or ``False`` with ``cv=None``, where ``True`` is 10.
        validation_fraction: the share of each class in the validation part with ``cv=None``, for ``early_stopping`` and
            ``"auto"``.
        choose_by: the validation score that ``"auto"`` compares: ``"nll"``, or ``"refined-nll"``, that after temperature
            scaling, if a temperature is fitted afterwards.
        class_weight: a dict from classes to weights, or ``"balanced"`` to give all classes the same weight.
        warm_start: let a further `fit` continue from the last one; only with ``cv=None``.
        device: where to train and predict; by default a GPU if there is one.
        random_state: a number, or a ``numpy.random.RandomState``; ``None`` draws a number from NumPy's global one.
        verbose: show the progress of training on standard error.
        set_aside: a share of the rows, such as 0.2, that nothing in training sees, for `predict_set` and
            `decision_threshold`; rows of one group, and copies of a row, are never on both sides.

    Attributes:
        classes_: the classes, in the order of the columns of `predict_proba`.
        posterior_: the trained `calibayes.Posterior`: an `Ensemble` of the members of all folds, or with ``cv=None`` one.
        method_: the name of the method that was trained or chosen; an average has the names of its parts, joined by ``+``.
        attempts_: what was tried, with out-of-fold NLL and seconds of each.
        out_of_fold_: probabilities of the training rows by members, a scaling and a choice that the row had no part in: scores
            of them are honest, and conservative, since single members predict them. NaN for a row that was never held out.
        scaling_: the `calibayes.posthoc.Scaling` of the ensemble's probabilities; ``None`` with ``cv=None``.
        set_aside_: the numbers, probabilities and class indices of the rows that were set aside; ``None`` without them.
        history_: with ``cv=None``, the `calibayes.History` of the training.
        lam_: $\lambda$, given or chosen; zero for a method without; with ``cv=None``, as all that follow.
        beta_: $\beta$, likewise.
        choices_: the pairs tried for ``"auto"``, as `calibayes.recipes.choosing.Tried` with validation NLL, ECE, accuracy and
            Brier score; empty if there was nothing to choose.
        n_iter_: the number of epochs.
        scaler_: the ``StandardScaler`` of the inputs, or ``None``.
        n_features_in_: the number of columns.
        feature_names_in_: their names, if a data frame has them.

    Examples:
        >>> from sklearn.datasets import load_iris
        >>> x, y = load_iris(return_X_y=True)
        >>> classifier = CalibayesClassifier(random_state=0).fit(x[::2], y[::2])
        >>> classifier.predict_proba(x[1::2]).shape, classifier.score(x[1::2], y[1::2]) > 0.9
        ((75, 3), True)
    """

    classes_: npt.NDArray[Any]
    posterior_: Posterior
    method_: str
    attempts_: list[Tried]
    scaling_: Scaling | None
    scaler_: StandardScaler | None
    set_aside_: SetAside | None
    lam_: float
    beta_: float
    _seed: int
    _fits: int

    def __init__(
        self,
        method: str | None = None,
        network: NetworkChoice = "auto",
        *,
        cv: int | Any | Iterable[Any] | None = 5,
        budget: float | None = None,
        scheme: str | None = None,
        method_settings: Mapping[str, Any] | None = None,
        lam: Weight | None = None,
        beta: Weight | None = None,
        prior_std: float | None = None,
        init_std: float | None = None,
        calibration: Measure | None = None,
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        optimizer: OptimizerClass | None = None,
        samples: int = 1,
        predict_samples: int = 20,
        standardize: bool = True,
        early_stopping: bool | int | EarlyStopping | None = None,
        validation_fraction: float = 0.2,
        choose_by: ChoiceMonitor = "nll",
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        warm_start: bool = False,
        device: str | torch.device | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
        set_aside: float | None = None,
    ) -> None:
        self.method = method
        self.network = network
        self.cv = cv
        self.budget = budget
        self.scheme = scheme
        self.method_settings = method_settings
        self.lam = lam
        self.beta = beta
        self.prior_std = prior_std
        self.init_std = init_std
        self.calibration = calibration
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.optimizer = optimizer
        self.samples = samples
        self.predict_samples = predict_samples
        self.standardize = standardize
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.choose_by = choose_by
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.device = device
        self.random_state = random_state
        self.verbose = verbose
        self.set_aside = set_aside

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = tags.input_tags.categorical = self.cv is not None and isinstance(self.network, str)
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> CalibayesClassifier:  # noqa: N803
        """Train on a table and its classes.

        Args:
            X: one row per example: an array, a data frame, or a sparse matrix.
            y: the class of each: numbers, texts, booleans.
            sample_weight: how many times each row counts; a weight of 2 is exactly the row twice, and one of 0 no row.
            groups: rows of the same group are never in different folds; for ``cv`` of any kind but ``None``.
        """
        method = named_method(self)
        fit = partial(fit_by_folds, self, method) if self.cv is not None else partial(fit_once, self, str(method))
        self.set_aside_ = None
        if self.set_aside is None:
            fit(X, y, sample_weight, groups)
        else:
            fit_without_some(self, fit, X, y, sample_weight, groups)
        return self

    def predict_proba(self, X: Any) -> Floats:  # noqa: N803
        """The probability of each class, shape ``[n, K]``: the mean over members and sampled networks, scaled."""
        probs = self._predictive(X).probs
        scaled: Floats = (probs if self.scaling_ is None else self.scaling_.transform(probs)).cpu().numpy()
        return scaled

    def predict_log_proba(self, X: Any) -> Floats:  # noqa: N803
        """The logarithm of `predict_proba`."""
        logs: Floats = np.log(self.predict_proba(X))
        return logs

    def predict(self, X: Any) -> npt.NDArray[Any]:  # noqa: N803
        """The most probable class of each row."""
        probs = self.predict_proba(X)
        predicted: npt.NDArray[Any] = self.classes_[probs.argmax(1)]
        return predicted

    def predict_uncertainty(self, X: Any) -> Uncertainty:  # noqa: N803
        """The uncertainty of each prediction, and its parts.

        Examples:
            >>> from sklearn.datasets import load_iris
            >>> x, y = load_iris(return_X_y=True)
            >>> uncertainty = CalibayesClassifier("logistic-regression", random_state=0).fit(x, y).predict_uncertainty(x)
            >>> uncertainty.confidence.shape, bool((uncertainty.entropy >= uncertainty.epistemic).all())
            ((150,), True)
        """
        return Uncertainty.of(self._predictive(X), self.scaling_)

    def predict_set(
        self,
        X: Any,  # noqa: N803
        coverage: float = 0.9,
        score: ScoreName | ConformalScore = "lac",
        by_class: bool = False,
    ) -> npt.NDArray[np.bool_]:
        """The classes that each row may have, as booleans ``[n, K]``: sets that hold the true class as often as asked for.

        With ``set_aside`` the coverage is guaranteed, on average over calibration samples. Without it, sets are
        cross-conformal, with the weaker guarantee that an `ActingWarning` states.

        Args:
            X: the rows.
            coverage: how often sets hold the true class.
            score: ``"lac"`` for the smallest sets, ``"aps"`` or ``"raps"`` for larger ones where a row is hard.
            by_class: reach the coverage for each class; needs ``set_aside``.

        Examples:
            >>> from sklearn.datasets import load_iris
            >>> x, y = load_iris(return_X_y=True)
            >>> classifier = CalibayesClassifier("logistic-regression", set_aside=0.3, random_state=0).fit(x[::2], y[::2])
            >>> sets = classifier.predict_set(x[1::2], coverage=0.9)
            >>> sets.shape, float(sets[range(75), y[1::2]].mean()) > 0.85
            ((75, 3), True)
        """
        check_is_fitted(self, "posterior_")
        return predict_set(self, X, coverage, score, by_class)

    def decision_threshold(self, accuracy: float = 0.95, certainty: float = 0.9) -> Threshold:
        """The confidence above which predictions are right as often as asked for, certified on rows that were set aside.

        Args:
            accuracy: to be reached among the rows whose confidence is above the threshold.
            certainty: of the guarantee.
        """
        check_is_fitted(self, "posterior_")
        return decision_threshold(self, accuracy, certainty)

    def _predictive(self, X: Any) -> Predictive:  # noqa: N803
        check_is_fitted(self, "posterior_")
        return predictive_of(self, self.posterior_, X)
