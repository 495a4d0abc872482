"""`check_loss`: everything that the objective expects of a loss."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection
from typing import Any

import torch
from torch import Tensor

from calibayes.objective import Objective
from calibayes.testing.check_batches import batch, examples, expect_finite_for_every_batch, train
from calibayes.testing.check_runner import checks_in, run_checks
from calibayes.testing.comparisons import close, different, expect, gradient_by_differences
from calibayes.testing.posterior_subject import title_of

__all__ = ["check_loss"]


def check_loss(loss: Callable[[Tensor, Tensor], Tensor], *, skip: Collection[str] = ()) -> None:
    """Check that a loss can stand in an `calibayes.Objective` in the place of the cross-entropy.

    It returns one number per example, finite for every batch and in half precision; leading axes are separate batches; an
    example's loss does not depend on the others; the gradient is that of the value; and `calibayes.fit` uses it.

    Args:
        loss: a `calibayes.objective.Loss`, or any function that an objective takes as its ``loss``.
        skip: names of checks to leave out, as messages have them.

    Raises:
        AssertionError: says which check failed, and what differed.

    Examples:
        >>> calibayes.testing.check_loss(calibayes.Focal(gamma=3.0))
    """
    run_checks(checks_in(__name__, check_loss), _objective(loss).loss, title_of(loss), skip=skip)


def _objective(loss: Any) -> Any:
    return Objective(lam=0.0, beta=0.0, loss=loss)


def check_name(loss: Any) -> None:
    """It has a name, under which its mean is logged, and a `repr` by which checkpoints are recognised."""
    expect(isinstance(getattr(loss, "name", None), str) and loss.name.isidentifier(), "its `name` must be an identifier")
    expect(repr(copy.deepcopy(loss)) == repr(loss), "`repr` of a copy differs: make it a frozen dataclass")


def check_one_number_per_example(loss: Any) -> None:
    """The loss of ``[n, K]`` has shape ``[n]``."""
    for count in (1, 7):
        actual = loss(*batch(count))
        expect(list(actual.shape) == [count], f"the loss of {count} example(s) has shape {list(actual.shape)}, not [{count}]")


def check_finite_for_every_batch(loss: Any) -> None:
    """Loss and gradient are finite for saturated logits, ties, and in half precision."""
    dtypes = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
    expect_finite_for_every_batch(loss, "loss", dtypes, differentiable=True)


def check_examples_are_independent(loss: Any) -> None:
    """An example's loss depends neither on the order nor on the other examples."""
    logits, targets = batch()
    whole = loss(logits, targets)
    order = torch.randperm(len(targets), generator=torch.Generator().manual_seed(1))
    close(loss(logits[order], targets[order]), whole[order], "the losses after a permutation of the examples")
    close(loss(logits[:5], targets[:5]), whole[:5], "the losses of the first five, compared with those among twenty,")


def check_leading_axes(loss: Any) -> None:
    """The mean over samples and examples is that of each sample's loss, with and without weights."""
    logits, targets = batch(12, 3)
    weights = torch.linspace(0, 2, 12, dtype=torch.float64)
    each = torch.stack([loss(sample, targets) for sample in logits])
    close(loss.mean(logits, targets), each.mean(), "`mean` over three samples")
    close(loss.mean(logits, targets, weights), (each * weights).mean(), "`mean` over three samples with weights")
    close(loss.sum(logits, targets), each.sum() / 3, "`sum` over the examples of three samples")


def check_gradient(loss: Any) -> None:
    """The gradient is that of finite differences."""
    logits, targets = batch(6)
    gradient_by_differences(lambda moved: loss(moved, targets).sum(), {"logit": logits})


def check_training(loss: Any) -> None:
    """`fit` uses it: with weights, samples and micro-batches; and not like the cross-entropy, unless it is one."""
    x, y = examples()
    with_weights = (x, y, torch.linspace(0.2, 2, len(y)))
    for bayesian, data in ((False, None), (True, None), (False, with_weights)):
        whole, history = train(_objective(loss), bayesian=bayesian, data=data, samples=2)
        parts, _ = train(_objective(loss), bayesian=bayesian, data=data, samples=2, micro_batch_size=5)
        close(parts, whole, "the state after training in micro-batches, compared with whole batches,")
        expect(loss.name in history.epochs[-1], f"the history has no {loss.name!r}, only {sorted(history.epochs[-1])}")
    logits, targets = batch()
    plain = torch.nn.functional.cross_entropy(logits, targets, reduction="none")
    if not torch.allclose(loss(logits, targets), plain):
        actual, _ = train(_objective(loss))
        different(actual, train(Objective(lam=0.0, beta=0.0))[0], "training with the loss is training with the cross-entropy")
