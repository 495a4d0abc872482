r"""Newton's method for scalings whose scores are linear in their parameters: NLL plus a ridge, to tight tolerance.

Steps are found by conjugate gradients with products of the exact Hessian, which cost what a gradient does: the Hessian of
150 classes' matrix would have $5 \cdot 10^8$ entries.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

__all__ = ["LinearScores", "Part", "PerClass", "WholeMatrix", "minimize"]

_NEWTON_STEPS = 200
_CONJUGATE_STEPS = 250
_TOLERANCE = 1e-10  # of the gradient of the mean NLL, in coordinates in which the curvature is about 1
_ROUNDING = 1e-14  # relative: a mean of many numbers is not known better


@dataclass(frozen=True, eq=False)
class Part:
    """Some of the examples.

    Attributes:
        inputs: log-probabilities, ``[m, K]``.
        labels: ``[m, 1]``.
        share: each example's weight, ``[m, 1]``; those of all parts sum to 1.
    """

    inputs: Tensor
    labels: Tensor
    share: Tensor


class LinearScores(ABC):
    """Scores that are linear in parameters, and what Newton's method needs of them."""

    @abstractmethod
    def scores(self, inputs: Tensor, parameters: Tensor) -> Tensor:
        """The scores ``[m, K]``."""

    @abstractmethod
    def gradient(self, inputs: Tensor, errors: Tensor) -> Tensor:
        """The transpose of `scores`: from derivatives by the scores to those by the parameters."""

    @abstractmethod
    def solver(self, parts: list[Part], probs: list[Tensor], ridge: Tensor) -> Callable[[Tensor], Tensor]:
        """A rough inverse of the Hessian: the conjugate gradients' preconditioner."""


class PerClass(LinearScores):
    """A scale and a bias a class: parameters ``[2, K]``."""

    def scores(self, inputs: Tensor, parameters: Tensor) -> Tensor:
        """The scores ``[m, K]``."""
        return (inputs * parameters[0]).add_(parameters[1])

    def gradient(self, inputs: Tensor, errors: Tensor) -> Tensor:
        """From derivatives by the scores to those by scale and bias."""
        return torch.stack(((errors * inputs).sum(0), errors.sum(0)))

    def solver(self, parts: list[Part], probs: list[Tensor], ridge: Tensor) -> Callable[[Tensor], Tensor]:
        """Solve each class by itself: its scale and bias pull nearly the same way."""
        moments = torch.zeros(3, ridge.shape[1], dtype=torch.float64)
        for part, predicted in zip(parts, probs, strict=True):
            bend = predicted * (1 - predicted) * part.share
            moments += torch.stack((bend.sum(0), (bend * part.inputs).sum(0), (bend * part.inputs.square()).sum(0)))
        of_scale, of_bias, both = moments[2] + ridge[0], moments[0] + ridge[1], moments[1]
        # The scale is eliminated from the bias's equation; rounding may make what is left negative.
        left = (of_bias - both * (both / of_scale)).maximum(ridge[1])

        def solve(gradient: Tensor) -> Tensor:
            bias = (gradient[1] - both * (gradient[0] / of_scale)) / left
            return torch.stack(((gradient[0] - both * bias) / of_scale, bias))

        return solve


class WholeMatrix(LinearScores):
    """A matrix and a bias: parameters ``[K, K + 1]``, the bias last."""

    def scores(self, inputs: Tensor, parameters: Tensor) -> Tensor:
        """The scores ``[m, K]``."""
        return torch.addmm(parameters[:, -1], inputs, parameters[:, :-1].T)

    def gradient(self, inputs: Tensor, errors: Tensor) -> Tensor:
        """From derivatives by the scores to those by matrix and bias."""
        return torch.cat((errors.T @ inputs, errors.sum(0)[:, None]), 1)

    def solver(self, parts: list[Part], probs: list[Tensor], ridge: Tensor) -> Callable[[Tensor], Tensor]:
        r"""Invert $A \otimes C + \rho$: the softmax's mean Hessian and the second moments of the inputs, as if independent."""
        softmax, inputs = torch.zeros(len(ridge), len(ridge)).double(), torch.zeros_like(ridge[:1].T @ ridge[:1])
        for part, predicted in zip(parts, probs, strict=True):
            weighted = predicted * part.share
            softmax += weighted.sum(0).diag() - weighted.T @ predicted
            with_one = torch.cat((part.inputs, torch.ones_like(part.share)), 1)
            inputs += with_one.T @ (with_one * part.share)
        (left, turn), (right, turn_inputs) = torch.linalg.eigh(softmax), torch.linalg.eigh(inputs)
        curvature = left.clamp_min(0)[:, None] * right.clamp_min(0) + ridge.amax()
        return lambda gradient: turn @ (turn.T @ gradient @ turn_inputs / curvature) @ turn_inputs.T


def minimize(model: LinearScores, parts: list[Part], start: Tensor, ridge: Tensor) -> Tensor:
    r"""Parameters $\theta$ at the minimum of mean NLL $+ \frac12 \sum_j \rho_j (\theta_j - \theta^0_j)^2$.

    Args:
        model: scores from parameters.
        parts: the examples.
        start: $\theta^0$.
        ridge: $\rho > 0$, in the shape of the parameters.
    """
    best, value, probs = start, *_nll(model, parts, start)
    for _ in range(_NEWTON_STEPS):
        gradient = ridge * (best - start)
        for part, predicted in zip(parts, probs, strict=True):
            errors = predicted.scatter_add(-1, part.labels, -torch.ones_like(part.share)).mul_(part.share)
            gradient += model.gradient(part.inputs, errors)
        solve = model.solver(parts, probs, ridge)
        step, decrease = _conjugate_gradients(partial(_bend, model, parts, probs, ridge), solve, gradient)
        if decrease <= _TOLERANCE**2:
            break
        length = 1.0
        while True:
            following = best + length * step
            lower, further = _nll(model, parts, following)
            lower += float((ridge * (following - start).square()).sum()) / 2
            if lower <= value - 1e-4 * length * decrease + _ROUNDING * abs(value):
                break
            length /= 2
            if length < 1e-12:
                return best
        best, value, probs = following, lower, further
    return best


def _nll(model: LinearScores, parts: list[Part], parameters: Tensor) -> tuple[float, list[Tensor]]:
    """The mean NLL, and every example's probabilities."""
    value, probs = 0.0, []
    for part in parts:
        predicted = model.scores(part.inputs, parameters).log_softmax(-1)
        value -= float((predicted.gather(-1, part.labels) * part.share).sum())
        probs.append(predicted.exp_())
    return value, probs


def _bend(model: LinearScores, parts: list[Part], probs: list[Tensor], ridge: Tensor, direction: Tensor) -> Tensor:
    """The Hessian times a direction."""
    result = ridge * direction
    for part, predicted in zip(parts, probs, strict=True):
        change = model.scores(part.inputs, direction)
        change -= (change * predicted).sum(-1, keepdim=True)
        result += model.gradient(part.inputs, change.mul_(predicted).mul_(part.share))
    return result


def _conjugate_gradients(
    bend: Callable[[Tensor], Tensor], solve: Callable[[Tensor], Tensor], gradient: Tensor
) -> tuple[Tensor, float]:
    """A Newton step, as exact as it pays to be, and the decrease that the tangent promises for it."""
    step, residual = torch.zeros_like(gradient), -gradient
    toward = solve(residual)
    direction, size = toward, float((residual * toward).sum())
    # Far from the minimum a rough step is as good; near it, each makes the error that of the last, squared.
    enough = size * min(0.01, size)
    for _ in range(_CONJUGATE_STEPS):
        if not size > 0:
            break
        bent = bend(direction)
        curvature = float((direction * bent).sum())
        if not curvature > 0:
            break
        step = step + size / curvature * direction
        residual = residual - size / curvature * bent
        toward = solve(residual)
        last, size = size, float((residual * toward).sum())
        if size <= enough:
            break
        direction = toward + size / last * direction
    return step, -float((gradient * step).sum())
