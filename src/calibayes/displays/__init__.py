"""Pictures of how far confidence can be trusted. matplotlib is imported when the first one is drawn."""

from __future__ import annotations

from calibayes.displays.confidence_histogram import ConfidenceHistogramDisplay
from calibayes.displays.lambda_sweep import SweepDisplay, SweepPoint
from calibayes.displays.reliability import ReliabilityDisplay
from calibayes.displays.reliability_grid import reliability_grid
from calibayes.displays.risk_coverage import RiskCoverageDisplay
from calibayes.displays.training_curves import HistoryDisplay

__all__ = [
    "ConfidenceHistogramDisplay",
    "HistoryDisplay",
    "ReliabilityDisplay",
    "RiskCoverageDisplay",
    "SweepDisplay",
    "SweepPoint",
    "reliability_grid",
]
