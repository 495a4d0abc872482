"""Calibration of any scikit-learn classifier by cross-fitting, every row used for both."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, check_random_state, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    _check_y,
    check_consistent_length,
    check_is_fitted,
    has_fit_parameter,
)

from calibayes.checks import positive_integer
from calibayes.errors import InvalidArgumentError
from calibayes.posthoc.abstract_scaling import Scaling
from calibayes.posthoc.auto_scaling import ScalingMethod, scaling_named
from calibayes.posthoc.ensemble_scaling import ensemble_scaling
from calibayes.posthoc.folds import Fold, Indices, complete_rounds, indexable_rows, row_keys, stratified_folds

__all__ = ["CalibratedClassifier", "calibrate"]

Floats = npt.NDArray[np.float64]
_LARGEST_SEED = 2**31 - 1


class CalibratedClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A scikit-learn classifier with calibrated probabilities, trained and calibrated on the same rows by cross-fitting.

    For each fold a copy of the classifier is trained on the other rows. Predictions are the average of all copies, scaled;
    the scaling is fitted on the predictions of rows by copies that have not seen them (`ensemble_scaling`).

    Args:
        estimator: a classifier with ``predict_proba`` or ``decision_function``.
        method: the scaling: ``"auto"`` chooses by cross-validation (`AutoScaling`), or a name that `AutoScaling` knows, or a
            class or function that makes a `Scaling`.
        cv: the number of folds; or a splitter of scikit-learn or pairs of row numbers (train, held out), which may repeat; or
            ``"prefit"``: the classifier is trained already, and `fit` only fits the scaling, on rows it has not seen.
        repeats: how often folds are drawn, each time with as many further copies; by default 2, which tells how far copies
            differ. Only for a number of folds: a splitter repeats by itself.
        n_jobs: how many copies are trained at once, as in joblib.
        random_state: of the folds; the classifier's own is its own.

    Attributes:
        classes_: the labels.
        estimators_: the trained copies.
        scaling_: the fitted `Scaling`.

    Examples:
        >>> from sklearn.datasets import load_wine
        >>> from sklearn.naive_bayes import GaussianNB
        >>> x, y = load_wine(return_X_y=True)
        >>> model = CalibratedClassifier(GaussianNB(), method="temperature").fit(x[::2], y[::2])
        >>> len(model.estimators_), model.predict_proba(x[1::2]).shape, model.score(x[1::2], y[1::2]) > 0.9
        (10, (89, 3), True)
    """

    classes_: npt.NDArray[Any]
    estimators_: list[Any]
    scaling_: Scaling

    def __init__(
        self,
        estimator: Any,
        *,
        method: ScalingMethod = "auto",
        cv: Any = 5,
        repeats: int | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.cv = cv
        self.repeats = repeats
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> CalibratedClassifier:  # noqa: N803
        """Train the copies and fit the scaling.

        Args:
            X: rows as the classifier takes them: an array, a data frame, a sparse matrix, a list.
            y: the class of each: numbers, texts, booleans.
            sample_weight: how many times each row counts, for the classifier (if it takes weights) and the scaling.
            groups: rows of one group are never on both sides of a fold; passed to the splitter if ``cv`` is one.
        """
        scaling_named(self.method)  # an unknown name is refused before anything is trained
        X, y = indexable_rows(X), _check_y(y)  # noqa: N806
        check_classification_targets(y)
        check_consistent_length(X, y, groups)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        counted = np.arange(len(y)) if sample_weight is None else np.flatnonzero(sample_weight > 0)
        if isinstance(self.cv, str):
            return self._fit_prefit(X, y, sample_weight)
        self.classes_ = np.unique(y[counted])
        if len(self.classes_) < 2:
            raise InvalidArgumentError(
                f"Expected at least two classes in `y`, but got {len(self.classes_)} class in {len(counted)} samples."
            )
        labels, keys = np.searchsorted(self.classes_, y), row_keys(X)
        folds = self._folds(X, y, labels, keys, sample_weight, groups, counted)
        weights = self._weights_for_members(sample_weight)
        members = Parallel(n_jobs=self.n_jobs)(
            delayed(_trained)(self.estimator, _safe_indexing(X, rows), y[rows], None if weights is None else weights[rows])
            for rows, _ in folds
        )
        self.estimators_ = list(members)
        self._take_features()
        # The same row twice is one example that counts for two, whatever scaling is fitted.
        pairs = np.stack([keys, labels.astype(np.uint64)])[:, counted]
        copies, first, example = np.unique(pairs, axis=1, return_index=True, return_inverse=True)
        counts = np.bincount(example.reshape(-1), None if sample_weight is None else sample_weight[counted], copies.shape[1])
        probs, covered = self._out_of_fold(X, folds, counted[first])
        self.scaling_ = ensemble_scaling(
            probs, labels[counted[first]][covered], members=len(folds), method=self.method, weights=counts[covered]
        )
        return self

    def predict_proba(self, X: Any) -> Floats:  # noqa: N803
        """The calibrated probability of each class, shape ``[n, K]``."""
        check_is_fitted(self)
        probs: Floats = np.mean([self._member_probs(member, X) for member in self.estimators_], axis=0)
        scaled: Floats = self.scaling_.transform(probs)
        return scaled

    def predict_log_proba(self, X: Any) -> Floats:  # noqa: N803
        """The logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            logs: Floats = np.log(self.predict_proba(X))
        return logs

    def predict(self, X: Any) -> npt.NDArray[Any]:  # noqa: N803
        """The most probable class of each row."""
        decisions = self.predict_proba(X).argmax(1)
        labels: npt.NDArray[Any] = self.classes_[decisions]
        return labels

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags

    def _fit_prefit(self, x: Any, y: npt.NDArray[Any], sample_weight: Floats | None) -> CalibratedClassifier:
        if self.cv != "prefit" or self.repeats is not None:
            raise InvalidArgumentError(
                f"Expected `cv` to be a number, a splitter, pairs of rows, or 'prefit' without `repeats`, but got {self.cv!r} "
                f"and repeats={self.repeats}."
            )
        check_is_fitted(self.estimator)
        self.classes_ = self.estimator.classes_
        if unknown := sorted(set(y.tolist()) - set(self.classes_.tolist())):
            raise InvalidArgumentError(f"The classifier was not trained on class {unknown[0]!r} of `y`. Leave its rows out.")
        self.estimators_ = [self.estimator]
        self._take_features()
        labels = np.searchsorted(self.classes_, y)
        probs = self._member_probs(self.estimator, x)
        self.scaling_ = scaling_named(self.method).fit(probs, labels, weights=sample_weight)
        return self

    def _folds(
        self,
        x: Any,
        y: npt.NDArray[Any],
        labels: Indices,
        keys: npt.NDArray[np.uint64],
        weights: Floats | None,
        groups: Any,
        counted: Indices,
    ) -> list[Fold]:
        """The folds of the rows that count."""
        if isinstance(self.cv, int | np.integer):
            number, repeats = positive_integer("cv", self.cv), positive_integer("repeats", self.repeats or 2)
            if number < 2:
                raise InvalidArgumentError(f"Expected at least 2 folds, but got cv={number}.")
            generator = np.random.default_rng(check_random_state(self.random_state).randint(_LARGEST_SEED))
            together = np.unique(keys if groups is None else np.asarray(groups), return_inverse=True)[1][counted]
            amounts = None if weights is None else weights[counted]
            drawn = [stratified_folds(together, labels[counted], number, generator, amounts) for _ in range(repeats)]
            return [(counted[rows], counted[held_out]) for folds in drawn for rows, held_out in folds]
        if self.repeats not in (None, 1):
            raise InvalidArgumentError(
                f"Expected `repeats` with a number of folds only, but got repeats={self.repeats} with a splitter. "
                "Use one that repeats, such as RepeatedStratifiedKFold."
            )
        split = check_cv(self.cv, y, classifier=True).split(x, y, groups)
        return [(np.intersect1d(rows, counted), np.intersect1d(held_out, counted)) for rows, held_out in split]

    def _weights_for_members(self, sample_weight: Floats | None) -> Floats | None:
        if sample_weight is None or has_fit_parameter(self.estimator, "sample_weight"):
            return sample_weight
        warnings.warn(
            f"{type(self.estimator).__name__} takes no sample_weight: the weights count for the scaling only.", stacklevel=3
        )
        return None

    def _out_of_fold(self, x: Any, folds: list[Fold], examples: Indices) -> tuple[Floats, Indices]:
        """Probabilities ``[R, m, K]`` of examples by members that have not seen them, and which examples these are."""
        rounds = complete_rounds(folds)
        if any(len(each.rows) != len(rounds[0].rows) or (each.rows != rounds[0].rows).any() for each in rounds):
            rounds = rounds[:1]  # rows that only some rounds hold out have no average that resembles the ensemble
        covered = np.flatnonzero(np.isin(examples, rounds[0].rows))
        place = {int(row): index for index, row in enumerate(examples[covered])}
        probs = np.zeros((len(rounds), len(covered), len(self.classes_)))
        for out, each in zip(probs, rounds, strict=True):
            for number in each.numbers:
                rows = np.intersect1d(folds[number][1], examples)
                if len(rows):
                    out[[place[int(row)] for row in rows]] = self._member_probs(
                        self.estimators_[number], _safe_indexing(x, rows)
                    )
        return probs, covered

    def _member_probs(self, member: Any, x: Any) -> Floats:
        """One member's probabilities, ``[n, K]``, also of classes that it has not seen."""
        if hasattr(member, "predict_proba"):
            probs = np.asarray(member.predict_proba(x), dtype=np.float64)
        else:
            probs = _softmax(np.asarray(member.decision_function(x), dtype=np.float64))
        if len(member.classes_) == len(self.classes_):
            return probs
        whole = np.full((len(probs), len(self.classes_)), _UNSEEN)
        whole[:, np.searchsorted(self.classes_, member.classes_)] = probs
        scaled: Floats = whole / whole.sum(1, keepdims=True)
        return scaled

    def _take_features(self) -> None:
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimators_[0], name):
                setattr(self, name, getattr(self.estimators_[0], name))


_UNSEEN = 1e-3  # the probability of a class of which a member has seen no example


def calibrate(
    estimator: Any,
    method: ScalingMethod = "auto",
    cv: int | Literal["prefit"] | Any = 5,
    *,
    repeats: int | None = None,
    n_jobs: int | None = None,
    random_state: int | np.random.RandomState | None = 0,
) -> CalibratedClassifier:
    """Make any scikit-learn classifier a calibrated one, to be fitted as usual; see `CalibratedClassifier`.

    Args:
        estimator: a classifier with ``predict_proba`` or ``decision_function``.
        method: the scaling, by default chosen by cross-validation.
        cv: the number of folds, a splitter, or ``"prefit"``.
        repeats: how often folds are drawn.
        n_jobs: how many copies are trained at once.
        random_state: of the folds.

    Examples:
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> x, y = load_iris(return_X_y=True)
        >>> model = calibrate(DecisionTreeClassifier(max_depth=3, random_state=0), method="temperature").fit(x, y)
        >>> model.predict(x[:2]).tolist()
        [0, 0]
    """
    return CalibratedClassifier(estimator, method=method, cv=cv, repeats=repeats, n_jobs=n_jobs, random_state=random_state)


def _trained(estimator: Any, x: Any, y: npt.NDArray[Any], weights: Floats | None) -> Any:
    member = clone(estimator)
    return member.fit(x, y) if weights is None else member.fit(x, y, sample_weight=weights)


def _softmax(scores: Floats) -> Floats:
    """Probabilities from the scores of ``decision_function``: one column for two classes."""
    if scores.ndim == 1:
        scores = np.stack([np.zeros_like(scores), scores], axis=1)
    powers = np.exp(scores - scores.max(1, keepdims=True))
    probs: Floats = powers / powers.sum(1, keepdims=True)
    return probs
