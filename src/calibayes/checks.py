"""Checks on probabilities, labels and weights, shared by the calibration measures and the metrics.

A check that passes costs two reductions over the array; only a check that fails searches for the row.
"""

from __future__ import annotations

import operator
from numbers import Real
from typing import Literal, SupportsIndex

import torch
from torch import Tensor

from calibayes.errors import InvalidArgumentError, InvalidProbabilitiesError, InvalidTargetsError, NetworkOutputError

__all__ = [
    "check_logits",
    "check_predictions",
    "check_probabilities",
    "check_targets",
    "check_weights",
    "class_indices",
    "fraction",
    "integer",
    "is_real",
    "moderate_positive",
    "non_negative_integer",
    "number_of_samples",
    "positive",
    "positive_integer",
]

_SMALLEST = 1e-15
_ROW_SUM_TOLERANCE = {torch.float16: 1e-2, torch.bfloat16: 3e-2}


def is_real(value: object) -> bool:
    """Return True if ``value`` is a real number of Python or NumPy, and not a boolean."""
    return isinstance(value, Real) and not isinstance(value, bool)


def positive(name: str, value: float) -> float:
    """``value`` as a float, or an error that names it when it is not a positive finite number."""
    if not is_real(value) or not 0 < value < float("inf"):
        raise InvalidArgumentError(f"Expected `{name}` to be a positive finite number, but got {value!r}.")
    return float(value)


def moderate_positive(name: str, value: float) -> float:
    """``value`` as a float, or an error that names it when it, its square or its inverse is too large for a network."""
    if not _SMALLEST <= positive(name, value) <= 1 / _SMALLEST:
        raise InvalidArgumentError(f"Expected `{name}` to lie between {_SMALLEST:g} and {1 / _SMALLEST:g}, but got {value!r}.")
    return float(value)


def integer(name: str, value: object, kind: str = "an integer", least: int | None = None) -> int:
    """``value`` as an int, or an error that names it when it is not an integer of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex) or (least is not None and operator.index(value) < least):
        bound = f" of at least {least}" if least is not None and kind == "an integer" else ""
        raise InvalidArgumentError(f"Expected `{name}` to be {kind}{bound}, but got {value!r}.")
    return operator.index(value)


def positive_integer(name: str, value: object, most: int | None = None) -> int:
    """``value`` as an int, or an error that names it when it is not a positive integer, or larger than ``most``."""
    number = integer(name, value, "a positive integer", 1)
    if most is not None and number > most:
        raise InvalidArgumentError(f"Expected `{name}` to be at most {most:,}, but got {value!r}.")
    return number


def non_negative_integer(name: str, value: object) -> int:
    """``value`` as an int, or an error that names it when it is not an integer of at least 0."""
    return integer(name, value, "an integer of at least 0", 0)


def number_of_samples(name: str, value: object) -> int | Literal["mean"]:
    """``value`` as an int or ``"mean"``, or an error that names it when it is neither a positive integer nor ``"mean"``."""
    if isinstance(value, str) and value == "mean":
        return "mean"
    return integer(name, value, "a positive integer or 'mean' for the mean weights", 1)


def fraction(name: str, value: float) -> float:
    """``value`` as a float, or an error that names it when it does not lie strictly between 0 and 1."""
    if not is_real(value) or not 0 < value < 1:
        hint = f" For {value:g} %, pass {value / 100:.10g}." if is_real(value) and 2 <= value < 100 else ""
        raise InvalidArgumentError(f"Expected `{name}` to lie between 0 and 1, both excluded, but got {value!r}.{hint}")
    return float(value)


def check_predictions(probs: Tensor, targets: Tensor, weights: Tensor | None = None) -> None:
    """Raise a named error unless ``probs [..., n, K]``, ``targets [..., n]`` and ``weights [..., n]`` fit together."""
    check_probabilities(probs)
    check_targets(targets, probs)
    if weights is not None:
        check_weights(weights, probs)


def check_probabilities(probs: Tensor) -> None:
    """Raise `InvalidProbabilitiesError` unless every row of ``probs [..., n, K]`` is a distribution over classes."""
    if not isinstance(probs, Tensor):
        raise InvalidProbabilitiesError(f"Expected `probs` to be a torch.Tensor, but got {type(probs).__name__}.")
    if not probs.is_floating_point():
        raise InvalidProbabilitiesError(f"Expected `probs` to be of a floating-point type, but got {probs.dtype}.")
    if probs.dim() < 2 or probs.shape[-1] < 2 or probs.shape[-2] < 1:
        raise InvalidProbabilitiesError(
            "Expected `probs` of shape [..., n, K] with at least one example and two classes, "
            f"but got {list(probs.shape)}. For two classes given as one column p, stack (1 - p, p)."
        )
    values = probs.detach()
    sums = values.sum(-1, dtype=None if values.dtype == torch.float64 else torch.float32)
    tolerance = _ROW_SUM_TOLERANCE.get(probs.dtype, 1e-3)
    error = (sums - 1).abs()
    # NaN fails both comparisons, so it is caught here too.
    if bool(values.amin() >= 0) and bool(error.amax() <= tolerance):
        return
    finite, negative = values.isfinite().all(-1), (values < 0).any(-1)
    if not bool(finite.all()):
        row = _first(~finite)
        raise InvalidProbabilitiesError(
            f"`probs` has NaN or infinite values: row {_place(row)} is {_show(values[row])}. "
            "Look for an overflow in the network or missing values in the input."
        )
    row = _first(negative | ~(error <= tolerance))
    what = f"row {_place(row)} is {_show(values[row])}, which sums to {sums[row].item():.6g}"
    if bool(negative.any()) or bool((values > 1).any()):
        raise InvalidProbabilitiesError(
            f"`probs` are not probabilities: {what}. If these are logits, pass `logits.softmax(-1)`."
        )
    raise InvalidProbabilitiesError(f"Rows of `probs` must sum to 1 (within {tolerance:g}), but {what}. Divide by the sum?")


def check_logits(logits: Tensor, targets: Tensor, *, some: bool = True, within: bool = True) -> None:
    """Raise a named error unless ``logits [..., n, K]`` and ``targets [..., n]`` fit together.

    With ``some`` there must be an example; with ``within`` the values of the labels are checked, which waits for a GPU.
    """
    if not isinstance(logits, Tensor) or not logits.is_floating_point():
        kind = logits.dtype if isinstance(logits, Tensor) else type(logits).__name__
        raise NetworkOutputError(f"Expected `logits` to be a tensor of a floating-point type, but got {kind}.")
    if logits.dim() < 2 or logits.shape[-1] < 2 or logits.shape[-2] < some:
        hint = " A binary classifier needs two outputs." if logits.dim() < 2 or logits.shape[-1] == 1 else ""
        raise NetworkOutputError(
            "Expected `logits` of shape [..., n, K] with at least one example and two classes, "
            f"but got {list(logits.shape)}.{hint}"
        )
    check_targets(targets, logits, "logits", within=within)


def check_targets(targets: Tensor, probs: Tensor, name: str = "probs", *, within: bool = True) -> None:
    """Raise `InvalidTargetsError` unless ``targets`` holds one class index in ``0 … K-1`` for each row of ``probs``.

    Without ``within``, their values are not checked; ``name`` stands for ``probs`` in messages.
    """
    if not isinstance(targets, Tensor):
        raise InvalidTargetsError(f"Expected `targets` to be a torch.Tensor, but got {type(targets).__name__}.")
    targets = class_indices(targets)
    if targets.shape not in (probs.shape[:-1], probs.shape[-2:-1]):
        hint = " One-hot labels: pass `targets.argmax(-1)`." if targets.shape == probs.shape else ""
        hint = " A column: pass `targets.squeeze(-1)`." if targets.shape == (*probs.shape[:-1], 1) else hint
        fitting = dict.fromkeys(str(list(shape)) for shape in (probs.shape[:-1], probs.shape[-2:-1]))
        raise InvalidTargetsError(
            f"Expected `targets` of shape {' or '.join(fitting)} "
            f"for `{name}` of shape {list(probs.shape)}, but got {list(targets.shape)}.{hint}"
        )
    classes = probs.shape[-1]
    if within and targets.numel() and (bool(targets.amin() < 0) or bool(targets.amax() >= classes)):
        row = _first((targets < 0) | (targets >= classes))
        raise InvalidTargetsError(
            f"Labels must lie in 0 … {classes - 1} for {classes} classes, but label {_place(row)} is {targets[row].item()}."
        )


def class_indices(targets: Tensor) -> Tensor:
    """``targets`` as the int64 that indexing needs, or `InvalidTargetsError` unless they are of an integer type."""
    if targets.is_floating_point() or targets.is_complex() or targets.dtype == torch.bool:
        raise InvalidTargetsError(
            f"Expected `targets` to be class indices of an integer type, but got {targets.dtype}. "
            "One-hot labels: pass `targets.argmax(-1)`; numbers: pass `targets.long()`."
        )
    return targets.long()


def check_weights(weights: Tensor, probs: Tensor) -> None:
    """Raise `InvalidArgumentError` unless ``weights`` are non-negative, finite, not all zero, and one per example."""
    if not isinstance(weights, Tensor) or weights.is_complex():
        kind = weights.dtype if isinstance(weights, Tensor) else type(weights).__name__
        raise InvalidArgumentError(f"Expected `weights` to be a torch.Tensor of real numbers, but got {kind}.")
    if weights.shape not in (probs.shape[:-1], probs.shape[-2:-1]):
        raise InvalidArgumentError(
            f"Expected `weights` of shape {list(probs.shape[:-1])} or {list(probs.shape[-2:-1])}, "
            f"but got {list(weights.shape)}."
        )
    wrong = ~((weights >= 0) & weights.isfinite())
    if bool(wrong.any()):
        row = _first(wrong)
        raise InvalidArgumentError(
            f"Expected `weights` to be non-negative and finite, but weight {_place(row)} is {weights[row].item()}."
        )
    if not bool((weights > 0).any(-1).all()):
        raise InvalidArgumentError("Expected at least one positive weight in every batch, but got zeros only.")


def _first(mask: Tensor) -> tuple[int, ...]:
    """The index of the first true entry."""
    return tuple(int(i) for i in mask.nonzero()[0])


def _place(index: tuple[int, ...]) -> str:
    return str(index[0]) if len(index) == 1 else str(list(index))


def _show(row: Tensor) -> str:
    head = ", ".join(f"{value:.4g}" for value in row[:5].tolist())
    return f"[{head}, …]" if row.numel() > 5 else f"[{head}]"
