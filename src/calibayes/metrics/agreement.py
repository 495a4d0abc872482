"""One test decides whether a classifier is miscalibrated, and no interval says otherwise.

There are nine errors of the confidence here, and each has an interval. At 95 %, one or another of them would exclude zero for
more than one calibrated classifier in twenty. So they are tested in order: `calibration_test` decides whether the confidence is
calibrated, and only where that is rejected may the interval of an error exclude zero. "Calibrated" implies that all these
errors are zero, so this is closed testing: the chance that any interval excludes zero wrongly is at most that of the one test,
which is what Holm's correction guarantees, without dividing the level among the metrics.

A bar of a reliability diagram follows the same rule: it is off beyond chance only where the test rejects and the bar lies
outside a band that holds all bars of a calibrated classifier together.

Calibration class by class is another hypothesis. The classwise ECE decides there.
"""

from __future__ import annotations

from torch import Tensor

from calibayes.metrics.bins import ReliabilityBins
from calibayes.metrics.calibration_test import rejects
from calibayes.metrics.intervals import Interval

__all__ = ["CLASS_ERRORS", "CONFIDENCE_ERRORS", "agreed", "beyond_chance", "excludes_zero"]

CONFIDENCE_ERRORS = (
    "overconfidence", "ece", "ece_equal_mass", "mce", "rms_calibration_error", "ece_squared_debiased", "smooth_ece", "mmce",
    "kce_squared",
)  # fmt: skip
CLASS_ERRORS = ("ece_classwise", "brier_reliability")


def agreed(ends: dict[str, Interval], p_value: float, level: float) -> dict[str, Interval]:
    """The same intervals, widened to hold zero where an error of zero is not rejected.

    Args:
        ends: by the name of the metric.
        p_value: of "calibrated", by `calibration_p_value`.
        level: of the intervals; "calibrated" is rejected where the p-value is at most ``1 - level``.
    """
    zero: set[str] = set() if rejects(p_value, level) else set(CONFIDENCE_ERRORS)
    if "ece_classwise" in ends and not excludes_zero(ends["ece_classwise"]):
        zero |= set(CLASS_ERRORS)
    return {name: _with_zero(each) if name in zero else each for name, each in ends.items()}


def beyond_chance(bins: ReliabilityBins, p_value: float, level: float) -> Tensor:
    """Return, for each bin, True if its gap is larger than chance explains.

    Args:
        bins: of a reliability diagram.
        p_value: of "calibrated", by `calibration_p_value`, on the same examples.
        level: "calibrated" is rejected where the p-value is at most ``1 - level``.
    """
    low, high = bins.consistency_band(level)
    return ((bins.accuracy < low) | (bins.accuracy > high)) & rejects(p_value, level)


def excludes_zero(ends: Interval) -> bool:
    """Return True if zero lies outside; an unknown interval excludes nothing."""
    return ends.low > 0 or ends.high < 0


def _with_zero(ends: Interval) -> Interval:
    return Interval(min(ends.low, 0.0), max(ends.high, 0.0)) if excludes_zero(ends) else ends
