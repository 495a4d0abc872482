"""Binning, especially at the edges."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from calibayes.errors import InvalidArgumentError
from calibayes.metrics import reliability_bins


def two_classes(confidences: Tensor) -> Tensor:
    return torch.stack([confidences, 1 - confidences], -1)


def with_confidence(confidence: float, dtype: torch.dtype = torch.float32, classes: int = 40) -> Tensor:
    """One row whose largest probability is exactly ``confidence``; the rest is spread over the other classes."""
    row = torch.full((1, classes), (1 - confidence) / (classes - 1), dtype=torch.float64).to(dtype)
    row[0, 0] = confidence
    return row


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("bins", [5, 10, 15, 20])
def test_a_confidence_on_an_edge_belongs_to_the_bin_that_the_edge_closes(dtype: torch.dtype, bins: int) -> None:
    for m in range(1, bins + 1):
        if m / bins < 0.1:
            continue  # the largest of 40 probabilities cannot be much smaller
        binned = reliability_bins(with_confidence(m / bins, dtype), torch.tensor([0]), bins)
        assert binned.count.tolist() == [int(k == m - 1) for k in range(bins)], f"edge {m}/{bins}"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_next_number_above_an_edge_belongs_to_the_next_bin(dtype: torch.dtype) -> None:
    for m in range(8, 15):
        edge = torch.tensor(m / 15, dtype=torch.float64).to(dtype)
        above = torch.nextafter(edge, torch.ones_like(edge))
        binned = reliability_bins(two_classes(above[None]), torch.tensor([0]))
        assert binned.count.nonzero().item() == m


def test_zero_belongs_to_the_first_bin_and_one_to_the_last() -> None:
    probs = torch.tensor([[0.0, 0.0], [1.0, 0.0]])  # the first row is not a distribution: only check=False accepts it
    binned = reliability_bins(probs, torch.tensor([0, 0]), 4, check=False)
    assert binned.count.tolist() == [1, 0, 0, 1]


def test_rounding_a_little_above_one_stays_in_the_last_bin() -> None:
    binned = reliability_bins(torch.tensor([[1.0000001, 0.0]]), torch.tensor([0]))
    assert binned.count.tolist() == [0] * 14 + [1]


def test_counts_means_and_empty_bins_by_hand() -> None:
    probs = two_classes(torch.tensor([0.55, 0.65, 0.95, 1.0], dtype=torch.float64))
    binned = reliability_bins(probs, torch.tensor([0, 1, 0, 0]), 5)
    assert binned.edges.tolist() == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert binned.count.tolist() == [0, 0, 1, 1, 2]
    assert binned.confidence[2:].tolist() == pytest.approx([0.55, 0.65, 0.975])
    assert binned.accuracy[2:].tolist() == [1.0, 0.0, 1.0]
    assert binned.gap[2:].tolist() == pytest.approx([-0.45, 0.65, -0.025])
    assert all(math.isnan(value) for value in [*binned.confidence[:2].tolist(), *binned.accuracy[:2].tolist()])
    assert binned.n == 4


def test_one_bin_compares_the_two_means() -> None:
    probs = torch.rand(200, 6, generator=torch.Generator().manual_seed(0)).softmax(-1)
    targets = torch.arange(200) % 6
    binned = reliability_bins(probs, targets, 1)
    assert binned.confidence.item() == pytest.approx(probs.amax(-1).double().mean().item())
    assert binned.accuracy.item() == (probs.argmax(-1) == targets).double().mean().item()


@pytest.mark.parametrize("bins", [-1, 0, 2.5, True, "15", None])
def test_bad_bins_are_quoted(bins: object) -> None:
    message = f"Expected `bins` to be a positive integer, but got {bins!r}."
    with pytest.raises(InvalidArgumentError) as caught:
        reliability_bins(torch.tensor([[0.5, 0.5]]), torch.tensor([0]), bins)  # type: ignore[arg-type]
    assert str(caught.value) == message


@pytest.mark.slow
@pytest.mark.parametrize("n", [40, 1000])
def test_all_bars_of_a_calibrated_classifier_lie_within_the_band_at_its_level(n: int) -> None:
    outside = 0
    for seed in range(300):
        generator = torch.Generator().manual_seed(seed)
        r = 0.5 + 0.5 * torch.rand(n, generator=generator, dtype=torch.float64)
        wrong = torch.rand(n, generator=generator, dtype=torch.float64) >= r
        found = reliability_bins(torch.stack((r, 1 - r), -1), wrong.long())
        low, high = found.consistency_band(0.9)
        outside += bool(((found.accuracy < low) | (found.accuracy > high)).any())
    assert outside <= 47  # of 300 at 10 %: more in 1 of 1,000 such experiments
    assert outside >= 12 or n == 40  # few examples cannot use the level up


def test_the_band_of_one_bin_is_the_binomial_interval() -> None:
    from scipy.stats import binom

    probs = torch.tensor([[0.7, 0.3]], dtype=torch.float64).expand(50, 2)
    low, high = reliability_bins(probs, torch.zeros(50, dtype=torch.int64), bins=5).consistency_band(0.95)
    assert (float(low[3]), float(high[3])) == tuple(binom.ppf((0.025, 0.975), 50, 0.7) / 50)
    assert bool(low[[0, 1, 2, 4]].isnan().all())
