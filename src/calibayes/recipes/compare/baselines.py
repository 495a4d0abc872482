"""The baselines: logistic regression and boosted trees of scikit-learn, calibrated by cross-validation.

A baseline sees what a network sees: it is fitted on the training examples with the same seeds, and predicts the validation and
test examples. `sklearn.calibration.CalibratedClassifierCV` splits the training examples into five folds; each fold calibrates
the classifier that was fitted on the others, and the five are averaged. Which calibration (sigmoid, isotonic, or, from
scikit-learn 1.8 on, temperature) is decided by cross-validation on out-of-fold scores of the training examples, as is the
penalty of the logistic regression.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibayes.data import Splits
from calibayes.recipes.compare.comparison_settings import BASELINES, Settings
from calibayes.recipes.compare.comparison_task import PlainInputs, Task

__all__ = ["BaselineChoice", "fit_baseline", "inputs_digest", "plain_inputs", "suitable_baselines"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_FOLDS = 5
_ENOUGH = 2 * _FOLDS  # examples of the rarest class, for a choice between calibrations
_LEAST = 1e-6  # a smaller probability is raised to this: isotonic regression gives zeros, as bad as certain to be wrong
_PENALTIES = {"table": (0.01, 0.1, 1.0, 10.0), "texts": (1.0, 10.0, 100.0), "pixels": (0.001, 0.01, 0.1, 1.0)}
_MOST_PIXELS = 20_000_000  # of all training images together: a minute or so a seed


class BaselineChoice(NamedTuple):
    """What cross-validation on the training examples decided about a baseline."""

    penalty: float  # C of the logistic regression; 0 for trees
    calibration: str  # sigmoid, isotonic, temperature, or none where a class has a single example


def plain_inputs(task: Task, settings: Settings, splits: Splits) -> PlainInputs | None:
    """The inputs of the baselines, or ``None`` if the task has none for them."""
    if task.plain_inputs is not None:
        return _own_inputs(task, settings)
    parts = [part[0] for part in (splits.train, splits.validation, splits.test)]
    if parts[0].ndim == 2 and parts[0].is_floating_point():
        train, validation, test = (part.numpy() for part in parts)
        return PlainInputs(kind="table", train=train, validation=validation, test=test)
    if parts[0].ndim == 4:
        scale = 1.0 if parts[0].is_floating_point() else 255.0
        train, validation, test = (part.contiguous().flatten(1).numpy() / np.float32(scale) for part in parts)
        return PlainInputs(kind="pixels", train=train, validation=validation, test=test)
    return None


@lru_cache(maxsize=1)
def _own_inputs(task: Task, settings: Settings) -> PlainInputs:
    assert task.plain_inputs is not None
    return task.plain_inputs(settings.train, settings.validation, settings.test)


def suitable_baselines(
    inputs: PlainInputs | None, wanted: Sequence[str], examples: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The baselines that suit the inputs, and for each other one why it is left out."""
    left_out: dict[str, str] = {}
    if inputs is None:
        left_out = dict.fromkeys(BASELINES, f"scikit-learn has no form of these {examples} to learn from")
    elif inputs.kind != "table":
        left_out["boosted-trees"] = f"they are for tables, not for {examples}"
    if inputs is not None and inputs.kind == "pixels" and inputs.train.size > _MOST_PIXELS:
        left_out["logistic-regression"] = f"{inputs.train.size:,} pixels take it too long"
    notes = [f"Left out: {BASELINES[name]}, because {left_out[name]}." for name in wanted if name in left_out]
    return tuple(name for name in wanted if name not in left_out), tuple(notes)


def inputs_digest(inputs: PlainInputs, *parts: str) -> str:
    """A checksum of parts of the inputs."""
    total = hashlib.sha256(repr((inputs.kind, inputs.categorical)).encode())
    for part in (getattr(inputs, name) for name in parts):
        if inputs.kind == "texts":
            total.update("\n".join("\t".join(words) for words in part).encode(errors="replace"))
        else:
            total.update(repr(part.shape).encode() + np.ascontiguousarray(part).tobytes())
    return total.hexdigest()


def fit_baseline(
    name: str,
    inputs: PlainInputs,
    targets: Ints,
    classes: int,
    seed: int,
    *,
    part: str,
    choice: BaselineChoice | None = None,
) -> tuple[NDArray[np.float32], BaselineChoice]:
    """Fit a baseline on the training examples, and return its probabilities of another part and what was chosen.

    Args:
        name: of `BASELINES`.
        inputs: of all parts.
        targets: the classes of the training examples.
        classes: their number.
        seed: of the folds and of the trees.
        part: "validation" or "test".
        choice: what was chosen before with the same arguments, which saves finding out again.
    """
    with _one_thread_without_remarks():
        train, other = _prepared(inputs, part)
        choice = _chosen(name, inputs, train, targets, seed) if choice is None else choice
        model = _classifier(name, inputs, choice.penalty, seed)
        if choice.calibration != "none":
            model = _calibrated(model, choice.calibration, _folds(targets, seed))
        model.fit(train, targets)
        probs = np.full((other.shape[0], classes), _LEAST)
        probs[:, model.classes_] = np.maximum(model.predict_proba(other), _LEAST)
    return (probs / probs.sum(1, keepdims=True)).astype(np.float32), choice


def _chosen(name: str, inputs: PlainInputs, train: Any, targets: Ints, seed: int) -> BaselineChoice:
    """The penalty and the calibration with the lowest NLL in cross-validation on the training examples."""
    from sklearn.model_selection import cross_val_predict

    rarest = int(np.bincount(targets)[np.unique(targets)].min())
    linear = name == "logistic-regression"
    if rarest < 2:
        return BaselineChoice(1.0 if linear else 0.0, "none")
    folds = _folds(targets, seed)
    penalty = _penalty(inputs, train, targets, folds) if linear else 0.0
    calibrations = _calibrations()
    if rarest < _ENOUGH:
        return BaselineChoice(penalty, calibrations[0])
    model = _classifier(name, inputs, penalty, seed)
    scores = cross_val_predict(model, train, targets, cv=folds, method="decision_function")
    scores = scores[:, None] if scores.ndim == 1 else scores
    losses = {}
    for calibration in calibrations:
        calibrated = _calibrated(_passing_on(scores, targets), calibration, _FOLDS)
        probs = cross_val_predict(calibrated, scores, targets, cv=_folds(targets, seed + 1), method="predict_proba")
        losses[calibration] = _nll(probs, np.unique(targets, return_inverse=True)[1])
    return BaselineChoice(penalty, min(calibrations, key=lambda each: losses[each]))


def _penalty(inputs: PlainInputs, train: Any, targets: Ints, folds: Any) -> float:
    """The inverse strength of the penalty with the lowest NLL on the first fold, fitted on the others."""
    own, held_out = next(folds.split(np.zeros(len(targets)), targets))
    losses = {}
    for penalty in _PENALTIES[inputs.kind]:
        model = _classifier("logistic-regression", inputs, penalty, 0).fit(train[own], targets[own])
        places = np.searchsorted(model.classes_, targets[held_out])
        losses[penalty] = _nll(model.predict_proba(train[held_out]), places)
    return min(losses, key=lambda each: losses[each])


def _classifier(name: str, inputs: PlainInputs, penalty: float, seed: int) -> Any:
    """The classifier before calibration: scikit-learn's defaults, but for the penalty."""
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    if name == "boosted-trees":
        return HistGradientBoostingClassifier(categorical_features=list(inputs.categorical), random_state=seed)
    linear = LogisticRegression(C=penalty)
    if inputs.kind != "table":
        return linear
    numbers = [place for place in range(inputs.train.shape[1]) if place not in inputs.categorical]
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(add_indicator=True, keep_empty_features=True), StandardScaler()), numbers),
        (OneHotEncoder(handle_unknown="ignore"), list(inputs.categorical)),
    )
    return make_pipeline(columns, linear)


def _prepared(inputs: PlainInputs, part: str) -> tuple[Any, Any]:
    """The training examples and those of another part; of texts the TF-IDF of words and pairs of words."""
    other = getattr(inputs, part)
    if inputs.kind != "texts":
        return inputs.train, other
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectors = TfidfVectorizer(analyzer=_words_and_pairs, sublinear_tf=True, min_df=2)
    return vectors.fit_transform(inputs.train), vectors.transform(other)


def _words_and_pairs(words: Sequence[str]) -> list[str]:
    return [*words, *(f"{first} {second}" for first, second in pairwise(words))]


def _calibrated(model: Any, calibration: str, folds: Any) -> Any:
    from sklearn.calibration import CalibratedClassifierCV

    return CalibratedClassifierCV(model, method=calibration, cv=folds)


def _calibrations() -> tuple[str, ...]:
    """The calibrations that scikit-learn has, from the simplest on."""
    from sklearn import __version__

    version = tuple(map(int, __version__.split(".")[:2]))
    return ("sigmoid", "temperature", "isotonic") if version >= (1, 8) else ("sigmoid", "isotonic")


def _folds(targets: Ints, seed: int) -> Any:
    from sklearn.model_selection import StratifiedKFold

    rarest = int(np.bincount(targets)[np.unique(targets)].min())
    return StratifiedKFold(max(2, min(_FOLDS, rarest)), shuffle=True, random_state=seed)


def _passing_on(scores: Floats, targets: Ints) -> Any:
    """A fitted classifier whose scores are its inputs: what is there of each calibration is then cheap to compare."""
    from sklearn.frozen import FrozenEstimator
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression()
    model.coef_, model.classes_ = np.eye(scores.shape[1]), np.unique(targets)
    model.intercept_, model.n_features_in_ = np.zeros(scores.shape[1]), scores.shape[1]
    return FrozenEstimator(model)


def _nll(probs: Floats, places: Ints) -> float:
    return float(-np.log(np.maximum(probs[np.arange(len(places)), places], _LEAST)).mean())


@contextmanager
def _one_thread_without_remarks() -> Iterator[None]:
    """Use one thread, as trainings do; a fit that stops before it converges is as good as its validation NLL says."""
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield
