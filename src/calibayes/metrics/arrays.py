"""What every metric does first: torch or numpy in, checked tensors on the CPU out."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from calibayes.arrays import from_numpy
from calibayes.checks import check_predictions
from calibayes.errors import InvalidArgumentError, InvalidProbabilitiesError, InvalidTargetsError

__all__ = ["Array", "as_predictions", "check_bins"]

Array: TypeAlias = Tensor | npt.NDArray[Any]


def as_predictions(probs: Array, targets: Array, *, check: bool = True) -> tuple[Tensor, Tensor]:
    """``probs [n, K]`` and ``targets [n]`` as detached CPU tensors, sharing memory with numpy arrays where possible.

    Args:
        probs: class probabilities, one row per example.
        targets: the true classes, integers in ``0 … K-1``.
        check: look at the values; ``False`` saves two passes over data already known to be good.

    Example:
        >>> probs, targets = as_predictions(np.array([[0.7, 0.3]]), np.array([0], dtype=np.uint8))
        >>> probs.dtype, targets.dtype
        (torch.float64, torch.int64)
    """
    if not isinstance(probs, Tensor | np.ndarray):
        raise InvalidProbabilitiesError(
            f"Expected `probs` to be a torch.Tensor or a numpy.ndarray, but got {type(probs).__name__}. {_HINT}"
        )
    if not isinstance(targets, Tensor | np.ndarray):
        raise InvalidTargetsError(
            f"Expected `targets` to be a torch.Tensor or a numpy.ndarray, but got {type(targets).__name__}. {_HINT}"
        )
    if probs.ndim != 2:
        raise InvalidProbabilitiesError(
            f"Expected `probs` of shape [n, K], but got {list(probs.shape)}. "
            "For two classes given as one column p, stack (1 - p, p)."
        )
    if isinstance(probs, np.ndarray):
        if probs.dtype.kind not in "fiub":
            raise InvalidProbabilitiesError(f"Expected `probs` to hold numbers, but got dtype {probs.dtype}.")
        probs = from_numpy(probs)
    if isinstance(targets, np.ndarray):
        if targets.dtype.kind not in "fiub":
            raise InvalidTargetsError(
                f"Expected `targets` to be class indices of an integer type, but got dtype {targets.dtype}. "
                "Names of classes: pass `numpy.unique(targets, return_inverse=True)[1]`."
            )
        targets = from_numpy(targets)
    probs, targets = probs.detach().cpu(), targets.detach().cpu()
    if not targets.is_floating_point() and targets.dtype != torch.bool:
        # torch cannot compare unsigned types wider than a byte, nor index with most others.
        targets = targets.long()
    if check:
        check_predictions(probs, targets)
    return probs, targets


def check_bins(bins: int) -> int:
    """``bins`` as an int, or an error that quotes it when it is not a positive integer."""
    if isinstance(bins, bool) or not isinstance(bins, int | np.integer) or bins < 1:
        raise InvalidArgumentError(f"Expected `bins` to be a positive integer, but got {bins!r}.")
    return int(bins)


_HINT = "Lists and pandas objects: pass `numpy.asarray(...)`."
