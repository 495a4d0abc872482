"""`check_measure`: everything that the objective expects of a calibration measure."""

from __future__ import annotations

from collections.abc import Collection

import torch
from torch import Tensor

from calibayes.calibration.measures import Measure
from calibayes.objective import Objective
from calibayes.testing.check_batches import batch, expect_finite_for_every_batch, expect_stable_repr, train
from calibayes.testing.check_runner import checks_in, run_checks
from calibayes.testing.comparisons import close, different, expect, finite, gradient_by_differences

__all__ = ["check_measure"]


def check_measure(measure: Measure, *, skip: Collection[str] = ()) -> None:
    """Check that a calibration measure can stand in an `calibayes.Objective`, on any batch that training meets.

    Value and gradient must be finite for every batch; leading axes are separate batches; a weight of two counts as the
    example twice; the order of examples does not matter; the gradient is that of the value; a batch in several parts gives
    the gradient of the whole; and `repr` tells measures apart, since checkpoints are recognised by it.

    Args:
        measure: an object with ``scores`` and ``value``, as `calibayes.calibration.Measure` describes.
        skip: names of checks to leave out, as messages have them.

    Raises:
        AssertionError: says which check failed, and what differed.

    Examples:
        >>> calibayes.testing.check_measure(calibayes.MMCE())
    """
    run_checks(checks_in(__name__, check_measure), measure, repr(measure), skip=skip)


def _scores(measure: Measure, logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    return measure.scores(logits.softmax(-1), targets)


def check_shapes(measure: Measure) -> None:
    """Scores are one number per example within 0 and 1, the value is one number per leading index."""
    for lead in ((), (3,), (2, 3)):
        logits, targets = batch(12, *lead)
        for name, score in zip(("confidence", "correctness"), _scores(measure, logits, targets), strict=True):
            expect(list(score.shape) == [*lead, 12], f"the {name} of [..., n] = {[*lead, 12]} has shape {list(score.shape)}")
            expect(bool(((score > -1e-6) & (score < 1 + 1e-6)).all()), f"the {name} leaves [0, 1]")
        value = measure.value(*_scores(measure, logits, targets))
        expect(list(value.shape) == list(lead), f"`value` for the leading axes {list(lead)} has shape {list(value.shape)}")


def check_finite_for_every_batch(measure: Measure) -> None:
    """Value and gradient are finite for batches that are all right, all wrong, single, saturated or tied."""
    dtypes = (torch.float32, torch.float64)
    expect_finite_for_every_batch(lambda logits, y: measure.value(*_scores(measure, logits, y)), "value", dtypes)
    corners = torch.tensor([0.0, 0.0, 1.0, 1.0, 0.5, 0.5], dtype=torch.float64)
    for size in (1, 2, 4, 6):
        r, c = corners[:size].clone().requires_grad_(), corners.flip(0)[:size].clone().requires_grad_()
        value = measure.value(r, c)
        finite(value, f"the value for confidences {r.tolist()}")
        for gradient in torch.autograd.grad(value, (r, c), allow_unused=True, materialize_grads=True):
            finite(gradient, f"the gradient for confidences {r.tolist()}")


def check_leading_axes(measure: Measure) -> None:
    """Leading axes are independent batches."""
    logits, targets = batch(12, 2, 3)
    r, c = _scores(measure, logits, targets)
    weights = torch.linspace(0.5, 2, 12, dtype=torch.float64)
    for given in (None, weights):
        whole = measure.value(r, c) if given is None else measure.value(r, c, given.expand(r.shape))
        for i in range(2):
            for j in range(3):
                alone = _scores(measure, logits[i, j], targets)
                actual = measure.value(*alone) if given is None else measure.value(*alone, given)
                close(whole[i, j], actual, f"the value of batch {(i, j)} among several, compared with that batch alone")


def check_weights(measure: Measure) -> None:
    """A weight of two is the example twice, and weights of one change nothing."""
    r, c = (score.detach() for score in _scores(measure, *batch()))
    # Examples that count as right or wrong as a whole: half of one has no copies.
    c = (c > 0.5).to(c)
    copies = 1 + torch.arange(len(r)) % 3
    copied = measure.value(r.repeat_interleave(copies), c.repeat_interleave(copies))
    close(measure.value(r, c, copies.to(r)), copied, "the value of weights, compared with copies")
    close(measure.value(r, c, torch.ones_like(r)), measure.value(r, c), "the value of weights of one, compared with none")


def check_order(measure: Measure) -> None:
    """The order of the examples does not matter."""
    logits, targets = batch()
    order = torch.randperm(len(targets), generator=torch.Generator().manual_seed(1))
    one, other = _scores(measure, logits, targets), _scores(measure, logits[order], targets[order])
    close(measure.value(*other), measure.value(*one), "the value after a permutation of the examples")


def check_gradient(measure: Measure) -> None:
    """The gradient is that of finite differences, away from ties."""
    r = torch.linspace(0.262, 0.957, 9, dtype=torch.float64) ** 1.1
    c = torch.linspace(0.93, 0.08, 9, dtype=torch.float64)[torch.tensor([3, 0, 7, 5, 1, 8, 2, 6, 4])]
    gradient_by_differences(measure.value, {"confidence": r, "correctness": c})


def check_training(measure: Measure) -> None:
    """It has an effect on training, and micro-batches train as whole batches do."""
    whole, history = train(Objective(lam=5.0, beta=0.0, calibration=measure))
    plain, _ = train(Objective(lam=0.0, beta=0.0))
    different(whole, plain, "training with the measure is training without it: does a gradient reach the logits?")
    parts, again = train(Objective(lam=5.0, beta=0.0, calibration=measure), micro_batch_size=5)
    # Soft scores are as steep as 1/τ, and rounding grows with them.
    close(parts, whole, "the state after training in micro-batches, compared with whole batches,", 1e-6)
    close(
        torch.tensor(again.epochs[-1]["calibration"]), torch.tensor(history.epochs[-1]["calibration"]), "what is logged", 1e-6
    )


def check_repr(measure: Measure) -> None:
    """`repr` says what the measure is, and is the same for a copy: a checkpoint is recognised by it."""
    expect_stable_repr(measure)
