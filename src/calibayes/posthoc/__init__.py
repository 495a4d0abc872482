"""Post-hoc calibration: repair the probabilities of a classifier that is already trained, with held-out data.

It is the baseline that every calibrated training should stand beside. Fit on data that neither trained nor will judge the
classifier; `docs/how-to/posthoc.md` says which method to take.
"""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from calibayes.posthoc.abstract_scaling import NotFittedError, PosthocWarning, Scaling
from calibayes.posthoc.auto_scaling import SCALINGS, AutoScaling, TriedScaling
from calibayes.posthoc.ensemble_scaling import SharpenedScaling, ensemble_scaling
from calibayes.posthoc.isotonic import IsotonicScaling
from calibayes.posthoc.no_scaling import NoScaling
from calibayes.posthoc.platt import PlattScaling
from calibayes.posthoc.quadratic import QuadraticScaling
from calibayes.posthoc.refined_nll import refined_nll
from calibayes.posthoc.structured_matrix import StructuredMatrixScaling
from calibayes.posthoc.temperature import TemperatureScaling, temperature
from calibayes.posthoc.vector import VectorScaling
from calibayes.posthoc.venn_abers import VennAbersScaling

if _TYPE_CHECKING:
    from calibayes.posthoc.calibrated_classifier import CalibratedClassifier, calibrate

__all__ = [
    "SCALINGS",
    "AutoScaling",
    "CalibratedClassifier",
    "IsotonicScaling",
    "NoScaling",
    "NotFittedError",
    "PlattScaling",
    "PosthocWarning",
    "QuadraticScaling",
    "Scaling",
    "SharpenedScaling",
    "StructuredMatrixScaling",
    "TemperatureScaling",
    "TriedScaling",
    "VectorScaling",
    "VennAbersScaling",
    "calibrate",
    "ensemble_scaling",
    "refined_nll",
    "temperature",
]

# They need scikit-learn, which `import calibayes` does not load.
_WHEN_FIRST_USED = ("CalibratedClassifier", "calibrate")


def __getattr__(name: str) -> _Any:
    if name not in _WHEN_FIRST_USED:
        raise AttributeError(f"module 'calibayes.posthoc' has no attribute {name!r}")
    from calibayes.posthoc import calibrated_classifier

    return getattr(calibrated_classifier, name)
