"""Prediction sets beside MAPIE and TorchCP, where these are installed.

Their sets may be empty, and ours always hold the most probable class: that lowers the threshold. Thresholds are the same where
no example is so sure that plain sets leave its most probable class out.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from tests.metrics.simulated import classifier

from calibayes.acting import ConformalScore, conformal_sets, set_coverage
from calibayes.acting.prediction_sets import conformal_quantile

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # theirs
PROBS, LABELS = classifier(3000, 0.9, seed=0, classes=6)
OLD, NEW = slice(0, 1000), slice(1000, None)


def peer(name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of their imports
        module: ModuleType = pytest.importorskip(name, reason=f"needs {name.split('.')[0]}", exc_type=ImportError)
    return module


@pytest.fixture
def torchcp(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """TorchCP from a folder of its own: it brings a package `tests`, which would hide ours."""
    monkeypatch.syspath_prepend(str(Path(sys.prefix) / "peers"))
    empty: Any = ModuleType("empty")
    empty.soft_rank = empty.soft_sort = None
    for name in ("torchsort", "torchcp.graph", "torchcp.llm", "torchcp.regression"):  # which need packages that scores do not
        monkeypatch.setitem(sys.modules, name, empty)
    names = ("score", "predictor")
    return SimpleNamespace(**{name: peer(f"torchcp.classification.{name}") for name in names})


class Said(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A fitted classifier whose inputs are its probabilities."""

    def __init__(self) -> None:
        self.classes_ = np.arange(PROBS.shape[1])
        self.n_features_in_ = PROBS.shape[1]

    def fit(self, x: Any, y: Any) -> Said:
        return self

    def predict_proba(self, x: Any) -> Any:
        return x

    def predict(self, x: Any) -> Any:
        return x.argmax(1)

    def __sklearn_is_fitted__(self) -> bool:
        return True


def of_mapie(score: str, level: float) -> torch.Tensor:
    """MAPIE's sets of the new examples."""
    mapie = peer("mapie.classification")
    model = mapie.SplitConformalClassifier(Said(), confidence_level=level, conformity_score=score, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.conformalize(PROBS[OLD].numpy(), LABELS[OLD].numpy())
        return torch.from_numpy(np.asarray(model.predict_set(PROBS[NEW].numpy())[1])[..., 0])


@pytest.mark.parametrize("level", [0.8, 0.9, 0.97])
def test_lac_and_top_k_sets_equal_those_of_mapie(level: float) -> None:
    for theirs, ours in (("lac", "lac"), ("top_k", "top-k")):
        sets = conformal_sets(PROBS[OLD], LABELS[OLD], level, ours).predict(PROBS[NEW])  # type: ignore[arg-type]
        assert torch.equal(sets, of_mapie(theirs, level))


def test_aps_sets_are_no_larger_than_those_of_mapie_and_cover_as_much_as_asked() -> None:
    theirs = set_coverage(of_mapie("aps", 0.9), LABELS[NEW])
    ours = set_coverage(conformal_sets(PROBS[OLD], LABELS[OLD], 0.9, "aps", seed=0).predict(PROBS[NEW]), LABELS[NEW])
    assert ours.coverage_interval.low < 0.9 < ours.coverage_interval.high + 0.01
    assert ours.mean_size <= theirs.mean_size + 0.05


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lac", "aps", "raps", "top-k"])
def test_scores_and_thresholds_equal_those_of_torchcp(name: Any, torchcp: SimpleNamespace) -> None:
    scores, predictor = torchcp.score, torchcp.predictor
    made = {
        "lac": lambda: scores.LAC(score_type="identity"),
        "aps": lambda: scores.APS(score_type="identity", randomized=False),
        "raps": lambda: scores.RAPS(score_type="identity", randomized=False, penalty=0.1, kreg=1),
        "top-k": lambda: scores.TOPK(score_type="identity", randomized=False),
    }[name]()
    theirs, ours = made(PROBS), ConformalScore(name).of_classes(PROBS)
    best = PROBS.argmax(-1, keepdim=True)
    # Everything but the most probable class, which is always in our sets.
    assert torch.allclose(ours.scatter(-1, best, 0.0), theirs.scatter(-1, best, 0.0).double(), atol=1e-9)
    split = predictor.SplitPredictor(made, alpha=0.1, device=torch.device("cpu"))
    split.calculate_threshold(PROBS[OLD], LABELS[OLD])
    assert conformal_quantile(split.cal_scores.double(), 0.9) == pytest.approx(float(split.q_hat), abs=1e-9)
    with_best = split.predict_with_logits(PROBS[NEW]).bool().scatter(-1, best[NEW], True)
    sets = conformal_sets(PROBS[OLD], LABELS[OLD], 0.9, name).predict(PROBS[NEW])
    assert bool((sets <= with_best).all())
    if name in ("lac", "top-k"):
        assert torch.equal(sets, with_best)


@pytest.mark.slow
def test_thresholds_of_classes_equal_those_of_torchcp(torchcp: SimpleNamespace) -> None:
    scores, predictor = torchcp.score, torchcp.predictor
    made = predictor.ClassConditionalPredictor(scores.LAC(score_type="identity"), alpha=0.1, device=torch.device("cpu"))
    made.calculate_threshold(PROBS[OLD], LABELS[OLD])
    ours = conformal_sets(PROBS[OLD], LABELS[OLD], 0.9, per="class")
    assert ours.thresholds.tolist() == pytest.approx(made.q_hat.double().tolist(), abs=1e-6)  # in float32
