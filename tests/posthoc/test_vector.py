"""Vector scaling: known parameters, the optimum by autograd, never worse than leaving it, and data that settle nothing."""

from __future__ import annotations

import math
import warnings

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from calibayes.errors import InvalidArgumentError
from calibayes.metrics import nll
from calibayes.posthoc import PosthocWarning, TemperatureScaling, VectorScaling


def simulated(n: int, classes: int, seed: int = 0) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Log-probabilities, labels, and the scale and bias that make them right."""
    generator = torch.Generator().manual_seed(seed)
    log_probs = (2 * torch.randn(n, classes, generator=generator).double()).log_softmax(-1)
    scale = 0.4 + torch.rand(classes, generator=generator).double()
    bias = torch.randn(classes, generator=generator).double()
    targets = torch.multinomial((scale * log_probs + bias).softmax(-1), 1, generator=generator)[:, 0]
    return log_probs, targets, scale, bias


def test_known_parameters_are_recovered() -> None:
    log_probs, targets, scale, bias = simulated(100_000, 3)
    found = VectorScaling().fit(log_probs.exp(), targets)
    torch.testing.assert_close(found.scale, scale, atol=0.03, rtol=0)
    # A constant on every bias changes nothing, and the ridge prefers them around zero.
    torch.testing.assert_close(found.bias, bias - bias.mean(), atol=0.05, rtol=0)


@pytest.mark.parametrize(("n", "classes", "ridge"), [(40, 2, 1e-6), (400, 5, 1e-6), (30_000, 10, 1e-6), (400, 5, 0.1)])
def test_the_gradient_is_zero_at_the_optimum(n: int, classes: int, ridge: float) -> None:
    log_probs, targets, _, _ = simulated(n, classes)
    found = VectorScaling(ridge=ridge).fit(log_probs, targets, logits=True)
    scale, bias = found.scale.clone().requires_grad_(), found.bias.clone().requires_grad_()
    loss = torch.nn.functional.cross_entropy(log_probs * scale + bias, targets)
    loss = loss + ridge / 2 * ((scale - 1).square().sum() + bias.square().sum())
    for gradient in torch.autograd.grad(loss, (scale, bias)):
        assert gradient.abs().amax() < 1e-6


def test_probabilities_and_logits_with_any_shift_give_the_same() -> None:
    log_probs, targets, _, _ = simulated(500, 4)
    from_probs = VectorScaling().fit(log_probs.exp(), targets)
    shifted = log_probs + torch.randn(500, 1).double()
    from_logits = VectorScaling().fit(shifted, targets, logits=True)
    torch.testing.assert_close(from_probs.scale, from_logits.scale, atol=1e-5, rtol=0)
    torch.testing.assert_close(
        from_probs.transform(log_probs.exp()), from_logits.transform(shifted, logits=True), atol=1e-6, rtol=0
    )


def test_classes_have_no_order() -> None:
    log_probs, targets, _, _ = simulated(500, 4)
    order = torch.tensor([2, 0, 3, 1])
    one = VectorScaling().fit(log_probs, targets, logits=True)
    other = VectorScaling().fit(log_probs[:, order], order.argsort()[targets], logits=True)
    torch.testing.assert_close(other.scale, one.scale[order], atol=1e-5, rtol=0)
    torch.testing.assert_close(other.bias, one.bias[order], atol=1e-5, rtol=0)


def test_it_fits_better_than_one_temperature_where_classes_differ() -> None:
    log_probs, targets, _, _ = simulated(2000, 5)
    probs = log_probs.exp()
    by_vector = nll(VectorScaling().fit(probs, targets).transform(probs), targets)
    by_temperature = nll(TemperatureScaling().fit(probs, targets).transform(probs), targets)
    assert by_vector < by_temperature - 0.1


def test_weights_are_replication() -> None:
    log_probs, targets, _, _ = simulated(300, 3)
    times = torch.randint(4, (300,), generator=torch.Generator().manual_seed(0))
    weighted = VectorScaling().fit(log_probs, targets, weights=times, logits=True)
    again = VectorScaling().fit(log_probs.repeat_interleave(times, 0), targets.repeat_interleave(times), logits=True)
    torch.testing.assert_close(weighted.scale, again.scale, atol=1e-5, rtol=0)
    torch.testing.assert_close(weighted.bias, again.bias, atol=1e-5, rtol=0)


def test_a_strong_ridge_leaves_the_predictions_as_they_are() -> None:
    log_probs, targets, _, _ = simulated(300, 3)
    found = VectorScaling(ridge=1e6).fit(log_probs, targets, logits=True)
    torch.testing.assert_close(found.transform(log_probs.exp()), log_probs.exp(), atol=1e-5, rtol=0)


@settings(max_examples=40)
@given(st.integers(1, 12), st.integers(2, 5), st.sampled_from([0.1, 3.0, 50.0]), st.integers(0, 10_000))
def test_it_never_fits_worse_than_leaving_it(n: int, classes: int, spread: float, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    probs = (spread * torch.randn(n, classes, generator=generator).double()).softmax(-1)
    targets = torch.randint(classes, (n,), generator=generator)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PosthocWarning)
        found = VectorScaling().fit(probs, targets)
    assert found.scale.isfinite().all()
    assert found.bias.isfinite().all()
    assert nll(found.transform(probs), targets) <= nll(probs, targets) + 1e-12


def test_data_that_can_be_decided_right_stay_finite_and_warn() -> None:
    probs = torch.tensor([[0.6, 0.4], [0.7, 0.3], [0.3, 0.7], [0.2, 0.8], [0.9, 0.1]])
    targets, weights = torch.tensor([0, 0, 1, 1, 1]), torch.tensor([1, 1, 1, 1, 0])
    with pytest.warns(PosthocWarning, match="because every held-out example can be decided right: only the ridge"):
        found = VectorScaling().fit(probs, targets, weights=weights)
    assert found.scale.abs().amax() < 1e3
    out = found.transform(probs)[:4]
    assert torch.equal(out.argmax(-1), targets[:4])
    assert nll(out, targets[:4]) < 1e-2


def test_a_class_without_examples_keeps_a_little_probability_and_warns() -> None:
    log_probs, targets, _, _ = simulated(500, 4)
    kept = targets != 2
    with pytest.warns(PosthocWarning, match=r"no example of 1 of the 4 classes \(2\)"):
        found = VectorScaling().fit(log_probs[kept], targets[kept], logits=True)
    share = found.transform(log_probs.exp())[:, 2].mean().item()
    assert 1e-8 < share < 1e-2


@pytest.mark.parametrize("label", [0, 1])
def test_one_example(label: int) -> None:
    with pytest.warns(PosthocWarning, match="1 of the 2 classes .* and every held-out example can be decided right"):
        found = VectorScaling().fit(torch.tensor([[0.7, 0.3]]), torch.tensor([label]))
    assert found.transform(torch.tensor([[0.7, 0.3]]))[0, label] > 0.99


def test_uniform_predictions_become_the_shares_of_the_classes() -> None:
    targets = torch.tensor([0] * 5 + [1] * 3 + [2] * 2)
    found = VectorScaling().fit(torch.full((10, 3), 1 / 3, dtype=torch.float64), targets)
    shares = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
    torch.testing.assert_close(found.transform(torch.full((1, 3), 1 / 3).double())[0], shares, atol=1e-4, rtol=0)


def test_a_thousand_classes() -> None:
    log_probs, targets, _, _ = simulated(500, 1000)
    with pytest.warns(PosthocWarning, match="of the 1000 classes"):
        found = VectorScaling(ridge=1e-4).fit(log_probs, targets, logits=True)
    out = found.transform(log_probs.exp())
    assert out.isfinite().all()
    assert nll(out, targets) < nll(log_probs.exp(), targets) - 1


@pytest.mark.parametrize("ridge", [0, -1.0, math.inf, math.nan, True, "1"])
def test_the_ridge_is_positive(ridge: float) -> None:
    with pytest.raises(InvalidArgumentError, match="`ridge`"):
        VectorScaling(ridge=ridge)
