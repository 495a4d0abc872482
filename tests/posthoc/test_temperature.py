"""Temperature scaling: known temperatures, scikit-learn's, decisions kept to the last bit, and data that settle nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.posthoc.frozen import sklearn_calibrated
from torch import Tensor

from calibayes.posthoc import PosthocWarning, TemperatureScaling, temperature


def simulated(n: int, classes: int, true: float, seed: int = 0, spread: float = 2.0) -> tuple[Tensor, Tensor]:
    """Logits that are right after division by ``true``, and labels."""
    generator = torch.Generator().manual_seed(seed)
    logits = spread * torch.randn(n, classes, generator=generator, dtype=torch.float64)
    return logits, torch.multinomial((logits / true).softmax(-1), 1, generator=generator)[:, 0]


def slopes(logits: Tensor, targets: Tensor, value: float) -> tuple[float, float]:
    """First and second derivative of the mean NLL with respect to log T, by autograd."""
    log_t = torch.tensor(math.log(value), dtype=torch.float64, requires_grad=True)
    nll = torch.nn.functional.cross_entropy(logits / log_t.exp(), targets)
    (first,) = torch.autograd.grad(nll, log_t, create_graph=True)
    (second,) = torch.autograd.grad(first, log_t)
    return first.item(), second.item()


@pytest.mark.parametrize("classes", [2, 10])
@pytest.mark.parametrize("true", [0.3, 1.0, 1.7, 6.0])
def test_a_known_temperature_is_recovered(true: float, classes: int) -> None:
    logits, targets = simulated(50_000, classes, true)
    found = temperature(logits.softmax(-1), targets)
    standard_error = (len(targets) * slopes(logits, targets, true)[1]) ** -0.5
    assert standard_error < 0.05
    assert abs(math.log(found / true)) < 4 * standard_error


@pytest.mark.parametrize(("n", "classes", "true"), [(7, 3, 1.0), (500, 4, 0.1), (30_000, 10, 2.0), (300, 1000, 4.0)])
def test_the_slope_is_zero_at_the_optimum(n: int, classes: int, true: float) -> None:
    logits, targets = simulated(n, classes, true)
    first, second = slopes(logits, targets, temperature(logits, targets, logits=True))
    assert second > 1e-4
    assert abs(first) < 1e-9


def test_it_is_scikit_learns() -> None:
    logits, targets = simulated(400, 5, 1.5)
    theirs = sklearn_calibrated("temperature", logits.numpy(), targets.numpy())
    ours = TemperatureScaling().fit(logits, targets, logits=True).transform(logits, logits=True)
    np.testing.assert_allclose(ours.numpy(), theirs, atol=1e-7)


@pytest.mark.parametrize("block", ["right", "wrong"])
def test_a_sample_that_misleads_does_no_harm(block: str) -> None:
    """The search starts from every so-manieth example: here those are all right, or all wrong."""
    logits, targets = simulated(40_000, 3, 1.3)
    order = torch.randperm(len(targets), generator=torch.Generator().manual_seed(0))
    right = logits.argmax(-1) == targets if block == "right" else logits.argmin(-1) == targets
    first = right.nonzero()[:, 0][:10_000]
    if len(first) < 10_000:
        first = first.repeat(10_000 // len(first) + 1)[:10_000]
    index = torch.stack((first, *order[:30_000].reshape(3, -1)), 1).reshape(-1)
    found = temperature(logits[index], targets[index], logits=True)
    assert abs(slopes(logits[index], targets[index], found)[0]) < 1e-9


def test_the_temperature_scales_with_the_logits_and_nothing_else() -> None:
    logits, targets = simulated(1000, 4, 2.0)
    found = temperature(logits, targets, logits=True)
    assert temperature(3 * logits, targets, logits=True) == pytest.approx(3 * found, rel=1e-9)
    assert temperature(logits + torch.randn(1000, 1).double(), targets, logits=True) == pytest.approx(found, rel=1e-9)
    assert temperature(logits.softmax(-1), targets) == pytest.approx(found, rel=1e-9)
    order = torch.tensor([2, 0, 3, 1])
    assert temperature(logits[:, order], order.argsort()[targets], logits=True) == pytest.approx(found, rel=1e-9)


def test_scaled_predictions_have_temperature_one() -> None:
    logits, targets = simulated(1000, 4, 2.0)
    scaling = TemperatureScaling().fit(logits.softmax(-1), targets)
    assert scaling.temperature > 1.5
    assert temperature(scaling.transform(logits.softmax(-1)), targets) == pytest.approx(1, rel=1e-9)


def test_two_classes_in_one_column() -> None:
    logits, targets = simulated(1000, 2, 2.0)
    probs, odds = logits.softmax(-1), logits[:, 1] - logits[:, 0]
    found = temperature(probs, targets)
    assert temperature(probs[:, 1], targets) == pytest.approx(found, rel=1e-9)
    assert temperature(odds, targets, logits=True) == pytest.approx(found, rel=1e-9)
    scaling = TemperatureScaling().fit(probs, targets)
    torch.testing.assert_close(scaling.transform(odds, logits=True), scaling.transform(probs)[:, 1])


def test_weights_are_replication() -> None:
    logits, targets = simulated(300, 3, 2.0)
    times = torch.randint(4, (300,), generator=torch.Generator().manual_seed(0))
    replicated = temperature(logits.repeat_interleave(times, 0), targets.repeat_interleave(times), logits=True)
    assert temperature(logits, targets, weights=times, logits=True) == pytest.approx(replicated, rel=1e-9)
    assert temperature(logits, targets, weights=times.double() / 7, logits=True) == pytest.approx(replicated, rel=1e-9)


@pytest.mark.parametrize("n", [1, 20])
def test_all_right_stops_at_the_lower_bound(n: int) -> None:
    probs = torch.tensor([[0.6, 0.3, 0.1]]).repeat(n, 1)
    with pytest.warns(PosthocWarning, match="decided right, so lower temperatures fit ever better: stopped at 0.0001"):
        scaling = TemperatureScaling().fit(probs, torch.zeros(n, dtype=torch.long))
    assert scaling.temperature == 1e-4
    assert scaling.transform(probs)[0].tolist() == [1, 0, 0]


@pytest.mark.parametrize("n", [1, 20])
def test_all_wrong_stops_at_the_upper_bound(n: int) -> None:
    probs = torch.tensor([[0.6, 0.3, 0.1]]).repeat(n, 1)
    with pytest.warns(PosthocWarning, match="stopped at 10000. Are the labels"):
        scaling = TemperatureScaling().fit(probs, torch.full((n,), 2))
    assert scaling.temperature == 1e4
    torch.testing.assert_close(scaling.transform(probs)[0], torch.full((3,), 1 / 3), atol=1e-3, rtol=0)


@pytest.mark.parametrize(("factor", "bound", "side"), [(1e6, 1e4, "above"), (1e-6, 1e-4, "below")])
def test_an_optimum_beyond_the_bounds(factor: float, bound: float, side: str) -> None:
    logits, targets = simulated(200, 3, 1.0)
    with pytest.warns(PosthocWarning, match=f"lies {side} {bound:g}"):
        assert temperature(factor * logits, targets, logits=True) == bound


def test_optima_right_at_the_bounds_are_found() -> None:
    logits, targets = simulated(200, 3, 1.0)
    found = temperature(logits, targets, logits=True)
    for aim in (1.01e-4, 0.99e4):
        assert temperature(logits * (aim / found), targets, logits=True) == pytest.approx(aim, rel=1e-6)


@pytest.mark.parametrize("classes", [2, 3, 1000])
def test_uniform_predictions_have_temperature_one(classes: int) -> None:
    probs = torch.full((6, classes), 1 / classes)
    scaling = TemperatureScaling().fit(probs, torch.arange(6) % classes)
    assert scaling.temperature == 1
    torch.testing.assert_close(scaling.transform(probs), probs)


def test_constant_predictions_get_the_share_of_the_decision() -> None:
    """p = (0.9, 0.1) right 7 times in 10 becomes (0.7, 0.3): T = log 9 / log (7/3)."""
    probs = torch.tensor([[0.9, 0.1]], dtype=torch.float64).repeat(10, 1)
    found = temperature(probs, torch.tensor([0] * 7 + [1] * 3))
    assert found == pytest.approx(math.log(9) / math.log(7 / 3), rel=1e-9)


@pytest.mark.parametrize(
    ("dtype", "floor"),
    [(torch.float64, 2.0**-1022), (torch.float32, 2.0**-126), (torch.bfloat16, 2.0**-126), (torch.float16, 2.0**-24)],
)
def test_zeros_count_as_the_smallest_number_of_their_type(dtype: torch.dtype, floor: float) -> None:
    probs = torch.tensor([[1, 0], [1, 0], [1, 0], [0.75, 0.25]], dtype=dtype)
    targets = torch.tensor([0, 0, 1, 0])
    log_floor = math.log(floor)
    logits = torch.tensor([[0, log_floor]] * 3 + [[math.log(3), 0]], dtype=torch.float64)
    assert temperature(probs, targets) == pytest.approx(temperature(logits, targets, logits=True), rel=1e-9)


def _keeps(scaling: TemperatureScaling, probs: Tensor, logits: bool = False) -> None:
    out = scaling.transform(probs, logits=logits)
    assert out.dtype == probs.dtype
    assert torch.equal(out.argmax(-1), probs.argmax(-1))
    assert bool(((out >= 0) & (out <= 1)).all())


def _at(value: float, classes: int) -> TemperatureScaling:
    """A scaling of very nearly this temperature."""
    logits, targets = simulated(200, classes, 1.0)
    found = temperature(logits, targets, logits=True)
    return TemperatureScaling().fit(logits * (value / found), targets, logits=True)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("value", [1.1e-4, 0.5, 3.0, 0.9e4])
@pytest.mark.parametrize("classes", [2, 3, 40])
def test_decisions_are_kept(classes: int, value: float, dtype: torch.dtype) -> None:
    scaling = _at(value, classes)
    generator = torch.Generator().manual_seed(0)
    # Coarse values make ties, small ones near-ties that a high temperature rounds to equality.
    logits = torch.randint(-2, 3, (2000, classes), generator=generator) * torch.tensor([1e-3, 1.0]).repeat(1000)[:, None]
    _keeps(scaling, logits.softmax(-1).to(dtype))
    _keeps(scaling, logits.to(dtype), logits=True)


@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("winner", [0, 1])
def test_decisions_by_one_bit_are_kept(winner: int, classes: int) -> None:
    for dtype in (torch.float64, torch.float32):
        probs = torch.full((1, classes), 1 / classes, dtype=dtype)
        probs[0, winner] = torch.nextafter(probs[0, winner], torch.ones((), dtype=dtype))
        for value in (1.1e-4, 0.9e4):
            _keeps(_at(value, classes), probs)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16])
def test_one_column_keeps_its_side_of_a_half(dtype: torch.dtype) -> None:
    half = torch.tensor(0.5, dtype=dtype)
    around = torch.stack((torch.nextafter(half, 0 * half), half, torch.nextafter(half, 2 * half)))
    for value in (1.1e-4, 1.0, 0.9e4):
        out = _at(value, 2).transform(around)
        assert (out > 0.5).tolist() == [False, False, True]


@given(st.lists(st.lists(st.integers(-3, 3), min_size=4, max_size=4), min_size=1, max_size=8), st.floats(-3, 3))
def test_decisions_are_kept_whatever_the_logits(rows: list[list[int]], exponent: float) -> None:
    _keeps(_at(10**exponent, 4), torch.tensor(rows).double() / 1000, logits=True)


def test_tied_classes_stay_tied() -> None:
    out = _at(3.0, 3).transform(torch.tensor([[0.4, 0.4, 0.2], [0.2, 0.4, 0.4], [1 / 3, 1 / 3, 1 / 3]]))
    assert out[0, 0] == out[0, 1]
    assert out[1, 1] == out[1, 2]
    assert len(out[2].unique()) == 1


def test_unchecked_input_gives_the_same() -> None:
    logits, targets = simulated(100, 3, 2.0)
    probs = logits.softmax(-1)
    assert temperature(probs, targets, check=False) == temperature(probs, targets)
