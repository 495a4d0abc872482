"""What is measured on outsiders, selected answers and shifted inputs, and that nothing is chosen on test data."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor, nn

import calibayes as cb
from calibayes.data import Splits
from reproduction.followup_scores import COVERAGES, KNOWN_SOURCE, OutsiderScorer
from reproduction.followup_texts import without_words
from reproduction.followup_training import FollowUpData, FollowUpTraining, train_and_score_outsiders


def blobs(n: int, seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(n) % 3
    return torch.eye(3)[y] * 2 + torch.randn(n, 3, generator=generator), y


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 3))


SPLITS = Splits(train=blobs(300, 0), validation=blobs(400, 1), test=blobs(600, 2), classes=("a", "b", "c"))
FAR = -4 + torch.randn(200, 3, generator=torch.Generator().manual_seed(3))
DATA = FollowUpData(
    splits=SPLITS,
    outside=FAR[:100],
    outsiders={KNOWN_SOURCE: FAR[100:]},
    shifted={"none": SPLITS.test, "halved": (SPLITS.test[0] / 2, SPLITS.test[1])},
)
SETTINGS = {"optimizer": "adam", "learning_rate": 0.01, "batch_size": 32, "epochs": 15, "predictive_samples": 3}


@pytest.fixture(scope="module")
def posterior() -> cb.Point:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        made = cb.Point(network())
    adam = partial(torch.optim.Adam, lr=0.01)
    cb.fit(made, SPLITS.train, cb.Objective(lam=0), optimizer=adam, epochs=15, batch_size=32, progress=False)
    return made


@pytest.mark.slow
def test_confidence_minimisation_makes_outsiders_easy_to_detect() -> None:
    results = [
        train_and_score_outsiders(FollowUpTraining.of({**SETTINGS, "scheme": "fnn", "ocm": ocm}), DATA, network)
        for ocm in (0.0, 1.0)
    ]
    plain, minimised = (result["final"]["outsiders"][KNOWN_SOURCE]["max-prob"] for result in results)
    assert minimised["auroc"] > 0.95 > plain["auroc"]
    assert minimised["detection_probability"] > plain["detection_probability"]
    assert ["confidence" in result["epochs"][0] for result in results] == [False, True]
    assert results[0]["examples"] == {"train": 300, "validation": 400, "test": 600, "outside": 100, KNOWN_SOURCE: 100}


@pytest.mark.parametrize(
    ("scheme", "others"), [("ensemble", {"members": 2}), ("laplace", {}), ("ca-bnn", {"beta": 0.1, "lam": 1})]
)
def test_every_kind_of_scheme_can_be_scored(scheme: str, others: dict[str, float]) -> None:
    given = {**SETTINGS, "epochs": 1, "scheme": scheme, **others}
    result = train_and_score_outsiders(FollowUpTraining.of(given), DATA, network)
    disagreement = result["final"]["outsiders"][KNOWN_SOURCE]["epistemic"]["auroc"]
    assert disagreement != 0.5  # samples or members disagree
    assert result["weights"] == (3 * 8 + 8 + 8 * 3 + 3) * int(others.get("members", 1))


@pytest.mark.slow
def test_thresholds_come_from_validation_examples_alone(posterior: cb.Point) -> None:
    scorer = OutsiderScorer(posterior, 1, 0)
    whole = scorer.scores(SPLITS, DATA.outsiders, {})["selective"]
    x, y = SPLITS.test
    confidence = cb.predict(posterior, x).confidence
    confident = confidence > confidence.median()
    alone = Splits(train=SPLITS.train, validation=SPLITS.validation, test=(x[confident], y[confident]), classes=SPLITS.classes)
    chosen = scorer.scores(alone, DATA.outsiders, {})["selective"]
    for coverage in COVERAGES:
        for way in ("selector", "confidence"):
            before, after = whole[f"{coverage:g}"][way], chosen[f"{coverage:g}"][way]
            assert before["outsiders"][KNOWN_SOURCE]["passed"] == after["outsiders"][KNOWN_SOURCE]["passed"]
            # 200 validation scores: within four standard errors of both samples.
            assert before["coverage"] == pytest.approx(
                coverage, abs=4 * (coverage * (1 - coverage) * (1 / 200 + 1 / 600)) ** 0.5
            )
    # Were the threshold of this half taken from themselves, the coverage would be half.
    assert chosen["0.5"]["confidence"]["coverage"] > 0.7


def test_without_a_shift_the_scores_are_those_of_the_test_part(posterior: cb.Point) -> None:
    scores = OutsiderScorer(posterior, 1, 0).scores(SPLITS, DATA.outsiders, DATA.shifted)
    assert scores["shift"]["none"] == {"test": scores["test"], "scaled": scores["scaled"]}
    assert scores["shift"]["halved"]["test"]["accuracy"] < scores["test"]["accuracy"]


def test_words_are_dropped_at_random() -> None:
    tokens = torch.arange(1, 5001).reshape(500, 10)
    fewer = without_words(tokens, 0.2, seed=0)
    assert bool(((fewer == 0) | (fewer == tokens)).all())
    assert float((fewer == 0).float().mean()) == pytest.approx(0.2, abs=0.03)
