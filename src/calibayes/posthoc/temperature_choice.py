"""A temperature only where held-out data settle one."""

from __future__ import annotations

import warnings

from calibayes.metrics.prediction_arrays import Array
from calibayes.posthoc.abstract_scaling import PosthocWarning
from calibayes.posthoc.temperature import TemperatureScaling

__all__ = ["temperature_or_identity"]


def temperature_or_identity(
    probs: Array, targets: Array, weights: Array | None = None
) -> tuple[TemperatureScaling, str | None]:
    """Temperature scaling fitted on held-out predictions, or one that changes nothing, and why.

    Where every held-out example is decided right, the best temperature is zero: a bound in its place would be a number that
    no data have chosen, and one wrong decision on other data would cost all there is.

    Args:
        probs: class probabilities, shape ``[n, K]``.
        targets: the true classes, shape ``[n]``.
        weights: how much each example counts, non-negative.
    """
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", PosthocWarning)
        scaling = TemperatureScaling().fit(probs, targets, weights=weights)
    if not told:
        return scaling, None
    reason = str(told[0].message).partition(": stopped")[0]
    return TemperatureScaling.of(1.0, probs.shape[-1]), f"{reason}. No temperature is used."
