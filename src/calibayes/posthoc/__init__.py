"""Post-hoc calibration: repair the probabilities of a classifier that is already trained, with held-out data.

It is the baseline that every calibrated training should stand beside. Fit on data that neither trained nor will judge the
classifier; `docs/how-to/posthoc.md` says which method to take.
"""

from __future__ import annotations

from calibayes.posthoc.abstract_scaling import NotFittedError, PosthocWarning, Scaling
from calibayes.posthoc.refinement import refined_nll
from calibayes.posthoc.temperature import TemperatureScaling, temperature
from calibayes.posthoc.two_class import IsotonicScaling, PlattScaling
from calibayes.posthoc.vector import VectorScaling

__all__ = [
    "IsotonicScaling",
    "NotFittedError",
    "PlattScaling",
    "PosthocWarning",
    "Scaling",
    "TemperatureScaling",
    "VectorScaling",
    "refined_nll",
    "temperature",
]
