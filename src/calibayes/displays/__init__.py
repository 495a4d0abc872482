"""Pictures of how far confidence can be trusted. matplotlib is imported when the first one is drawn."""

from __future__ import annotations

from calibayes.displays.grid import reliability_grid
from calibayes.displays.reliability import ReliabilityDisplay

__all__ = ["ReliabilityDisplay", "reliability_grid"]
