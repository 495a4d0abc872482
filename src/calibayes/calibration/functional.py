"""The calibration measures as plain functions."""

from __future__ import annotations

from torch import Tensor

from calibayes.calibration.binned import DECE, SBECE
from calibayes.calibration.measures import MMCE, WMMCE, Normalization, ScoreMode

__all__ = ["dece", "mmce", "sbece", "wmmce"]


def wmmce(
    probs: Tensor,
    targets: Tensor,
    *,
    weights: Tensor | None = None,
    kernel_width: float = 0.4,
    scores: ScoreMode = "soft",
    tau_r: float = 1e-3,
    tau_c: float = 1e-2,
    normalization: Normalization = "paper",
    check: bool = True,
) -> Tensor:
    """The weighted maximum mean calibration error; see `WMMCE` for the maths.

    Args:
        probs: class probabilities, shape ``[..., n, K]``; leading axes are independent batches.
        targets: labels in $0 … K-1$, shape ``[..., n]`` or ``[n]``.
        weights: optional non-negative example weights, shape ``[..., n]`` or ``[n]``; only their ratios matter.
        kernel_width: $γ$ of the Laplace kernel.
        scores: ``"soft"`` (fully differentiable) or ``"hard"``.
        tau_r: temperature of the soft confidence.
        tau_c: temperature of the soft correctness.
        normalization: ``"paper"`` or ``"reference"``.
        check: whether to verify the inputs; switch it off in an inner loop.

    Examples:
        >>> probs = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]])
        >>> round(float(wmmce(probs, torch.tensor([0, 1, 1]), scores="hard")), 4)
        0.6518
    """
    measure = WMMCE(mode=scores, tau_r=tau_r, tau_c=tau_c, kernel_width=kernel_width, normalization=normalization)
    return measure(probs, targets, weights, check=check)


def mmce(
    probs: Tensor,
    targets: Tensor,
    *,
    weights: Tensor | None = None,
    kernel_width: float = 0.4,
    scores: ScoreMode = "soft",
    tau_r: float = 1e-3,
    tau_c: float = 1e-2,
    normalization: Normalization = "paper",
    check: bool = True,
) -> Tensor:
    """The maximum mean calibration error; see `MMCE` for the maths and `wmmce` for the arguments."""
    measure = MMCE(mode=scores, tau_r=tau_r, tau_c=tau_c, kernel_width=kernel_width, normalization=normalization)
    return measure(probs, targets, weights, check=check)


def dece(
    probs: Tensor,
    targets: Tensor,
    *,
    weights: Tensor | None = None,
    bins: int = 15,
    temperature: float = 0.01,
    scores: ScoreMode = "soft",
    tau_r: float = 1e-3,
    tau_c: float = 1e-2,
    check: bool = True,
) -> Tensor:
    """The differentiable expected calibration error; see `DECE` for the maths and `wmmce` for the other arguments."""
    measure = DECE(mode=scores, tau_r=tau_r, tau_c=tau_c, bins=bins, temperature=temperature)
    return measure(probs, targets, weights, check=check)


def sbece(
    probs: Tensor,
    targets: Tensor,
    *,
    weights: Tensor | None = None,
    bins: int = 15,
    temperature: float = 0.01,
    norm: float = 2.0,
    scores: ScoreMode = "soft",
    tau_r: float = 1e-3,
    tau_c: float = 1e-2,
    check: bool = True,
) -> Tensor:
    """The soft-binned expected calibration error; see `SBECE` for the maths and `wmmce` for the other arguments."""
    measure = SBECE(mode=scores, tau_r=tau_r, tau_c=tau_c, bins=bins, temperature=temperature, norm=norm)
    return measure(probs, targets, weights, check=check)
