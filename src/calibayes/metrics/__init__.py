"""Metrics of a classifier's probabilities: calibration errors, proper scores, rates of single classes, and intervals for them.

Every function takes ``probs [n, K]`` (for two classes also one column) and ``targets [n]``, as torch tensors or numpy
arrays, and ``weights``. `evaluate` computes everything at once.
"""

from __future__ import annotations

from calibayes.metrics.binned_errors import ece, ece_equal_mass, ece_squared_debiased, mce, rms_calibration_error
from calibayes.metrics.bins import ReliabilityBins, reliability_bins
from calibayes.metrics.catalogue import METRICS, MetricInfo
from calibayes.metrics.classwise import BrierParts, brier_decomposition, ece_classwise
from calibayes.metrics.confusion import ClassRates, class_rates, confusion_matrix
from calibayes.metrics.evaluate import confidence_interval, evaluate
from calibayes.metrics.intervals import Interval
from calibayes.metrics.kernel_errors import kce_p_value, kce_squared, mmce, wmmce
from calibayes.metrics.paired_differences import Difference, differences
from calibayes.metrics.prediction_arrays import Array
from calibayes.metrics.proper_scores import accuracy, brier, nll, overconfidence, top_k_accuracy
from calibayes.metrics.roc_auc import roc_auc, roc_auc_interval
from calibayes.metrics.score_table import ClassScores, Scores
from calibayes.metrics.selective import RiskCoverage, aurc, coverage_at_accuracy, risk_coverage
from calibayes.metrics.smooth_error import smooth_ece
from calibayes.metrics.stream import Stream

__all__ = [
    "METRICS",
    "Array",
    "BrierParts",
    "ClassRates",
    "ClassScores",
    "Difference",
    "Interval",
    "MetricInfo",
    "ReliabilityBins",
    "RiskCoverage",
    "Scores",
    "Stream",
    "accuracy",
    "aurc",
    "brier",
    "brier_decomposition",
    "class_rates",
    "confidence_interval",
    "confusion_matrix",
    "coverage_at_accuracy",
    "differences",
    "ece",
    "ece_classwise",
    "ece_equal_mass",
    "ece_squared_debiased",
    "evaluate",
    "kce_p_value",
    "kce_squared",
    "mce",
    "mmce",
    "nll",
    "overconfidence",
    "reliability_bins",
    "risk_coverage",
    "rms_calibration_error",
    "roc_auc",
    "roc_auc_interval",
    "smooth_ece",
    "top_k_accuracy",
    "wmmce",
]
