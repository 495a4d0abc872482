"""Test examples drawn again: the scores of a draw are those of the examples that are in it."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from calibayes.metrics import evaluate
from calibayes.recipes.compare.jobs import Probs
from calibayes.recipes.compare.resampling import RESAMPLED, draw_counts, replicates


def predictions(n: int, seed: int = 0) -> tuple[Probs, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    probs = (2 * torch.randn(n, 4, generator=generator)).softmax(-1)
    return probs.numpy(), torch.multinomial(probs.sqrt(), 1, generator=generator)[:, 0]


def test_every_draw_is_scored_as_evaluate_scores_its_examples() -> None:
    probs, targets = predictions(50)
    counts = draw_counts(50, 5)
    found = replicates(probs, targets, counts)
    for draw, count in enumerate(counts):
        rows = torch.arange(50).repeat_interleave(count.long())
        expected = evaluate(torch.from_numpy(probs)[rows], targets[rows], intervals=False)
        assert found[:, draw].tolist() == pytest.approx([getattr(expected, name) for name in RESAMPLED], rel=1e-12)


def test_means_spread_as_the_central_limit_theorem_says() -> None:
    (probs, targets), draws = predictions(400), 4000
    nll = -np.log(probs[np.arange(400), targets.numpy()].astype(np.float64))
    found = replicates(probs, targets, draw_counts(400, draws))[0]
    assert float(found.std()) == pytest.approx(nll.std() / math.sqrt(400), rel=4 / math.sqrt(2 * draws))


def test_draws_are_the_same_for_all_and_other_with_another_seed() -> None:
    assert torch.equal(draw_counts(30, 4), draw_counts(30, 4))
    assert not torch.equal(draw_counts(30, 4), draw_counts(30, 4, seed=1))


def test_an_infinite_nll_leaves_the_other_scores_alone() -> None:
    probs, targets = predictions(50)
    certain = probs.copy()
    certain[0] = 0.0
    certain[0, (int(targets[0]) + 1) % 4] = 1.0
    found = replicates(certain, targets, draw_counts(50, 5))
    assert bool(found.isfinite().all())
