"""The calibration measures as plain functions; their settings are those of the classes, by name."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from calibayes.calibration.binned import DECE, SBECE
from calibayes.calibration.measures import MMCE, WMMCE, ScoredMeasure, ScoreMode

__all__ = ["dece", "mmce", "sbece", "wmmce"]


def wmmce(probs: Tensor, targets: Tensor, **settings: Any) -> Tensor:
    """The weighted maximum mean calibration error; see `WMMCE` for the maths.

    Args:
        probs: class probabilities, shape ``[..., n, K]``; leading axes are independent batches.
        targets: labels in $0 … K-1$, shape ``[..., n]`` or ``[n]``.
        settings: those of `WMMCE`, with its defaults: ``kernel_width``, ``tau_r``, ``tau_c`` and ``normalization``;
            ``scores="hard"`` for its ``mode``, instead of ``"soft"`` (fully differentiable); ``weights``, non-negative
            example weights of shape ``[..., n]`` or ``[n]``, of which only the ratios matter; and ``check=False`` to skip
            the checks of the inputs in an inner loop.

    Examples:
        >>> probs = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]])
        >>> round(float(wmmce(probs, torch.tensor([0, 1, 1]), scores="hard")), 4)
        0.6518
    """
    return _measured(WMMCE, probs, targets, **settings)


def mmce(probs: Tensor, targets: Tensor, **settings: Any) -> Tensor:
    """The maximum mean calibration error; see `MMCE` for the maths and `wmmce` for the arguments."""
    return _measured(MMCE, probs, targets, **settings)


def dece(probs: Tensor, targets: Tensor, **settings: Any) -> Tensor:
    """The differentiable expected calibration error; see `DECE` for the maths and settings, and `wmmce` for the others."""
    return _measured(DECE, probs, targets, **settings)


def sbece(probs: Tensor, targets: Tensor, **settings: Any) -> Tensor:
    """The soft-binned expected calibration error; see `SBECE` for the maths and settings, and `wmmce` for the others."""
    return _measured(SBECE, probs, targets, **settings)


def _measured(
    kind: type[ScoredMeasure],
    probs: Tensor,
    targets: Tensor,
    weights: Tensor | None = None,
    scores: ScoreMode = "soft",
    check: bool = True,
    **settings: Any,
) -> Tensor:
    return kind(mode=scores, **settings)(probs, targets, weights, check=check)
