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
from calibayes.errors import CalibayesError, InvalidArgumentError, InvalidProbabilitiesError, InvalidTargetsError
from calibayes.numpy_arrays import from_numpy

__all__ = ["Array", "Predictions", "as_predictions"]

Array: TypeAlias = Tensor | npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Predictions:
    """Probabilities and labels as checked CPU tensors, and the quantities that every metric derives from them."""

    probs: Tensor  # [n, K], in the type they came in
    targets: Tensor  # [n], int64
    weights: Tensor | None = None  # [n] in float64, positive; None if every example counts the same
    pairs: bool = False  # the columns are right and wrong instead of classes, and the decision is always "right"

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
        """The same predictions in pieces of at most ``rows`` examples, or of one."""
        rows = max(1, rows)
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
        >>> as_predictions(np.array([0.7, 0.3]), np.array([1, 0], dtype=np.uint8)).probs
        tensor([[0.3000, 0.7000],
                [0.7000, 0.3000]], dtype=torch.float64)
    """
    values = _as_tensor("probs", probs, InvalidProbabilitiesError)
    names = " Names of classes: pass `numpy.unique(targets, return_inverse=True)[1]`."
    labels = _as_tensor("targets", targets, InvalidTargetsError, "class indices of an integer type", names)
    if not labels.is_floating_point() and labels.dtype != torch.bool:
        labels = labels.long()  # torch cannot compare unsigned types wider than a byte, nor index with most others
    if values.dim() == 1 or (values.dim() == 2 and values.shape[1] == 1):
        values = _two_columns(values.reshape(-1), check)
    if values.dim() != 2:
        raise InvalidProbabilitiesError(
            f"Expected `probs` of shape [n, K], or [n] for two classes, but got {list(values.shape)}."
        )
    counts = None if weights is None else _as_tensor("weights", weights, InvalidArgumentError)
    if check:
        check_predictions(values, labels)
    if counts is None:
        return Predictions(values.contiguous(), labels.contiguous())
    check_weights(counts, values)  # always: negative ones would be left out silently below
    counts = counts.double()
    largest = float(counts.max())
    if not 1e-60 < largest < 1e60:
        counts = counts / largest  # only ratios matter, and squares would leave the range of float64
    counted = counts > 0
    if not bool(counted.all()):
        values, labels, counts = values[counted], labels[counted], counts[counted]
    return Predictions(values.contiguous(), labels.contiguous(), counts.contiguous())


def _as_tensor(name: str, array: Array, error: type[CalibayesError], content: str = "numbers", advice: str = "") -> Tensor:
    """A tensor or an array as a detached CPU tensor, or an error that says what it should hold."""
    if isinstance(array, np.ndarray):
        if array.dtype.kind not in "fiub":
            raise error(f"Expected `{name}` to hold {content}, but got dtype {array.dtype}.{advice}")
        array = from_numpy(array)
    if not isinstance(array, Tensor):
        raise error(
            f"Expected `{name}` to be a torch.Tensor or a numpy.ndarray, but got {type(array).__name__}. "
            "Lists and pandas objects: pass `numpy.asarray(...)`."
        )
    return array.detach().cpu()


def _two_columns(column: Tensor, check: bool) -> Tensor:
    """A single column p as the two columns (1 - p, p)."""
    if check and column.is_floating_point():
        wrong = ~((column >= 0) & (column <= 1))
        if bool(wrong.any()):
            row = int(wrong.nonzero()[0])
            raise InvalidProbabilitiesError(
                f"Expected one column of `probs` to hold probabilities of class 1, but row {row} is {column[row].item():.6g}. "
                "If these are logits, pass `logits.sigmoid()`."
            )
    return torch.stack((1 - column, column), -1)
