"""The accuracy to expect on new data whose labels are not known, from calibrated confidences."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from calibayes.acting.acting_inputs import coarser_type, read_correct, read_numbers
from calibayes.checks import fraction
from calibayes.errors import InvalidArgumentError
from calibayes.metrics.intervals import Interval
from calibayes.metrics.prediction_arrays import Array

__all__ = ["ExpectedAccuracy", "expected_accuracy"]

_BINS = 10
_NORMAL = 400.0  # the variance of a number of right decisions from which it is as good as normal
_CALIBRATED = "each confidence is the probability that its decision is right, on the new data too"
_SAME_CURVE = "decisions of a confidence are right as often on the new data as on the old, however often it occurs"


@dataclass(frozen=True)
class ExpectedAccuracy:
    """The accuracy to expect on new data.

    Attributes:
        accuracy: the estimate.
        interval: of the accuracy on exactly these examples, if the assumption holds. With labelled old rows it is approximate,
            and a bin's accuracy counts for all confidences in it: if the new ones lie at one end of a bin, or beyond all old
            ones, it may miss.
        assumption: what must hold. No method can check it without labels; `same_distribution` can refute it.
        level: of the interval.
    """

    accuracy: float
    interval: Interval
    assumption: str
    level: float


def expected_accuracy(
    confidence: Array, old_confidence: Array | None = None, old_correct: Array | None = None, *, level: float = 0.95
) -> ExpectedAccuracy:
    """Estimate the accuracy on new data without their labels.

    With confidences alone it is their mean, and the interval is that of a sum of independent decisions, each right with its
    confidence. With labelled old rows, confidences need not be calibrated: old rows are sorted into ten bins of equal mass,
    and the accuracy of each bin counts as often as the bin occurs in the new data.

    Args:
        confidence: of the new examples, within 0 … 1.
        old_confidence: of labelled rows that did not train the classifier.
        old_correct: whether the decision of each of them is right.
        level: of the interval.

    Examples:
        >>> expected = expected_accuracy(torch.tensor([0.9, 0.8, 0.7, 1.0] * 25, dtype=torch.float64))
        >>> round(expected.accuracy, 3), [round(end, 2) for end in expected.interval]
        (0.85, [0.78, 0.91])
        >>> expected.assumption
        'each confidence is the probability that its decision is right, on the new data too'
    """
    fraction("level", level)
    new = read_numbers("confidence", confidence, unit=True).numpy()
    if (old_confidence is None) != (old_correct is None):
        raise InvalidArgumentError("Expected `old_confidence` and `old_correct` together, but one of them is missing.")
    if old_confidence is None or old_correct is None:
        return ExpectedAccuracy(float(new.mean()), _of_decisions(new, level), _CALIBRATED, level)
    old = read_numbers("old_confidence", old_confidence, unit=True)
    right = read_correct(old_correct, len(old)).double().numpy()
    common = coarser_type(confidence, old_confidence)  # in two types, equal confidences could fall into different bins
    old, new = old.to(common).double(), torch.from_numpy(new).to(common).double().numpy()
    edges = np.unique(np.quantile(old.numpy(), np.linspace(0, 1, min(_BINS, len(old)) + 1)[1:-1]))
    of_old, of_new = (np.searchsorted(edges, values, side="right") for values in (old.numpy(), new))
    rows = np.bincount(of_old, minlength=len(edges) + 1)
    share = np.bincount(of_new, minlength=len(edges) + 1) / len(new)
    hits = np.bincount(of_old, right, minlength=len(edges) + 1)
    rate = np.divide(hits, rows, out=np.full(len(rows), right.mean()), where=rows > 0)
    # Half a hit and half a miss more, so that a bin without an error is not taken to be perfect.
    cautious = (hits + 0.5) / (rows + 1)
    spread = cautious * (1 - cautious)
    variance = float((share**2 * spread / np.maximum(rows, 1)).sum() + (share * spread).sum() / len(new))
    estimate = float((share * rate).sum())
    half = _normal_quantile(level) * math.sqrt(variance)
    return ExpectedAccuracy(estimate, Interval(max(0.0, estimate - half), min(1.0, estimate + half)), _SAME_CURVE, level)


def _of_decisions(chances: npt.NDArray[np.float64], level: float) -> Interval:
    """The central share of right decisions, each right with its own chance: exact, or normal if their number varies enough."""
    n, mean = len(chances), float(chances.mean())
    variance = float((chances * (1 - chances)).sum())
    if variance > _NORMAL:
        half = _normal_quantile(level) * math.sqrt(variance) / n
        return Interval(max(0.0, mean - half), min(1.0, mean + half))
    cumulative = np.cumsum(_distribution(chances))
    tail = (1 - level) / 2
    low, high = np.searchsorted(cumulative, tail), np.searchsorted(cumulative, 1 - tail - 1e-12)
    return Interval(float(low) / n, min(1.0, float(high) / n))


def _distribution(chances: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The distribution of the number of successes of independent trials, by convolving neighbours until one is left."""
    trials = 1 << (len(chances) - 1).bit_length()  # those added never succeed
    padded = np.pad(chances, (0, trials - len(chances)))
    parts = np.stack((1 - padded, padded), -1)
    while len(parts) > 1:
        width = parts.shape[1]
        waves = np.fft.rfft(parts, 2 * width)
        parts = np.fft.irfft(waves[::2] * waves[1::2], 2 * width)[:, : 2 * width - 1]
    result: npt.NDArray[np.float64] = parts[0, : len(chances) + 1]
    return result


def _normal_quantile(level: float) -> float:
    from scipy.special import ndtri

    return float(ndtri((1 + level) / 2))
