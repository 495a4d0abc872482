"""Membership attacks against closed forms and scikit-learn, intervals that hold the truth, and a model that leaks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.metrics import roc_auc_score, roc_curve

import calibayes as cb
from calibayes.acting import lira_scores, membership_attack, membership_scores, tpr_at_fpr, true_class_log_odds
from calibayes.errors import InvalidArgumentError

LOOSE_SCORES: Any = membership_scores  # takes any text
LOOSE_LIRA: Any = lira_scores
SHIFTED_TPR = float(stats.norm.sf(stats.norm.ppf(0.99) - 1))  # of members that score higher by one standard deviation


def normal(seed: int, members: int, non_members: int, shift: float) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    return shift + generator.normal(size=members), generator.normal(size=non_members)


@pytest.mark.parametrize("shift", [0.0, 1.0, 2.0])
def test_normal_scores_have_closed_forms(shift: float) -> None:
    attack = membership_attack(*normal(0, 100_000, 100_000, shift))
    assert attack.auc == pytest.approx(stats.norm.cdf(shift / math.sqrt(2)), abs=0.005)
    assert attack.tpr == pytest.approx(stats.norm.sf(stats.norm.ppf(0.99) - shift), abs=0.01)
    assert attack.advantage == pytest.approx(2 * stats.norm.cdf(shift / 2) - 1, abs=0.01)


@pytest.mark.parametrize("digits", [9, 1, 0])
@pytest.mark.parametrize("fpr", [0.001, 0.01, 0.3])
def test_scikit_learn_with_and_without_ties(digits: int, fpr: float) -> None:
    members, others = (each.round(digits) for each in normal(1, 400, 300, 0.7))
    scores, inside = np.concatenate((members, others)), np.repeat([1, 0], [400, 300])
    alarms, hits, _ = roc_curve(inside, scores, drop_intermediate=False)
    assert tpr_at_fpr(members, others, fpr) == pytest.approx(max(hits[alarms <= fpr + 1e-12]))
    assert membership_attack(members, others, fpr=fpr).auc == pytest.approx(roc_auc_score(inside, scores))


def test_swapping_both_sides_mirrors_the_attack_and_only_the_order_of_scores_counts() -> None:
    members, others = normal(2, 500, 400, 0.5)
    attack, mirrored = membership_attack(members, others), membership_attack(-others, -members)
    assert mirrored.auc == pytest.approx(attack.auc)
    assert membership_attack(others, members).auc == pytest.approx(1 - attack.auc)
    assert membership_attack(np.exp(members), np.exp(others)).tpr == attack.tpr


@pytest.mark.parametrize(("shift", "tpr"), [(0.0, 0.01), (1.0, SHIFTED_TPR)])
def test_intervals_hold_the_truth(shift: float, tpr: float) -> None:
    truth = {"auc": stats.norm.cdf(shift / math.sqrt(2)), "tpr": tpr, "advantage": 2 * stats.norm.cdf(shift / 2) - 1}
    held = dict.fromkeys(truth, 0)
    for run in range(300):
        attack = membership_attack(*normal(1000 + run, 250, 350, shift), level=0.9)
        for name, value in truth.items():
            low, high = getattr(attack, f"{name}_interval")
            held[name] += low <= value <= high
    assert 253 <= held["auc"] <= 287  # 270 of 300, give or take what happens once in a thousand times
    assert held["tpr"] >= 270  # conservative, since it holds for every distribution
    assert held["advantage"] >= 253


@pytest.mark.parametrize(("members", "non_members"), [(1, 1), (5, 50), (3000, 3)])
def test_few_examples_say_little(members: int, non_members: int) -> None:
    """With fewer than 1 / FPR non-members the quantile may lie above all of them."""
    tpr = tpr_at_fpr(np.ones(members), np.zeros(non_members))
    assert tpr == 1
    if min(members, non_members) > 1:
        attack = membership_attack(np.ones(members), np.zeros(non_members))
        assert attack.tpr_interval.low == 0
        assert attack.tpr_interval.high == 1
        assert attack.auc == attack.advantage == 1


def test_scores_by_their_definitions() -> None:
    probs = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8], [0.0, 1.0, 0.0]], dtype=torch.float64)
    labels = torch.tensor([0, 1, 1])
    for row, (p, y) in enumerate(zip(probs.tolist(), labels.tolist(), strict=True)):
        rest = [q for k, q in enumerate(p) if k != y]
        modified = (1 - p[y]) * math.log(p[y]) + sum(q * math.log(1 - q) for q in rest)
        entropy = sum(q * math.log(q) for q in p if q)
        expected = {"loss": math.log(p[y]), "confidence": max(p), "entropy": entropy, "modified-entropy": modified}
        for method, value in expected.items():
            score = LOOSE_SCORES(probs, labels, method)[row]
            assert float(score) == pytest.approx(value, abs=1e-12), method
    odds = true_class_log_odds(probs, labels)
    assert odds[:2].tolist() == pytest.approx([math.log(0.7 / 0.3), math.log(0.1 / 0.9)])
    assert odds.isfinite().all()


def test_certain_predictions_keep_their_digits() -> None:
    """Confidences that differ from 1 by less than the spacing of floats are told apart; certain errors score lowest."""
    logits = torch.tensor([[40.0, 0.0], [60.0, 0.0], [0.0, 60.0], [0.0, 2000.0]], dtype=torch.float64)
    probs, labels = logits.softmax(-1), torch.zeros(4, dtype=torch.long)
    assert true_class_log_odds(probs, labels)[:3].tolist() == pytest.approx([40.0, 60.0, -60.0])
    for method in ("loss", "modified-entropy"):
        scores = membership_scores(probs, labels, method)
        assert scores.isfinite().all()
        assert scores.argsort(descending=True).tolist() == [1, 0, 2, 3]


def shadow_data(models: int, examples: int, effect: float, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Log-odds of models for examples of different difficulty, raised by ``effect`` in models trained on them; and truth."""
    generator = torch.Generator().manual_seed(seed)
    difficulty = 3 * torch.randn(examples, generator=generator)
    membership = torch.rand(models, examples, generator=generator) < 0.5
    membership[:4] = torch.tensor([True, True, False, False])[:, None]  # as the shadows of the fifth, each has two of both
    return difficulty + effect * membership + torch.randn(models, examples, generator=generator), membership, difficulty


@pytest.mark.parametrize("variant", ["online", "offline"])
@pytest.mark.parametrize("variance", ["pooled", "per-example"])
def test_lira_is_the_likelihood_ratio(variant: Any, variance: Any) -> None:
    odds, membership, _ = shadow_data(16, 7, 1.0)
    scores = lira_scores(odds[-1], odds[:-1], membership[:-1], variant=variant, variance=variance)
    sides = []
    for inside in (True, False):
        groups = [odds[:-1, i][membership[:-1, i] == inside].double().numpy() for i in range(7)]
        pooled = math.sqrt(sum(((g - g.mean()) ** 2).sum() for g in groups) / sum(len(g) - 1 for g in groups))
        sides.append([(g.mean(), pooled if variance == "pooled" else g.std(ddof=1)) for g in groups])
    for i, score in enumerate(scores.tolist()):
        (in_mean, in_std), (out_mean, out_std) = sides[0][i], sides[1][i]
        t = float(odds[-1, i])
        expected = stats.norm.logpdf(t, in_mean, in_std) - stats.norm.logpdf(t, out_mean, out_std)
        assert score == pytest.approx((t - out_mean) / out_std if variant == "offline" else expected)


def test_lira_finds_what_a_threshold_cannot_and_nothing_where_there_is_nothing() -> None:
    odds, membership, _ = shadow_data(200, 4000, 1.5)
    inside = membership[-1]
    plain = membership_attack(odds[-1][inside], odds[-1][~inside])
    for variant in ("online", "offline"):
        scores = lira_scores(odds[-1], odds[:-1], membership[:-1], variant=variant)
        attack = membership_attack(scores[inside], scores[~inside])
        # With the difficulty known, members are 1.5 standard deviations higher.
        assert attack.auc == pytest.approx(stats.norm.cdf(1.5 / math.sqrt(2)), abs=0.03)
        assert attack.auc_interval.low > plain.auc_interval.high
    odds, membership, _ = shadow_data(20, 4000, 0.0)
    scores, inside = lira_scores(odds[-1], odds[:-1], membership[:-1]), membership[-1]
    low, high = membership_attack(scores[inside], scores[~inside], level=0.99).auc_interval
    assert low < 0.5 < high


def test_an_overfitted_model_leaks_and_an_untrained_one_does_not() -> None:
    generator = torch.Generator().manual_seed(0)
    x, y = (
        torch.randn(400, 20, generator=generator),
        torch.randint(3, (400,), generator=generator),
    )  # nothing to learn but noise
    posterior = cb.Point(torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.ReLU(), torch.nn.Linear(64, 3)))
    aucs = []
    for epochs in (0, 60):
        if epochs:
            adam = lambda parameters: torch.optim.Adam(parameters, lr=0.01)  # noqa: E731
            cb.fit(posterior, (x[:200], y[:200]), cb.Objective(lam=0.0), optimizer=adam, epochs=epochs, progress=False)
        probs = cb.predict(posterior, x, dtype=torch.float64)
        scores = membership_scores(probs, y)
        aucs.append(membership_attack(scores[:200], scores[200:], level=0.99).auc_interval)
    assert aucs[0].low < 0.5 < aucs[0].high
    assert aucs[1].low > 0.8


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: LOOSE_SCORES(torch.ones(1, 1), torch.zeros(1).long(), "los"),
            "Unknown `method` 'los'. Did you mean 'loss'",
        ),
        (lambda: membership_attack(torch.ones(0), torch.ones(3)), "`members` to hold one number per example"),
        (lambda: membership_attack(torch.ones(3), torch.tensor([math.nan])), "`non_members` to be finite, but number 0"),
        (lambda: membership_attack(torch.ones(3), torch.ones(3), fpr=0), "`fpr` to lie between 0 and 1"),
        (lambda: lira_scores(torch.ones(2), torch.ones(3, 4), torch.ones(3, 4)), r"`shadows` of shape \[m, 2\]"),
        (lambda: lira_scores(torch.ones(2), torch.ones(3, 2), torch.ones(2)), r"booleans of shape \[3, 2\]"),
        (lambda: lira_scores(torch.ones(2), torch.ones(3, 2), 2 * torch.ones(3, 2)), r"booleans of shape \[3, 2\]"),
        (lambda: lira_scores(torch.ones(2), torch.ones(3, 2), torch.ones(3, 2)), "1 shadow model trained without each example"),
        (
            lambda: lira_scores(torch.ones(1), torch.eye(2)[:, :1], torch.eye(2)[:, :1]),
            "to estimate a variance, but each has one",
        ),
        (
            lambda: lira_scores(torch.ones(1), torch.eye(2)[:, :1], torch.eye(2)[:, :1], variance="per-example"),
            "at least 2 shadow models trained without each example, but example 0 has 1",
        ),
        (
            lambda: lira_scores(torch.ones(1), torch.ones(4, 1), torch.eye(4)[:, :1]),
            "the same in all shadow models trained without",
        ),
        (
            lambda: lira_scores(torch.ones(1), torch.full((4, 1), math.inf), torch.eye(4)[:, :1]),
            "that of model 0 for example 0 is inf",
        ),
        (lambda: LOOSE_LIRA(torch.ones(1), torch.ones(4, 1), torch.eye(4)[:, :1], variant="on"), "Unknown `variant` 'on'"),
    ],
)
def test_errors_say_what_is_wrong(call: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        call()
