"""Predictions from torch or numpy as checked tensors on the CPU, which every metric starts from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from calibayes.checks import check_predictions, check_weights
from calibayes.errors import InvalidArgumentError, InvalidProbabilitiesError, InvalidTargetsError
from calibayes.numpy_arrays import from_numpy

__all__ = ["Array", "Predictions", "as_predictions"]

Array: TypeAlias = Tensor | npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Predictions:
    """Probabilities and labels as checked CPU tensors, and what every metric derives from them, once.

    Attributes:
        probs: ``[n, K]``, in the type they came in.
        targets: ``[n]``, int64.
        weights: ``[n]`` in float64, positive; or None where every example counts the same.
        pairs: the columns are right and wrong instead of classes, and right is always decided for.
    """

    probs: Tensor
    targets: Tensor
    weights: Tensor | None = None
    pairs: bool = False

    def __len__(self) -> int:
        return len(self.probs)

    @property
    def classes(self) -> int:
        """$K$."""
        return self.probs.shape[-1]

    @cached_property
    def _largest(self) -> tuple[Tensor, Tensor]:
        if self.pairs:
            return self.probs[:, 0].contiguous(), torch.zeros(len(self), dtype=torch.int64)
        values, decision = self.probs.max(-1)
        return values, decision

    @property
    def decision(self) -> Tensor:
        """The most probable class; of equals the first."""
        return self._largest[1]

    @cached_property
    def confidence(self) -> Tensor:
        """The largest probability, in float64."""
        return self._largest[0].double()

    @cached_property
    def correct(self) -> Tensor:
        """1 where the decision is right, else 0, in float64."""
        return (self.decision == self.targets).double()

    @cached_property
    def mass(self) -> Tensor:
        """The weights, or ones."""
        return torch.ones(len(self), dtype=torch.float64) if self.weights is None else self.weights

    def mean(self, values: Tensor) -> float:
        """The weighted mean of one number per example."""
        if self.weights is None:
            return float(values.double().mean())
        return float((values.double() * self.weights).sum() / self.weights.sum())

    def parts(self, rows: int) -> Iterator[Predictions]:
        """The same predictions in pieces of at most ``rows`` examples."""
        for start in range(0, len(self), rows):
            piece = slice(start, start + rows)
            weights = None if self.weights is None else self.weights[piece]
            yield Predictions(self.probs[piece], self.targets[piece], weights, self.pairs)


def as_predictions(probs: Array, targets: Array, weights: Array | None = None, *, check: bool = True) -> Predictions:
    """Probabilities, labels and weights as detached CPU tensors, sharing memory with numpy arrays where possible.

    Args:
        probs: class probabilities ``[n, K]``; for two classes also one column, ``[n]`` or ``[n, 1]``, of class 1's.
        targets: the true classes, integers in ``0 … K-1``.
        weights: how much each example counts, non-negative; only ratios matter, and a weight of zero leaves it out.
        check: look at the values; ``False`` saves two passes over data already known to be good.

    Examples:
        >>> found = as_predictions(np.array([0.7, 0.3]), np.array([1, 0], dtype=np.uint8))
        >>> found.probs
        tensor([[0.3000, 0.7000],
                [0.7000, 0.3000]], dtype=torch.float64)
    """
    values, labels = _probabilities(probs), _labels(targets)
    if values.dim() == 1 or (values.dim() == 2 and values.shape[1] == 1):
        values = _two_columns(values.reshape(-1), check)
    if values.dim() != 2:
        raise InvalidProbabilitiesError(
            f"Expected `probs` of shape [n, K], or [n] for two classes, but got {list(values.shape)}."
        )
    counts = None if weights is None else _weights(weights)
    if check:
        check_predictions(values, labels)
    if counts is None:
        return Predictions(values.contiguous(), labels.contiguous())
    check_weights(counts, values)  # always: what is negative would be left out unseen below
    counts = counts.double()
    largest = float(counts.max())
    if not 1e-60 < largest < 1e60:
        counts = counts / largest  # only ratios matter, and squares would leave the range of float64
    counted = counts > 0
    if not bool(counted.all()):
        values, labels, counts = values[counted], labels[counted], counts[counted]
    return Predictions(values.contiguous(), labels.contiguous(), counts.contiguous())


def _probabilities(probs: Array) -> Tensor:
    if not isinstance(probs, Tensor | np.ndarray):
        raise InvalidProbabilitiesError(
            f"Expected `probs` to be a torch.Tensor or a numpy.ndarray, but got {type(probs).__name__}. {_HINT}"
        )
    if isinstance(probs, np.ndarray):
        if probs.dtype.kind not in "fiub":
            raise InvalidProbabilitiesError(f"Expected `probs` to hold numbers, but got dtype {probs.dtype}.")
        probs = from_numpy(probs)
    return probs.detach().cpu()


def _two_columns(column: Tensor, check: bool) -> Tensor:
    """(1 - p, p): what a single column means."""
    if check and column.is_floating_point():
        wrong = ~((column >= 0) & (column <= 1))
        if bool(wrong.any()):
            row = int(wrong.nonzero()[0])
            raise InvalidProbabilitiesError(
                f"Expected one column of `probs` to hold probabilities of class 1, but row {row} is {column[row].item():.6g}. "
                "If these are logits, pass `logits.sigmoid()`."
            )
    return torch.stack((1 - column, column), -1)


def _labels(targets: Array) -> Tensor:
    if not isinstance(targets, Tensor | np.ndarray):
        raise InvalidTargetsError(
            f"Expected `targets` to be a torch.Tensor or a numpy.ndarray, but got {type(targets).__name__}. {_HINT}"
        )
    if isinstance(targets, np.ndarray):
        if targets.dtype.kind not in "fiub":
            raise InvalidTargetsError(
                f"Expected `targets` to be class indices of an integer type, but got dtype {targets.dtype}. "
                "Names of classes: pass `numpy.unique(targets, return_inverse=True)[1]`."
            )
        targets = from_numpy(targets)
    targets = targets.detach().cpu()
    # torch cannot compare unsigned types wider than a byte, nor index with most others.
    return targets if targets.is_floating_point() or targets.dtype == torch.bool else targets.long()


def _weights(weights: Array) -> Tensor:
    if isinstance(weights, np.ndarray) and weights.dtype.kind in "fiub":
        weights = from_numpy(weights)
    if not isinstance(weights, Tensor):
        kind = weights.dtype if isinstance(weights, np.ndarray) else type(weights).__name__
        raise InvalidArgumentError(f"Expected `weights` to be a tensor or an array of numbers, but got {kind}.")
    return weights.detach().cpu()


_HINT = "Lists and pandas objects: pass `numpy.asarray(...)`."
