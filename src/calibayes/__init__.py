"""Train classifiers whose confidence can be trusted: calibration-aware Bayesian learning for any PyTorch network."""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from calibayes import calibration as calibration
from calibayes import displays as displays
from calibayes import errors as errors
from calibayes import metrics as metrics
from calibayes import posthoc as posthoc
from calibayes import schedules as schedules
from calibayes.calibration import DECE as DECE
from calibayes.calibration import MMCE as MMCE
from calibayes.calibration import SBECE as SBECE
from calibayes.calibration import WMMCE as WMMCE
from calibayes.checkpoint import load as load
from calibayes.checkpoint import save as save
from calibayes.displays import ReliabilityDisplay as ReliabilityDisplay
from calibayes.methods import METHODS as METHODS
from calibayes.methods import NETWORK_METHODS as NETWORK_METHODS
from calibayes.methods import build as build
from calibayes.metrics import evaluate as evaluate
from calibayes.objective import SCHEMES as SCHEMES
from calibayes.objective import Calibration as Calibration
from calibayes.objective import ConfidenceMinimization as ConfidenceMinimization
from calibayes.objective import CrossEntropy as CrossEntropy
from calibayes.objective import Focal as Focal
from calibayes.objective import Objective as Objective
from calibayes.posterior import SWAG as SWAG
from calibayes.posterior import Distilled as Distilled
from calibayes.posterior import Ensemble as Ensemble
from calibayes.posterior import Group as Group
from calibayes.posterior import LastLayerLaplace as LastLayerLaplace
from calibayes.posterior import MCDropout as MCDropout
from calibayes.posterior import MeanField as MeanField
from calibayes.posterior import NetworkPosterior as NetworkPosterior
from calibayes.posterior import Point as Point
from calibayes.posterior import Posterior as Posterior
from calibayes.predictive import Predictive as Predictive
from calibayes.predictive import predict as predict
from calibayes.training import EMA as EMA
from calibayes.training import EarlyStopping as EarlyStopping
from calibayes.training import EqualAverage as EqualAverage
from calibayes.training import History as History
from calibayes.training import NaturalGradient as NaturalGradient
from calibayes.training import distill as distill
from calibayes.training import fit as fit

if _TYPE_CHECKING:
    from calibayes import acting as acting
    from calibayes import networks as networks
    from calibayes import sweeps as sweeps
    from calibayes import testing as testing
    from calibayes.estimator.classifier import CalibayesClassifier as CalibayesClassifier
    from calibayes.exporting.export_posterior import export as export
    from calibayes.networks import InputDropout as InputDropout
    from calibayes.posthoc.calibrated_classifier import calibrate as calibrate
    from calibayes.sweeps.run_sweep import sweep as sweep
    from calibayes.sweeps.settings_grid import grid as grid

__version__ = "0.1.0"

_WHEN_FIRST_USED = {
    "CalibayesClassifier": "calibayes.estimator",
    "InputDropout": "calibayes.networks",
    "acting": "calibayes.acting",
    "calibrate": "calibayes.posthoc",
    "export": "calibayes.exporting",
    "grid": "calibayes.sweeps",
    "networks": "calibayes.networks",
    "sweep": "calibayes.sweeps",
    "sweeps": "calibayes.sweeps",
    "testing": "calibayes.testing",
}


def __getattr__(name: str) -> _Any:
    if name not in _WHEN_FIRST_USED:
        raise AttributeError(f"module 'calibayes' has no attribute {name!r}")
    from importlib import import_module

    home = import_module(_WHEN_FIRST_USED[name])
    return home if home.__name__ == f"calibayes.{name}" else getattr(home, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHEN_FIRST_USED})
