"""How far a classifier's probabilities can be trusted: calibration error and proper scores.

Every function takes ``probs [n, K]`` and ``targets [n]``, as torch tensors or numpy arrays, and returns a Python float.
"""

from __future__ import annotations

from calibayes.metrics.arrays import Array
from calibayes.metrics.bins import ReliabilityBins, reliability_bins
from calibayes.metrics.calibration import ece
from calibayes.metrics.evaluate import Scores, evaluate
from calibayes.metrics.proper import accuracy, brier, nll

__all__ = [
    "Array",
    "ReliabilityBins",
    "Scores",
    "accuracy",
    "brier",
    "ece",
    "evaluate",
    "nll",
    "reliability_bins",
]
