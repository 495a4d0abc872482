"""Predictions as log-scores in float64, a block of rows at a time, which every post-hoc method works on."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from calibayes.checks import check_targets
from calibayes.errors import InvalidArgumentError
from calibayes.metrics.prediction_arrays import Array, Predictions, as_predictions
from calibayes.predictive import Predictive

__all__ = ["blocks", "log_scores", "read_held_out", "read_predictions", "rows_at_once"]

_BLOCK = 1 << 20  # numbers turned into float64 at a time: few large steps, since each may wait for a thread on a busy machine
_LOWEST = -1e30  # a log-score below this is this: its square is still a number


def log_scores(values: Tensor, logits: bool) -> Tensor:
    r"""``values [m, K]`` as float64 log-scores, $\log p$ or logits up to a constant a row, the largest of each row 0.

    Probabilities are clipped from below at the smallest normal number of their type, so that zeros stay finite. float16 is
    clipped at its smallest number of all, $2^{-24}$: its smallest normal one, $6 \cdot 10^{-5}$, is a probability to expect.
    """
    if logits:
        scores = values.double()
        return (scores - scores.amax(-1, keepdim=True)).clamp_min_(_LOWEST)
    floor = 2.0**-24 if values.dtype == torch.float16 else torch.finfo(values.dtype).tiny
    scores = values.double().clamp_min(floor).log_()
    return scores.sub_(scores.amax(-1, keepdim=True))


def rows_at_once(classes: int) -> int:
    """Return the number of examples in a block."""
    return max(1, _BLOCK // classes)


def blocks(predictions: Predictions) -> Iterator[Predictions]:
    """The same predictions in pieces that keep working memory small, however many there are."""
    return predictions.parts(rows_at_once(predictions.classes))


def read_held_out(
    probs: Array | Predictive, targets: Array, weights: Array | None, logits: bool, check: bool = True
) -> Predictions:
    """Predictions (logits, if so said) with labels and weights, checked, as two or more columns."""
    if isinstance(probs, Predictive):
        probs = _averaged(probs, logits)
    if not logits:
        return as_predictions(probs, targets, weights, check=check)
    predictions = as_predictions(_two_logits(probs), targets, weights, check=False)
    if check:
        _check_logits(predictions.probs)
        check_targets(predictions.targets, predictions.probs)
    return predictions


def read_predictions(probs: Array | Predictive, logits: bool) -> Tensor:
    """Predictions without labels, checked, as a CPU tensor ``[n, K]``."""
    values = _averaged(probs, logits) if isinstance(probs, Predictive) else probs
    rows = values.shape[0] if isinstance(values, Tensor | np.ndarray) and values.ndim else 0
    return read_held_out(values, torch.zeros(rows, dtype=torch.long), None, logits).probs


def _averaged(predictive: Predictive, logits: bool) -> Tensor:
    if logits:
        raise InvalidArgumentError("A Predictive holds averaged probabilities, not logits: leave out `logits=True`.")
    return predictive.probs


def _two_logits(logits: Array) -> Array:
    """One column of log-odds z is the pair (0, z)."""
    if isinstance(logits, np.ndarray) and (logits.ndim == 1 or logits.shape[1:] == (1,)):
        column = logits.reshape(-1)
        return np.stack((np.zeros_like(column), column), -1)
    if isinstance(logits, Tensor) and (logits.dim() == 1 or logits.shape[1:] == (1,)):
        column_of_logits = logits.reshape(-1)
        return torch.stack((torch.zeros_like(column_of_logits), column_of_logits), -1)
    return logits


def _check_logits(logits: Tensor) -> None:
    if not logits.is_floating_point():
        raise InvalidArgumentError(f"Expected logits of a floating-point type, but got {logits.dtype}.")
    if logits.shape[0] < 1 or logits.shape[1] < 2:
        raise InvalidArgumentError(
            f"Expected logits of shape [n, K], or [n] for two classes, with at least one example, but got {list(logits.shape)}."
        )
    wrong = ~logits.isfinite()
    if bool(wrong.any()):
        row, column = wrong.nonzero()[0].tolist()
        raise InvalidArgumentError(
            f"Expected finite logits, but row {row} has {logits[row, column].item()} for class {column}. "
            "A class that is ruled out: give it a low logit such as -1e4, or pass probabilities."
        )
