"""A selector finds where confidence is wrong, keeps the coverage, and is trained by what it says."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from calibayes.acting import Selector
from calibayes.acting.selector import selection_loss
from calibayes.calibration import MMCE
from calibayes.errors import InvalidArgumentError

MEASURE = MMCE(mode="hard", kernel_width=0.2)
Marked = tuple[Tensor, Tensor, Tensor, Tensor]


def marked(n: int, seed: int) -> Marked:
    """Features, confidences, correctness, and which fifth is overconfident: the second feature marks it, with noise."""
    generator = torch.Generator().manual_seed(seed)
    strange = torch.rand(n, generator=generator) < 0.2
    r = 0.5 + 0.5 * torch.rand(n, generator=generator, dtype=torch.float64)
    c = torch.rand(n, generator=generator) < torch.where(strange, r - 0.3, r)
    mark = strange.double() + 0.3 * torch.randn(n, generator=generator)
    return torch.stack((r, mark, torch.randn(n, generator=generator, dtype=torch.float64)), -1), r, c, strange


def error(data: Marked, kept: Tensor) -> float:
    return float(MEASURE.value(data[1][kept], data[2][kept].double()))


@pytest.mark.parametrize("hidden", [0, 16])
@pytest.mark.parametrize("coverage", [0.5, 0.8])
def test_it_finds_the_overconfident_and_confidence_alone_does_not(coverage: float, hidden: int) -> None:
    features, r, c, _ = marked(1000, 1)
    selector = Selector.fit(features, r, c, coverage=coverage, hidden=hidden)
    new = marked(8000, 2)
    kept = selector.selects(new[0])
    by_confidence = new[1] >= new[1].quantile(1 - coverage)
    alone = Selector.fit(features[:, :1], r, c, coverage=coverage, hidden=hidden).selects(new[0][:, :1])
    assert float(new[3][kept].double().mean()) < 0.06 < 0.15 < float(new[3].double().mean())
    assert error(new, kept) < 0.3 * error(new, torch.ones_like(kept))
    assert error(new, kept) < 0.3 * error(new, by_confidence)
    assert error(new, kept) < 0.5 * error(new, alone)


@pytest.mark.parametrize("coverage", [0.3, 0.6, 0.9])
def test_the_coverage_is_that_of_the_examples_the_threshold_is_from(coverage: float) -> None:
    features, r, c, _ = marked(500, 3)
    selector = Selector.fit(features, r, c, coverage=coverage)
    assert coverage <= float(selector.selects(features).double().mean()) <= coverage + 1 / 500
    # On new examples it is as close as 500 scores allow: within four standard errors of both samples.
    tolerance = 4 * (coverage * (1 - coverage) * (1 / 500 + 1 / 4000)) ** 0.5
    new = marked(4000, 4)[0]
    assert float(selector.selects(new).double().mean()) == pytest.approx(coverage, abs=tolerance)
    moved = selector.at_coverage(new, 0.45)
    assert (moved.coverage, float(moved.selects(new).double().mean())) == (0.45, 0.45)
    assert torch.equal(moved.scores(new), selector.scores(new))


def test_the_mean_weight_stays_above_the_coverage_and_comes_closer_with_a_weaker_barrier() -> None:
    features, r, c, _ = marked(1000, 5)
    means = [
        float(Selector.fit(features, r, c, coverage=0.7, barrier=barrier).scores(features).mean()) for barrier in (1e-1, 1e-4)
    ]
    assert 0.7 < means[1] < means[0]


def by_matrix(g: Tensor, r: Tensor, c: Tensor, coverage: float, barrier: float, width: float) -> Tensor:
    """All pairs, one by one."""
    u = g * (c - r) / g.sum()
    pairs = u.unsqueeze(0) * u.unsqueeze(1) * torch.exp(-(r.unsqueeze(0) - r.unsqueeze(1)).abs() / width)
    return pairs.sum().sqrt() - barrier * torch.log((g.mean() - coverage) / (1 - coverage))


@pytest.mark.parametrize("n", [7, 400])
def test_value_and_gradient_are_those_of_all_pairs(n: int) -> None:
    _, r, c, _ = marked(n, 6)
    values, slopes = [], []
    for loss in (selection_loss, by_matrix):
        g = torch.linspace(0.3, 0.95, n, dtype=torch.float64, requires_grad=True)
        value = loss(g, r, c.double(), 0.4, 0.02, 0.3)
        value.backward()
        assert g.grad is not None
        values.append(value.item())
        slopes.append(g.grad)
    assert values[0] == pytest.approx(values[1], rel=1e-10)
    torch.testing.assert_close(*slopes, rtol=1e-8, atol=1e-12)


def test_below_the_coverage_the_barrier_goes_on_as_a_line() -> None:
    _, r, c, _ = marked(50, 7)
    losses = [
        float(selection_loss(torch.full_like(r, level), r, c.double(), 0.6, 1.0, 0.3))
        for level in (0.3, 0.4, 0.5, 0.6039, 0.6041)
    ]
    assert losses[0] - losses[1] == pytest.approx(losses[1] - losses[2])  # with equal weights the error is the same
    assert losses[3] - losses[4] == pytest.approx(0.0002 / 0.4 / 0.01, rel=0.1)  # and it joins without a corner
    assert losses == sorted(losses, reverse=True)


def test_the_same_seed_gives_the_same_bits_and_the_callers_generator_is_left_alone() -> None:
    features, r, c, _ = marked(300, 8)
    before = torch.random.get_rng_state()
    first, second, other = (Selector.fit(features, r, c, steps=50, seed=seed).scores(features) for seed in (1, 1, 2))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.equal(first, second)
    assert not torch.equal(first, other)


def test_units_of_features_do_not_matter_and_a_constant_one_does_no_harm() -> None:
    features, r, c, _ = marked(300, 9)
    plain = Selector.fit(features, r, c, steps=50).scores(features)
    scaled = features * torch.tensor([1.0, 1e6, 1e-6]) + torch.tensor([0.0, 5.0, -3.0])
    torch.testing.assert_close(Selector.fit(scaled, r, c, steps=50).scores(scaled), plain, rtol=1e-4, atol=1e-6)
    constant = torch.cat((features, torch.full((300, 1), 7.0, dtype=torch.float64)), -1)
    assert bool(Selector.fit(constant, r, c, steps=50).scores(constant).isfinite().all())


def test_it_can_be_written_down() -> None:
    features, r, c, _ = marked(200, 10)
    selector = Selector.fit(features.numpy(), r.numpy(), c.numpy(), steps=20)
    again = Selector.from_dict(json.loads(json.dumps(selector.to_dict())))
    assert torch.equal(again.scores(features), selector.scores(features))
    assert (again.threshold, again.coverage) == (selector.threshold, selector.coverage)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"features": torch.zeros(20)}, r"finite `features` of shape \[n, d\], but got shape \[20\]"),
        ({"features": torch.full((20, 1), torch.nan)}, "with nan in row 0, column 0"),
        ({"features": torch.zeros(19, 1)}, "`features` of 20 examples, as `confidence` has, but got 19"),
        ({"confidence": torch.full((20,), 1.5)}, "`confidence` to lie between 0 and 1, but number 0 is 1.5"),
        ({"correct": torch.full((20,), 2)}, "`correct` to hold zeros and ones"),
        ({"coverage": 1.0}, "`coverage` to lie between 0 and 1, both excluded, but got 1.0"),
        ({"barrier": 0.0}, "`barrier` to be a positive finite number"),
        ({"steps": 0}, "`steps` to be a positive integer"),
        ({"hidden": -1}, "`hidden` to be an integer of at least 0"),
        ({"weight_decay": -1.0}, "`weight_decay` to be a positive finite number"),
    ],
)
def test_what_cannot_be_used_is_named(changes: dict[str, Any], message: str) -> None:
    given = {"features": torch.rand(20, 2), "confidence": torch.rand(20), "correct": np.arange(20) % 2}
    with pytest.raises(InvalidArgumentError, match=message):
        Selector.fit(**{**given, **changes})


def test_too_few_examples_and_other_columns_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="at least 10 examples to fit a selector to, but got 9"):
        Selector.fit(torch.rand(9, 1), torch.rand(9), torch.ones(9))
    selector = Selector.fit(torch.rand(20, 2), torch.rand(20), torch.ones(20), steps=2)
    with pytest.raises(InvalidArgumentError, match="2 columns of `features`, but got 3"):
        selector.scores(torch.rand(5, 3))
    with pytest.raises(InvalidArgumentError, match="'layers' is missing"):
        Selector.from_dict({name: value for name, value in selector.to_dict().items() if name != "layers"})
