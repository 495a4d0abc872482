"""Chance in the test examples: scores on examples that are drawn again with replacement, the same draws for every method."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from calibayes.metrics.bins import DEFAULT_BINS, equal_width, place
from calibayes.metrics.prediction_arrays import as_predictions
from calibayes.metrics.proper_scores import losses
from calibayes.randomness import generator_for

__all__ = ["DRAWS", "SCORES_WITH_CHANCE", "deviations", "packed", "unpacked"]

DRAWS = 48
SCORES_WITH_CHANCE = ("nll", "ece")
_SEED = 0  # the same draws for all methods and seeds, so that differences are paired by example
_UNIT = 1e-6  # records hold whole multiples of it


def deviations(parts: Sequence[tuple[Tensor, Tensor]]) -> dict[str, Tensor]:
    """What each draw of the examples adds to NLL and ECE, averaged over parts that are the same examples in other forms.

    Args:
        parts: probabilities and true classes, the same number in each.
    """
    found = [_of_part(probs, y) for probs, y in parts]
    return {score: torch.stack([each[score] for each in found]).mean(0) for score in SCORES_WITH_CHANCE}


def _of_part(probs: Tensor, y: Tensor) -> dict[str, Tensor]:
    predictions = as_predictions(probs, y, check=False)
    n = len(y)
    drawn = torch.randint(n, (DRAWS, n), generator=generator_for(torch.device("cpu"), _SEED, "test examples"))
    counts = torch.stack([torch.ones(n), *(torch.bincount(each, minlength=n) for each in drawn)]).double()  # first all, once
    bins = place(predictions.confidence, equal_width(DEFAULT_BINS), predictions.probs.dtype)
    gaps = torch.zeros(n, DEFAULT_BINS, dtype=torch.float64)
    gaps[torch.arange(n), bins] = predictions.confidence.double() - predictions.correct.double()
    values = {"nll": counts @ losses(predictions)[0] / n, "ece": (counts @ gaps).abs().sum(1) / n}
    return {score: each[1:] - each[0] for score, each in values.items()}


def packed(values: Tensor) -> str:
    """Deviations as a short text for records."""
    return " ".join(str(round(float(each) / _UNIT)) for each in values)


def unpacked(text: str) -> np.ndarray:
    """The deviations of `packed`."""
    return np.array(text.split(), np.float64) * _UNIT
