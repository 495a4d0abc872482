"""Sweeps: any number of trials over processes or a cluster, each done once."""

from __future__ import annotations

from calibayes.sweeps.records import Failure
from calibayes.sweeps.run_sweep import sweep
from calibayes.sweeps.settings_grid import grid
from calibayes.sweeps.sweep_results import Sweep, Trial, read

__all__ = ["Failure", "Sweep", "Trial", "grid", "read", "sweep"]
