"""`CalibayesClassifier`: every method behind scikit-learn's interface."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from calibayes.calibration.measures import Measure
from calibayes.errors import InvalidArgumentError
from calibayes.estimator.classifier_network import NetworkChoice
from calibayes.estimator.classifier_settings import ClassifierSettings, OptimizerClass, Weight
from calibayes.estimator.column_scaling import fitted_scaler, network_inputs
from calibayes.estimator.distinct_examples import Examples, Floats, distinct
from calibayes.estimator.example_uncertainty import Uncertainty
from calibayes.estimator.learning import Learner
from calibayes.posterior.abstract_posterior import Posterior
from calibayes.predictive import Predictive, predict, samples_for
from calibayes.recipes.choosing import ChoiceMonitor
from calibayes.training import EarlyStopping

__all__ = ["CalibayesClassifier"]

_LARGEST_SEED = 2**31 - 1


class CalibayesClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""A classifier whose confidence can be trusted, for scikit-learn: any method of `calibayes.METHODS` on any network.

    Args:
        scheme: the method: ``"fnn"``, ``"bnn"``, ``"ca-fnn"``, ``"ca-bnn"``, ``"ensemble"``, ``"mixture"`` or any other of
            `calibayes.METHODS`.
        network: ``"auto"`` for a perceptron with two hidden layers sized by the number of rows; a function of the numbers of
            features and classes that returns a ``torch.nn.Module``; or such a module, which is copied with its weights (in an
            ensemble only the first member keeps them). With ``"mc-dropout"``, the perceptron has a dropout layer with a
            probability of 0.1 before its last layer.
        method_settings: further settings of the method by name, such as ``{"members": 3}`` for ``"ensemble"``;
            ``calibayes methods`` on the command line lists them.
        lam: $\lambda$, the weight of the calibration term; or ``"auto"``. By default 1 for ``"ca-fnn"`` and ``"ca-bnn"``, and
            the method's own default for others. It is ignored for ``"fnn"`` and ``"bnn"``.
        beta: $\beta$, the weight of the KL term, for methods that have one; or ``"auto"``. By default 0.1 for ``"bnn"`` and
            ``"ca-bnn"``, and the method's own default for others.
        prior_std: the standard deviation of the prior; by default 0.3 for ``"bnn"`` and ``"ca-bnn"``, likewise.
        init_std: the standard deviation that the posterior starts with; by default 0.02 for these two, likewise.
        calibration: the calibration measure, such as ``calibayes.MMCE()``; ``calibayes.WMMCE()`` by default.
        epochs: passes over the data.
        batch_size: examples a step, at most.
        learning_rate: the optimiser's at the start; it falls to zero along a cosine.
        optimizer: a class of ``torch.optim``, or a function that is called like one: ``optimizer(parameters, lr=...)``.
            ``"natural-gradient"`` has its own.
        samples: $R$, samples of the weights a step.
        predict_samples: $S$, samples of the weights behind a prediction.
        standardize: subtract each column's mean and divide by its standard deviation.
        early_stopping: stop when the NLL of a validation part has not improved for 10 epochs (``True``) or this number, and
            use the best epoch's weights; or a `calibayes.EarlyStopping`.
        validation_fraction: the share of each class in the validation part, for ``early_stopping`` and ``"auto"``.
        choose_by: the validation score that ``"auto"`` compares: ``"nll"``, or ``"refined-nll"``, that after temperature
            scaling, if a temperature is fitted afterwards.
        class_weight: a dict from classes to weights, or ``"balanced"`` to give all classes the same weight.
        warm_start: let a further `fit` continue from the last one.
        device: where to train and predict; by default a GPU if there is one.
        random_state: a number, or a ``numpy.random.RandomState``; ``None`` draws a number from NumPy's global one.
        verbose: show the progress of training on standard error.

    Attributes:
        classes_: the classes, in the order of the columns of `predict_proba`.
        posterior_: the trained `calibayes.Posterior`, of standardised inputs.
        history_: the `calibayes.History` of the training.
        lam_: $\lambda$, given or chosen; zero for a method without.
        beta_: $\beta$, likewise.
        choices_: the pairs tried for ``"auto"``, as `calibayes.recipes.choosing.Tried` with validation NLL, ECE, accuracy and
            Brier score; empty if there was nothing to choose.
        scaler_: the ``StandardScaler`` of the inputs, or ``None``.
        n_iter_: the number of epochs.
        n_features_in_: the number of columns.
        feature_names_in_: their names, if a data frame has them.

    Examples:
        >>> from sklearn.datasets import load_iris
        >>> x, y = load_iris(return_X_y=True)
        >>> classifier = CalibayesClassifier(epochs=60, random_state=0).fit(x[::2], y[::2])
        >>> classifier.predict_proba(x[1::2]).shape, classifier.score(x[1::2], y[1::2]) > 0.9
        ((75, 3), True)
    """

    classes_: npt.NDArray[Any]
    posterior_: Posterior
    scaler_: StandardScaler | None
    lam_: float
    beta_: float
    _seed: int
    _fits: int

    def __init__(
        self,
        scheme: str = "ca-bnn",
        network: NetworkChoice = "auto",
        *,
        method_settings: Mapping[str, Any] | None = None,
        lam: Weight | None = None,
        beta: Weight | None = None,
        prior_std: float | None = None,
        init_std: float | None = None,
        calibration: Measure | None = None,
        epochs: int = 100,
        batch_size: int = 64,
        learning_rate: float = 0.01,
        optimizer: OptimizerClass = torch.optim.Adam,
        samples: int = 1,
        predict_samples: int = 20,
        standardize: bool = True,
        early_stopping: bool | int | EarlyStopping = False,
        validation_fraction: float = 0.2,
        choose_by: ChoiceMonitor = "nll",
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        warm_start: bool = False,
        device: str | torch.device | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        self.scheme = scheme
        self.network = network
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> CalibayesClassifier:  # noqa: N803
        """Train on a table and its classes.

        Args:
            X: numbers, one row per example; an array or a data frame.
            y: the class of each: numbers, texts, booleans.
            sample_weight: how many times each row counts; a weight of 2 is exactly the row twice, and one of 0 no row.
        """
        settings = ClassifierSettings(**{field.name: getattr(self, field.name) for field in fields(ClassifierSettings)})
        continues = bool(self.warm_start) and hasattr(self, "posterior_")
        standardize = self.scaler_ is not None if continues else self.standardize
        x, y = validate_data(self, X, y, dtype=np.float64 if standardize else np.float32, reset=not continues)
        check_classification_targets(y)
        weights = _weights(sample_weight, x)
        classes, labels = np.unique(y[weights > 0], return_inverse=True)
        if len(classes) < 2:
            raise InvalidArgumentError(
                f"Expected at least two classes in `y`, but got one class, {classes.tolist()[0]!r}, in {len(labels)} samples."
            )
        examples = distinct(x[weights > 0], labels.reshape(-1), weights[weights > 0])
        examples = examples._replace(weights=examples.counts * self._class_weights(examples, classes)[examples.y])
        if continues:
            if not np.array_equal(classes, self.classes_):
                raise InvalidArgumentError(
                    f"With `warm_start`, `y` must have the classes that it had at first, {self.classes_.tolist()}, but it has "
                    f"{classes.tolist()}. Use `warm_start=False` to start again."
                )
            settings = settings.with_known(self.lam_, self.beta_)
            scaler, seed, fits, start = self.scaler_, self._seed, self._fits + 1, self.posterior_
        else:
            scaler = fitted_scaler(examples.x, examples.counts) if standardize else None
            seed, fits, start = int(check_random_state(self.random_state).randint(_LARGEST_SEED)), 0, None
        examples = examples._replace(x=network_inputs(examples.x, scaler))
        learned = Learner(settings, len(classes), seed, fits, start).learn(examples)
        self.classes_, self.scaler_, self._seed, self._fits = classes, scaler, seed, fits
        self.posterior_, self.history_ = learned.posterior, learned.history
        self.lam_, self.beta_, self.choices_ = learned.lam, learned.beta, list(learned.tried)
        self.n_iter_ = len(learned.history.epochs)
        return self

    def predict_proba(self, X: Any) -> Floats:  # noqa: N803
        """The probability of each class, shape ``[n, K]``: the mean over sampled networks."""
        probs: Floats = self._predictive(X).probs.cpu().numpy()
        return probs

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
            >>> uncertainty = CalibayesClassifier(epochs=5, random_state=0).fit(x, y).predict_uncertainty(x)
            >>> uncertainty.confidence.shape, bool((uncertainty.entropy >= uncertainty.epistemic).all())
            ((150,), True)
        """
        return Uncertainty.of(self._predictive(X))

    def _predictive(self, X: Any) -> Predictive:  # noqa: N803
        check_is_fitted(self)
        x = validate_data(self, X, dtype=np.float32 if self.scaler_ is None else np.float64, reset=False)
        samples = samples_for(self.posterior_, self.predict_samples)
        return predict(self.posterior_, network_inputs(x, self.scaler_), samples=samples, seed=self._seed, dtype=torch.float64)

    def _class_weights(self, examples: Examples, classes: npt.NDArray[Any]) -> Floats:
        if self.class_weight == "balanced":
            of_class = np.bincount(examples.y, weights=examples.counts)
            return np.asarray(of_class.sum() / (len(classes) * of_class))
        weights = np.asarray(compute_class_weight(self.class_weight, classes=classes, y=classes[examples.y]), dtype=np.float64)
        if not ((weights >= 0) & np.isfinite(weights)).all() or not weights.any():
            raise InvalidArgumentError(
                "Expected `class_weight` to be non-negative finite numbers, some of them positive, but got "
                f"{dict(zip(classes.tolist(), weights.tolist(), strict=True))!r}."
            )
        return weights


def _weights(sample_weight: Any, x: Floats) -> Floats:
    weights: Floats = _check_sample_weight(sample_weight, x, dtype=np.float64)
    if (weights < 0).any():
        place = int(np.flatnonzero(weights < 0)[0])
        raise InvalidArgumentError(f"Expected no negative `sample_weight`, but number {place} is {weights[place]}.")
    if not weights.any():
        raise InvalidArgumentError("Expected some `sample_weight` to be positive, but each weight is zero.")
    return weights
