"""Losses against their equations, written out one example at a time."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import calibayes as cb
from calibayes.errors import InvalidArgumentError, InvalidTargetsError
from calibayes.objective import Loss

KL = torch.zeros((), dtype=torch.float64)


def softmax(row: list[float]) -> list[float]:
    powers = [math.exp(value - max(row)) for value in row]
    return [power / math.fsum(powers) for power in powers]


def smoothed(share: float) -> Callable[[list[float], int], float]:
    def loss(p: list[float], y: int) -> float:
        return -(1 - share) * math.log(p[y]) - share / len(p) * math.fsum(map(math.log, p))

    return loss


def focal(gamma: float) -> Callable[[list[float], int], float]:
    return lambda p, y: -((1 - p[y]) ** gamma) * math.log(p[y])


def flsd(p: list[float], y: int) -> float:
    return focal(5.0 if p[y] < 0.2 else 3.0)(p, y)


CASES: dict[str, tuple[Loss, Callable[[list[float], int], float]]] = {
    "cross-entropy": (cb.CrossEntropy(), smoothed(0.0)),
    "smoothed": (cb.CrossEntropy(label_smoothing=0.15), smoothed(0.15)),
    "focal": (cb.Focal(), focal(2.0)),
    "focal, half": (cb.Focal(gamma=0.5), focal(0.5)),
    "focal, none": (cb.Focal(gamma=0.0), smoothed(0.0)),
    "flsd": (cb.Focal(schedule="flsd"), flsd),
}


def batch(*shape: int, scale: float = 2.0) -> tuple[Tensor, Tensor]:
    return torch.randn(*shape, 4, dtype=torch.float64) * scale, torch.randint(4, shape[-1:])


@pytest.mark.parametrize("shape", [(30,), (3, 30)])
@pytest.mark.parametrize("name", CASES)
def test_each_example_has_the_equations_number(name: str, shape: tuple[int, ...]) -> None:
    loss, equation = CASES[name]
    logits, targets = batch(*shape)
    samples = logits.reshape(-1, 30, 4).tolist()
    expected = torch.tensor(
        [[equation(softmax(row), y) for row, y in zip(sample, targets.tolist(), strict=True)] for sample in samples]
    )
    torch.testing.assert_close(loss(logits, targets), expected.double().view(shape), rtol=1e-6, atol=1e-7)
    weights = torch.rand(30, dtype=torch.float64)
    for given, factors in ((None, torch.ones(30)), (weights, weights)):
        assert float(loss.mean(logits, targets, given)) == pytest.approx(float((expected * factors).mean()), rel=1e-6)
        assert float(loss.sum(logits, targets, given)) == pytest.approx(float((expected * factors).mean(0).sum()), rel=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_gradients_agree_with_finite_differences(name: str, weighted: bool) -> None:
    loss, _ = CASES[name]
    logits, targets = batch(2, 5)
    weights = torch.rand(5, dtype=torch.float64) if weighted else None
    assert torch.autograd.gradcheck(lambda logits: loss.mean(logits, targets, weights), logits.requires_grad_())


def test_flsd_treats_its_gamma_as_a_constant() -> None:
    """Its gradient is that of the focal loss with each example's own γ, also next to the threshold."""
    logits = torch.tensor([[0.0, 1.3], [0.0, 1.5], [3.0, 0.0]], dtype=torch.float64, requires_grad=True)
    p = logits.softmax(-1)[:, 0]
    assert (p < 0.2).tolist() == [False, True, False]
    targets = torch.zeros(3, dtype=torch.int64)
    apart = torch.stack([cb.Focal(gamma=gamma)(logits[k : k + 1], targets[:1])[0] for k, gamma in enumerate((3.0, 5.0, 3.0))])
    result = cb.Focal(schedule="flsd")(logits, targets)
    torch.testing.assert_close(result, apart)
    (one,), (other,) = (torch.autograd.grad(value.sum(), logits, retain_graph=True) for value in (result, apart))
    torch.testing.assert_close(one, other)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", CASES)
def test_saturated_logits_have_a_finite_loss_and_gradient(name: str, dtype: torch.dtype) -> None:
    loss, _ = CASES[name]
    for size in (20.0, 90.0, 6e4):
        logits = (torch.tensor([[1.0, -1, 0], [-1, 1, 0], [0, 0, 0], [0, 0, -1]]) * size).to(dtype).requires_grad_()
        value = loss.mean(logits, torch.tensor([0, 0, 0, 2]))
        value.backward()
        assert bool(value.isfinite())
        assert logits.grad is not None
        assert bool(logits.grad.isfinite().all())


def test_no_focus_is_the_cross_entropy() -> None:
    logits, targets = batch(40, scale=30.0)
    logits.requires_grad_()
    values = [loss.mean(logits, targets) for loss in (cb.Focal(gamma=0.0), cb.CrossEntropy())]
    torch.testing.assert_close(values[0], values[1], rtol=1e-14, atol=0)
    (one,), (other,) = (torch.autograd.grad(value, logits) for value in values)
    torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-15)


class Brier:
    """A loss of one's own: an object with a name."""

    name = "brier"

    def __call__(self, logits: Tensor, targets: Tensor) -> Tensor:
        return (logits.softmax(-1) - F.one_hot(targets, logits.shape[-1])).square().sum(-1)


class BrierModule(nn.Module):
    def forward(self, logits: Tensor, targets: Tensor) -> Tensor:
        return Brier()(logits, targets)


def brier_function(logits: Tensor, targets: Tensor) -> Tensor:
    return Brier()(logits, targets)


OWN: dict[str, Any] = {
    "brier": Brier(),
    "BrierModule": BrierModule(),
    "brier_function": brier_function,
    "own_loss": lambda logits, targets: (logits.softmax(-1) - F.one_hot(targets, logits.shape[-1])).square().sum(-1),
    "cross_entropy": functools.partial(F.cross_entropy, reduction="none"),
    "CrossEntropyLoss": nn.CrossEntropyLoss(reduction="none"),
}


@pytest.mark.parametrize("name", OWN)
def test_a_loss_of_ones_own_is_what_is_minimised(name: str) -> None:
    logits, targets = batch(3, 20)
    logits.requires_grad_()
    terms = cb.Objective(lam=0.0, loss=OWN[name])(logits, targets, KL, dataset_size=10)
    assert list(terms.values) == [name, "calibration", "kl"]
    ours: Any = cb.CrossEntropy() if "ross" in name else Brier()
    expected = ours(logits, targets.expand(3, 20)).mean()
    torch.testing.assert_close(terms.total, expected)
    (one,), (other,) = (torch.autograd.grad(value, logits, retain_graph=True) for value in (terms.total, expected))
    torch.testing.assert_close(one, other)


@pytest.mark.parametrize("samples", [1, 3])
def test_fit_minimises_a_loss_of_ones_own(samples: int) -> None:
    """What the library's focal loss trains, a function that computes it by hand trains too, to the bit."""

    def focal(logits: Tensor, targets: Tensor) -> Tensor:
        return cb.Focal()(logits, targets)

    data, net = (torch.randn(50, 4), torch.arange(50) % 3), nn.Linear(4, 3)
    result = []
    for loss in (cb.Focal(), focal, cb.CrossEntropy()):
        posterior = cb.MeanField(net)
        history = cb.fit(posterior, data, cb.Objective(loss=loss), epochs=2, batch_size=20, samples=samples, micro_batch_size=9)
        result.append((posterior.mu.detach(), [step.total for step in history.steps]))
    assert torch.equal(result[0][0], result[1][0])
    assert result[0][1] == result[1][1]
    assert not torch.equal(result[0][0], result[2][0])


@pytest.mark.parametrize(
    ("loss", "got"),
    [
        (F.cross_entropy, r"\[\]"),
        (nn.CrossEntropyLoss(), r"\[\]"),
        (lambda logits, targets: logits, r"\[5, 4\]"),
        (lambda logits, targets: 0.5, "float"),
    ],
)
def test_a_loss_must_return_one_number_per_example(loss: Any, got: str) -> None:
    logits, targets = batch(5)
    with pytest.raises(InvalidArgumentError, match=rf"return one number per example, shape \[5\], but got {got}\. Return one"):
        cb.Objective(loss=loss)(logits, targets, KL, dataset_size=10)
    with pytest.raises(InvalidArgumentError, match="return one number per example"):
        cb.fit(cb.Point(nn.Linear(4, 4).double()), (logits, targets), cb.Objective(loss=loss), epochs=1)


def test_a_loss_without_gradient_is_refused() -> None:
    logits, targets = batch(5)
    objective = cb.Objective(loss=lambda logits, targets: logits.detach().sum(-1))
    with pytest.raises(InvalidArgumentError, match="'own_loss' has no gradient"):
        objective(logits.requires_grad_(), targets, KL, dataset_size=10)


@pytest.mark.parametrize("loss", [cb.CrossEntropy(), cb.Focal(), nn.CrossEntropyLoss(reduction="none")])
def test_no_label_is_passed_over(loss: Any) -> None:
    logits, targets = batch(5)
    targets[2] = -100
    with pytest.raises(InvalidTargetsError, match="-100"):
        cb.Objective(loss=loss)(logits, targets, KL, dataset_size=10)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: cb.CrossEntropy(label_smoothing=1.0), r"`label_smoothing` to be at least 0 and below 1, but got 1\.0"),
        (lambda: cb.Focal(gamma=-1.0), r"`gamma` to be a non-negative finite number, but got -1\.0"),
        (lambda: cb.Focal(schedule="53"), "`schedule` to be None or 'flsd', but got '53'"),  # type: ignore[arg-type]
        (lambda: cb.Focal(gamma=3.0, schedule="flsd"), r"gamma=3\.0 would have no effect"),
        (lambda: cb.Objective(loss=cb.Focal), r"but got the class Focal: pass Focal\(\)"),  # type: ignore[arg-type]
        (lambda: cb.Objective(loss="focal"), "or a function of .* but got 'focal'"),  # type: ignore[arg-type]
        (lambda: cb.Objective(loss=nn.Linear(3, 3)), "Linear has trainable parameters"),
    ],
)
def test_refusals(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        make()
