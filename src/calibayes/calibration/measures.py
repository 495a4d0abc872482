r"""Differentiable calibration measures: what AECE can be in the objective.

A measure sees the network only through the confidences $r$ and the correctness $c$, so each comes in two steps: ``scores``
turns probabilities into $(r, c)$, and ``value`` turns $(r, c)$ into a number. Training on a batch that lies in several
pieces needs the second step on its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal, Protocol, get_args

import torch
from torch import Tensor

from calibayes.calibration.kernel import kernel_norm
from calibayes.calibration.scores import confidence, correctness
from calibayes.checks import check_predictions, positive
from calibayes.errors import InvalidArgumentError

__all__ = ["MMCE", "WMMCE", "Measure", "Normalization", "ScoreMode", "ScoredMeasure", "one_of", "shares"]

ScoreMode = Literal["soft", "hard"]
Normalization = Literal["paper", "reference"]


class Measure(Protocol):
    """A differentiable calibration measure, as `calibayes.Objective` uses it."""

    def scores(self, probs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Confidence and correctness, each ``[..., n]``, of probabilities ``[..., n, K]``."""
        ...

    def value(self, r: Tensor, c: Tensor, weights: Tensor | None = None) -> Tensor:
        """The measure of confidences and correctness ``[..., n]``, one number per leading index."""
        ...


@dataclass(frozen=True, kw_only=True)
class ScoredMeasure(ABC):
    """A measure of confidence and correctness, hard or smoothed.

    Attributes:
        mode: ``"soft"`` for the fully differentiable scores of eqs (rhat) and (chat), ``"hard"`` for Kumar et al.'s.
        tau_r: temperature of the smoothed confidence.
        tau_c: temperature of the smoothed correctness.
    """

    mode: ScoreMode = "soft"
    tau_r: float = 1e-3
    tau_c: float = 1e-2

    def __post_init__(self) -> None:
        one_of("mode", self.mode, get_args(ScoreMode))
        positive("tau_r", self.tau_r)
        positive("tau_c", self.tau_c)

    def scores(self, probs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Confidence and correctness, each ``[..., n]``; the inputs are not checked."""
        soft = self.mode == "soft"
        r = confidence(probs, self.tau_r if soft else None, check=False)
        return r, correctness(probs, targets, self.tau_c if soft else None, check=False)

    @abstractmethod
    def value(self, r: Tensor, c: Tensor, weights: Tensor | None = None) -> Tensor:
        """The measure given confidences and correctness ``[..., n]``."""

    def __call__(self, probs: Tensor, targets: Tensor, weights: Tensor | None = None, *, check: bool = True) -> Tensor:
        """The measure of probabilities ``[..., n, K]``, one number per leading index."""
        if check:
            check_predictions(probs, targets, weights)
        r, c = self.scores(probs, targets)
        return self.value(r, c, None if weights is None else weights.to(r).expand(r.shape))


@dataclass(frozen=True, kw_only=True)
class _KernelMeasure(ScoredMeasure, ABC):
    kernel_width: float = 0.4
    normalization: Normalization = "paper"

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("kernel_width", self.kernel_width)
        one_of("normalization", self.normalization, get_args(Normalization))


@dataclass(frozen=True, kw_only=True)
class WMMCE(_KernelMeasure):
    r"""The weighted maximum mean calibration error of Kumar et al. (2018), eq. (weighted): the paper's AECE.

    $$ u_i = \frac{c_i(1-r_i)}{\max(n_c, 1)} - \frac{(1-c_i)r_i}{\max(n-n_c, 1)}, \qquad
       \mathrm{WMMCE} = \sqrt{u^\top K u}, \quad K_{ij} = e^{-|r_i-r_j|/\gamma}. $$

    It is not zero for a calibrated classifier unless half its decisions are right: it pulls confidence towards ½.
    `MMCE` is zero at calibration. See Kumar, Sarawagi and Jain, "Trainable Calibration Measures for Neural Networks from Kernel
    Mean Embeddings" (2018, https://proceedings.mlr.press/v80/kumar18a.html).

    Attributes:
        kernel_width: $\gamma$.
        normalization: ``"paper"``, or ``"reference"`` for $u_i = c_i(1-r_i)/n_c^2 - (1-c_i)r_i/(n-n_c)^2$ as in the
            code published with Kumar et al.

    Examples:
        >>> probs = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]])
        >>> round(float(WMMCE(mode="hard")(probs, torch.tensor([0, 1, 1]))), 4)
        0.6518
    """

    def value(self, r: Tensor, c: Tensor, weights: Tensor | None = None) -> Tensor:
        right, wrong = c, 1 - c
        # One example's worth: an empty group stays at zero and a nearly empty soft one bounded.
        least: Tensor | float = 1.0
        if weights is not None:
            some = weights > 0
            weights = weights / (weights.sum(-1, keepdim=True) / some.sum(-1, keepdim=True))
            right, wrong = weights * right, weights * wrong
            least = torch.where(some, weights, torch.inf).amin(-1, keepdim=True)
        n_right, n_wrong = _at_least(right, least), _at_least(wrong, least)
        if self.normalization == "reference":
            n_right, n_wrong = n_right.square(), n_wrong.square()
        return kernel_norm(r, right * (1 - r) / n_right - wrong * r / n_wrong, self.kernel_width)


@dataclass(frozen=True, kw_only=True)
class MMCE(_KernelMeasure):
    r"""The maximum mean calibration error of Kumar et al. (2018): zero in the limit of many examples at calibration.

    $$ u_i = (c_i - r_i)/n, \qquad \mathrm{MMCE} = \sqrt{u^\top K u}. $$

    See https://proceedings.mlr.press/v80/kumar18a.html.

    Attributes:
        kernel_width: $\gamma$.
        normalization: accepted for symmetry with `WMMCE`; the published code normalises MMCE as the paper does.

    Examples:
        >>> probs = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]])
        >>> round(float(MMCE(mode="hard")(probs, torch.tensor([0, 1, 1]))), 4)
        0.1757
    """

    def value(self, r: Tensor, c: Tensor, weights: Tensor | None = None) -> Tensor:
        return kernel_norm(r, (c - r) * shares(r, weights), self.kernel_width)


def shares(r: Tensor, weights: Tensor | None) -> Tensor | float:
    """Return the fraction of the whole that each example is."""
    return 1 / r.shape[-1] if weights is None else weights / weights.sum(-1, keepdim=True)


def _at_least(members: Tensor, least: Tensor | float) -> Tensor:
    total = members.sum(-1, keepdim=True)
    return total.clamp_min(least) if isinstance(least, float) else torch.maximum(total, least)


def one_of(name: str, value: object, options: tuple[str, ...]) -> None:
    """Raise `InvalidArgumentError` unless ``value`` is one of the options."""
    if value not in options:
        raise InvalidArgumentError(f"Expected `{name}` to be {' or '.join(map(repr, options))}, but got {value!r}.")
