"""Sweeps: any number of trials over processes or a cluster, each done once, whatever happens in between."""

from __future__ import annotations

from calibayes.sweeps.found import Sweep, Trial, read
from calibayes.sweeps.grid import grid
from calibayes.sweeps.records import Failure
from calibayes.sweeps.sweep import sweep

__all__ = ["Failure", "Sweep", "Trial", "grid", "read", "sweep"]
