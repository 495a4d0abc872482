"""Batches, and a small training, to check measures, losses and terms on."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from calibayes.objective import Objective
from calibayes.posterior import MeanField, Point
from calibayes.posterior.abstract_posterior import Posterior
from calibayes.randomness import seeded
from calibayes.testing.comparisons import expect, finite
from calibayes.testing.posterior_subject import sgd
from calibayes.training.fit import fit
from calibayes.training.history import History
from calibayes.training.training_hooks import cloned_state

__all__ = ["batch", "examples", "expect_finite_for_every_batch", "expect_stable_repr", "train"]

_EXAMPLES, _CLASSES = 20, 4


def batch(count: int = _EXAMPLES, *lead: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Logits ``[..., n, K]`` in float64, and labels ``[n]``, of which about half are the most probable class."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(*lead, count, _CLASSES, generator=generator, dtype=torch.float64)
    targets = torch.randint(_CLASSES, (count,), generator=generator)
    top = logits.reshape(-1, count, _CLASSES)[0].argmax(-1)
    return logits, torch.where(torch.rand(count, generator=generator) < 0.4, top, targets)


def expect_finite_for_every_batch(
    value: Callable[[Tensor, Tensor], Tensor], what: str, dtypes: Sequence[torch.dtype], *, differentiable: bool = False
) -> None:
    """Expect finite values and gradients at the edges; only ``differentiable`` functions must have a gradient everywhere."""
    for where, (logits, targets) in _awkward_logits().items():
        for dtype in dtypes:
            leaf = logits.to(dtype).requires_grad_()
            actual = value(leaf, targets)
            finite(actual, f"the {what} for {where} ({dtype})")
            if actual.requires_grad:
                finite(torch.autograd.grad(actual.sum(), leaf)[0], f"the gradient for {where} ({dtype})")
            elif differentiable:
                expect(False, f"the {what} has no gradient: use PyTorch's operations, without `detach` or `item`")


def expect_stable_repr(thing: object) -> None:
    """Expect a `repr` that is the same for a copy and in another process: checkpoints are recognised by it."""
    expect(" at 0x" not in repr(thing), f"`repr` has a memory address, {thing!r}: make it a frozen dataclass")
    expect(repr(copy.deepcopy(thing)) == repr(thing), "`repr` of a copy differs: make it a frozen dataclass")


def _awkward_logits() -> dict[str, tuple[Tensor, Tensor]]:
    """Batches at the edges of what training sees, by what they are."""
    logits, targets = batch()
    top = logits.argmax(-1)
    saturated = 2e4 * torch.eye(_CLASSES, dtype=torch.float64)[top]  # the softmax is exactly 0 and 1
    return {
        "a batch where all are right": (logits, top),
        "a batch where all are wrong": (logits, (top + 1) % _CLASSES),
        "one example": (logits[:1], targets[:1]),
        "confidences of exactly 1, all right": (saturated, top),
        "confidences of exactly 1, some wrong": (saturated, targets),
        "equal logits": (torch.zeros_like(logits), targets),
        "the same example over and over": (logits[:1].expand(_EXAMPLES, -1).clone(), targets),
    }


def examples() -> tuple[Tensor, Tensor]:
    """Data to train on."""
    generator = torch.Generator().manual_seed(4)
    x = torch.randn(24, 4, generator=generator, dtype=torch.float64)
    return x, (x + 0.7 * torch.randn(24, 4, generator=generator, dtype=torch.float64)).argmax(-1)


def train(
    objective: Objective, *, bayesian: bool = False, data: Any = None, **settings: Any
) -> tuple[dict[str, Tensor], History]:
    """The state and history of a small training in float64."""
    with seeded(5):
        net = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, _CLASSES)).double()
    posterior: Posterior = MeanField(net, init_std=0.1) if bayesian else Point(net)
    usual = {"epochs": 2, "batch_size": 12, "seed": 3, "optimizer": sgd, "group": None, "device": "cpu", "progress": False}
    history = fit(posterior, examples() if data is None else data, objective, **{**usual, **settings})
    return cloned_state(posterior), history
