"""Structured matrix scaling: the reference's numbers, the optimum by autograd, symmetries, and little and much data."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from calibayes.errors import InvalidArgumentError
from calibayes.metrics import nll
from calibayes.posthoc import PosthocWarning, StructuredMatrixScaling, TemperatureScaling


def simulated(n: int, classes: int, seed: int = 0, noise: float = 0.15) -> tuple[Tensor, Tensor]:
    """Logits that are too large, mixed up and biased, and labels."""
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(n, classes, generator=generator).double()
    mixed = 0.6 * torch.eye(classes).double() + noise * torch.randn(classes, classes, generator=generator).double()
    bias = 0.5 * torch.randn(classes, generator=generator).double()
    return logits, torch.multinomial((logits @ mixed.T + bias).softmax(-1), 1, generator=generator)[:, 0]


def objective(logits: Tensor, targets: Tensor, scaling: StructuredMatrixScaling, parameters: Tensor) -> Tensor:
    """The paper's objective, written down once more, without a line of the library's."""
    n, classes = logits.shape
    softened = (logits / scaling.temperature).softmax(-1)
    inputs = ((n * softened + 1 / classes) / (n + 1)).log()
    matrix, bias = parameters[:, :-1], parameters[:, -1]
    change = matrix - torch.eye(classes)
    diagonal = change.diagonal()
    off_diagonal = change - diagonal.diag()
    penalty = classes * (bias.square().sum() + diagonal.square().sum()) + classes * (classes - 1) * off_diagonal.square().sum()
    return cross_entropy(inputs @ matrix.T + bias, targets) + scaling.strength * penalty / n


def parameters_of(scaling: StructuredMatrixScaling) -> Tensor:
    return torch.cat((scaling.matrix, scaling.bias[:, None]), 1)


def test_the_reference_implementation_says_the_same() -> None:
    """SMSCalibrator of probmetrics 1.3.0, whose search stops earlier: it gives a slightly larger objective."""
    logits, targets = simulated(400, 4)
    scaling = StructuredMatrixScaling().fit(logits.softmax(-1), targets)
    reference = torch.tensor(
        [
            [1.0882, 0.1207, -0.1634, -0.0446, 0.0916],
            [-0.1662, 1.1551, 0.0465, -0.1624, 0.1151],
            [-0.0552, -0.1416, 1.0305, 0.2210, -0.1744],
            [0.1923, -0.0308, 0.1071, 0.9572, -0.0323],
        ],
        dtype=torch.float64,
    )
    predicted = [[0.1414, 0.2027, 0.4150, 0.2408], [0.4701, 0.4934, 0.0286, 0.0079], [0.3046, 0.0537, 0.3691, 0.2726]]
    torch.testing.assert_close(parameters_of(scaling), reference, atol=5e-4, rtol=0)
    torch.testing.assert_close(scaling.transform(logits.softmax(-1))[:3], torch.tensor(predicted).double(), atol=1e-3, rtol=0)
    ours, theirs = (objective(logits, targets, scaling, each) for each in (parameters_of(scaling), reference))
    assert ours <= theirs <= ours + 1e-5


@pytest.mark.parametrize(
    ("n", "classes", "strength"), [(30, 3, 1.0), (400, 4, 1.0), (400, 4, 1e-4), (2000, 20, 1.0), (100, 2, 1.0)]
)
def test_the_gradient_is_zero_at_the_optimum(n: int, classes: int, strength: float) -> None:
    logits, targets = simulated(n, classes)
    scaling = StructuredMatrixScaling(strength=strength).fit(logits, targets, logits=True)
    parameters = parameters_of(scaling).requires_grad_()
    (gradient,) = torch.autograd.grad(objective(logits, targets, scaling, parameters), parameters)
    assert gradient.abs().amax() < 1e-8


def test_weights_are_replication() -> None:
    logits, targets = simulated(300, 3)
    times = torch.randint(4, (300,), generator=torch.Generator().manual_seed(0))
    weighted = StructuredMatrixScaling().fit(logits, targets, weights=times, logits=True)
    again = StructuredMatrixScaling().fit(logits.repeat_interleave(times, 0), targets.repeat_interleave(times), logits=True)
    torch.testing.assert_close(parameters_of(weighted), parameters_of(again), atol=1e-7, rtol=0)


def test_classes_have_no_order() -> None:
    logits, targets = simulated(500, 4)
    order = torch.tensor([2, 0, 3, 1])
    one = StructuredMatrixScaling().fit(logits, targets, logits=True)
    other = StructuredMatrixScaling().fit(logits[:, order], order.argsort()[targets], logits=True)
    torch.testing.assert_close(other.matrix, one.matrix[order][:, order], atol=1e-7, rtol=0)
    torch.testing.assert_close(other.bias, one.bias[order], atol=1e-7, rtol=0)


def test_a_strong_penalty_leaves_a_temperature_and_smoothing() -> None:
    logits, targets = simulated(300, 3)
    scaled = StructuredMatrixScaling(strength=1e8).fit(logits, targets, logits=True).transform(logits, logits=True)
    temperature = TemperatureScaling().fit(logits, targets, logits=True).transform(logits, logits=True)
    torch.testing.assert_close(scaled, (300 * temperature + 1 / 3) / 301, atol=1e-6, rtol=0)


def test_calibrated_predictions_stay_as_data_grow() -> None:
    changes = []
    for n in (1000, 4000, 16_000, 64_000):
        generator = torch.Generator().manual_seed(0)
        probs = (2 * torch.randn(n, 3, generator=generator).double()).softmax(-1)
        targets = torch.multinomial(probs, 1, generator=generator)[:, 0]
        changes.append(float((StructuredMatrixScaling().fit(probs, targets).transform(probs) - probs).abs().mean()))
    assert changes[0] > 2 * changes[2]
    assert changes[1] > 2 * changes[3]
    assert changes[3] < 5e-3


def test_it_learns_confusions_that_no_temperature_can() -> None:
    logits, targets = simulated(8000, 5)
    fit, test = slice(0, 4000), slice(4000, 8000)
    by_matrix, by_temperature = (
        nll(scaling.fit(logits[fit], targets[fit], logits=True).transform(logits[test], logits=True), targets[test])
        for scaling in (StructuredMatrixScaling(), TemperatureScaling())
    )
    assert by_matrix < by_temperature - 0.05


def test_probabilities_that_underflowed_stay_bounded() -> None:
    logits, targets = simulated(500, 3)
    probs = (200 * logits.float()).softmax(-1)
    assert (probs == 0).any()
    out = StructuredMatrixScaling().fit(probs, targets).transform(probs)
    assert bool((out > 1e-6).all())


def test_data_that_settle_no_temperature_warn() -> None:
    probs = torch.tensor([[0.6, 0.3, 0.1], [0.3, 0.6, 0.1], [0.2, 0.2, 0.6]])
    with pytest.warns(PosthocWarning, match="Every held-out example is decided right"):
        out = StructuredMatrixScaling().fit(probs, torch.tensor([0, 1, 2])).transform(probs)
    assert bool((out.amax(-1) < 0.99).all())


def test_the_strength_is_positive() -> None:
    with pytest.raises(InvalidArgumentError, match="`strength`"):
        StructuredMatrixScaling(strength=0)
