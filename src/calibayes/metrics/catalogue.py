"""The metrics by name: title, direction and meaning."""

from __future__ import annotations

from typing import Literal, NamedTuple

__all__ = ["METRICS", "MetricInfo"]


class MetricInfo(NamedTuple):
    """The title of a metric, its direction and what it means.

    Attributes:
        name: the field of `Scores`.
        title: what people call it.
        better: which way is better, or None where neither is.
        about: one sentence for the reader.
    """

    name: str
    title: str
    better: Literal["lower", "higher"] | None
    about: str


METRICS = (
    MetricInfo("accuracy", "accuracy", "higher", "The fraction of examples whose most probable class is the true one."),
    MetricInfo("top_k", "top-k accuracy", "higher", "The fraction of examples whose true class is among the k most probable."),
    MetricInfo("confidence", "confidence", None, "The mean probability of the predicted class: the accuracy that it claims."),
    MetricInfo(
        "overconfidence", "overconfidence", None, "Mean confidence minus accuracy: positive for an overconfident classifier."
    ),
    MetricInfo("nll", "NLL", "lower", "Mean negative log-likelihood of the true classes, in nats."),
    MetricInfo("brier", "Brier score", "lower", "Squared distance between probabilities and truth, from 0 to 2."),
    MetricInfo(
        "brier_reliability", "Brier: reliability", "lower", "The part of the Brier score that calibration could remove."
    ),
    MetricInfo(
        "brier_resolution", "Brier: resolution", "higher", "The part gained by telling examples apart; it is subtracted."
    ),
    MetricInfo(
        "brier_uncertainty", "Brier: uncertainty", None, "The Brier score of always answering with the class frequencies."
    ),
    MetricInfo(
        "ece", "ECE", "lower", "Expected calibration error: mean gap between confidence and accuracy, bins of equal width."
    ),
    MetricInfo("ece_equal_mass", "ECE, equal mass", "lower", "The same with bins that hold equally many examples."),
    MetricInfo(
        "ece_classwise", "ECE, classwise", "lower", "The same for the probability of every class, averaged over classes."
    ),
    MetricInfo("mce", "MCE", "lower", "The largest gap of any bin; bins of few examples make it large by chance."),
    MetricInfo("rms_calibration_error", "RMS calibration error", "lower", "The root mean square gap over the bins."),
    MetricInfo(
        "ece_squared_debiased",
        "squared ECE, debiased",
        "lower",
        "Mean squared gap minus the amount that chance adds; may be negative.",
    ),
    MetricInfo("smooth_ece", "smooth ECE", "lower", "A calibration error without bins: gaps are smoothed over confidence."),
    MetricInfo("mmce", "MMCE", "lower", "Maximum mean calibration error: a kernel compares all pairs of examples."),
    MetricInfo(
        "wmmce",
        "WMMCE",
        None,
        "The paper's training term; not zero for a calibrated classifier, unless it is right half the time.",
    ),
    MetricInfo("kce_squared", "squared KCE", "lower", "Squared kernel calibration error without bias; may be negative."),
    MetricInfo(
        "kce_p_value", "p-value of “calibrated”", None, "How often a calibrated classifier would look as bad by chance."
    ),
    MetricInfo("aurc", "AURC", "lower", "Mean error rate when abstaining on the least confident examples, over all coverages."),
    MetricInfo(
        "coverage_at_target", "coverage at target", "higher", "The fraction of examples it can answer at the target accuracy."
    ),
)
