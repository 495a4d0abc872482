"""The classifiers that are compared on texts: functions that train on texts and return a function that predicts others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from benchmarks.tabular_calibration import calibrated_folds
from benchmarks.tabular_methods import penalty
from benchmarks.texts_sets import TextSet
from calibayes.files import train

__all__ = ["EFFORT", "LINEAR", "METHODS", "OURS", "TrainedOnTexts"]

Array = npt.NDArray[Any]
OURS, LINEAR = "calibayes default", "TF-IDF + LogisticRegression"
_PENALTIES = (1.0, 4.0, 16.0, 64.0, 256.0, 1024.0)
_MOST_FEATURES = 50_000
_CHOICE_FOLDS = 3

EFFORT = {
    OURS: 'calibayes.files.train("train.csv", target="label", text="text") with all its defaults',
    LINEAR: f"up to {_MOST_FEATURES:,} single words, or words and pairs of words, with sublinear counts, by "
    f"{_CHOICE_FOLDS}-fold log-loss, as is C: of {', '.join(f'{value:g}' for value in _PENALTIES)} for words, and for pairs of "
    "the one for words and its neighbours; CalibratedClassifierCV of five folds, the best of temperature, sigmoid, isotonic "
    "and none by cross-validated log-loss",
}


class TrainedOnTexts(NamedTuple):
    """A trained classifier of texts.

    Attributes:
        predict: a function from texts to probabilities.
        chosen: what it has chosen.
        choice_seconds: CPU seconds that do not count: those of choosing between ways of calibration.
    """

    predict: Callable[[list[str]], Array]
    chosen: str = ""
    choice_seconds: float = 0.0


def _ours(texts: TextSet, seed: int, small: bool) -> TrainedOnTexts:
    settings: dict[str, Any] = {"epochs": 2} if small else {}
    with TemporaryDirectory() as folder:
        path = Path(folder) / "train.csv"
        pd.DataFrame({"text": texts.train, "label": [texts.classes[each] for each in texts.train_targets]}).to_csv(
            path, index=False
        )
        model = train(path, target="label", text="text", seed=seed, **settings).model
    order = [model.classes.index(name) for name in texts.classes]

    def probs(rows: list[str]) -> Array:
        found: Array = model.calibrated_probs(model.predict({"text": rows})).numpy()[:, order]
        return found

    return TrainedOnTexts(probs, str(model.about["method"]))


def _linear(texts: TextSet, seed: int, small: bool) -> TrainedOnTexts:
    x, y = np.array(texts.train, dtype=object), texts.train_targets
    penalties = _PENALTIES[:2] if small else _PENALTIES
    best, loss = penalty(_vectors(1).fit_transform(x), y, seed, penalties, _CHOICE_FOLDS)
    place, ngrams = penalties.index(best), 1
    near = penalties[max(0, place - 1) : place + 2]
    of_pairs, loss_of_pairs = penalty(_vectors(2).fit_transform(x), y, seed, near, _CHOICE_FOLDS)
    if loss_of_pairs < loss:
        best, ngrams = of_pairs, 2
    folds = calibrated_folds(make_pipeline(_vectors(ngrams), LogisticRegression(C=best, max_iter=1000)), x, y, seed)
    chosen = f"{'words' if ngrams == 1 else 'words and pairs'}, C {best:g}, {folds.calibration}"
    return TrainedOnTexts(lambda rows: folds.predict_proba(np.array(rows, dtype=object)), chosen, folds.choice_seconds)


def _vectors(ngrams: int) -> TfidfVectorizer:
    return TfidfVectorizer(ngram_range=(1, ngrams), sublinear_tf=True, max_features=_MOST_FEATURES)


METHODS: dict[str, Callable[[TextSet, int, bool], TrainedOnTexts]] = {OURS: _ours, LINEAR: _linear}
