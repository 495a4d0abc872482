"""Cross-conformal sets: the weaker guarantee by simulation with members that are trained, and the file."""

from __future__ import annotations

import json

import pytest
import torch
from sklearn.linear_model import LogisticRegression
from tests.metrics.simulated import classifier

from calibayes.acting import CrossConformalSets, conformal_sets, cross_conformal_sets
from calibayes.errors import InvalidArgumentError


def test_members_that_are_the_same_classifier_give_about_split_conformal_sets() -> None:
    probs, labels = classifier(3000, 1.0, seed=0)
    cross = cross_conformal_sets(probs[:2000], labels[:2000], torch.arange(2000) % 5)
    ours, split = (
        cross.predict(probs[2000:].expand(5, -1, -1)),
        conformal_sets(probs[:2000], labels[:2000]).predict(probs[2000:]),
    )
    assert float((ours == split).double().mean()) > 0.995


def test_coverage_is_at_least_the_guaranteed_and_near_the_level() -> None:
    generator = torch.Generator().manual_seed(1)
    hits, total = 0, 0
    for run in range(12):
        y = torch.randint(3, (250,), generator=generator)
        x = torch.randn(250, 4, generator=generator) + torch.nn.functional.one_hot(y, 4)
        folds = torch.arange(50) % 5
        out_of_fold, of_new = torch.zeros(50, 3, dtype=torch.float64), []
        for fold in range(5):
            member = LogisticRegression(C=10).fit(x[:50][folds != fold], y[:50][folds != fold])
            out_of_fold[folds == fold] = torch.from_numpy(member.predict_proba(x[:50][folds == fold]))
            of_new.append(torch.from_numpy(member.predict_proba(x[50:])))
        sets = cross_conformal_sets(out_of_fold, y[:50], folds, level=0.8, score="aps", seed=run).predict(torch.stack(of_new))
        hits += int(sets.gather(-1, y[50:, None]).sum())
        total += 200
    assert hits / total > 0.6  # guaranteed
    assert 0.74 < hits / total < 0.92


def test_it_says_what_it_guarantees_and_survives_a_file() -> None:
    probs, labels = classifier(300, 1.0, seed=2)
    sets = cross_conformal_sets(probs, labels, torch.arange(300) % 3, level=0.95)
    assert sets.guaranteed_level == pytest.approx(0.9)
    assert "at least 0.9 of new examples" in sets.statement
    again = CrossConformalSets.from_dict(json.loads(json.dumps(sets.to_dict(), allow_nan=False)))
    members = torch.stack([classifier(40, 1.0, seed=seed)[0] for seed in (3, 4, 5)])
    assert torch.equal(again.predict(members), sets.predict(members))
    assert bool(sets.predict(members).any(-1).all())


def test_p_values_by_counting() -> None:
    probs, labels = classifier(30, 1.0, seed=6, classes=3)
    folds = torch.arange(30) % 2
    sets = cross_conformal_sets(probs, labels, folds, level=0.7, score="aps")
    members = torch.stack([classifier(20, 1.0, seed=seed, classes=3)[0] for seed in (7, 8)])
    old, new = sets.score.of_labels(probs, labels), sets.score.of_classes(members.flatten(0, 1)).unflatten(0, (2, 20))
    expected = torch.zeros(20, 3, dtype=torch.bool)
    for row in range(20):
        for k in range(3):
            above = sum(int((old[folds == fold] >= new[fold, row, k]).sum()) for fold in (0, 1))
            expected[row, k] = (above + 2) / 32 > 0.3
    best = members.mean(0).argmax(-1, keepdim=True)
    assert torch.equal(sets.predict(members), expected.scatter(-1, best, True))


def test_what_is_refused() -> None:
    probs, labels = classifier(30, 1.0, seed=9)
    with pytest.raises(InvalidArgumentError, match="without gaps"):
        cross_conformal_sets(probs, labels, torch.zeros(30, dtype=torch.long))
    with pytest.raises(InvalidArgumentError, match="30 integers"):
        cross_conformal_sets(probs, labels, torch.zeros(29, dtype=torch.long))
    with pytest.raises(InvalidArgumentError, match=r"shape \[2, n, 4\]"):
        cross_conformal_sets(probs, labels, torch.arange(30) % 2).predict(probs)
