"""Ray and Dask clusters of two processes on this machine, for tests that need the extras."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

__all__ = ["dask_of_two", "ray_of_two"]


@contextmanager
def ray_of_two() -> Iterator[Any]:
    """Connect this process to a new Ray: what is called with the backend "ray" uses it, and leaves it running."""
    ray = pytest.importorskip("ray")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("PYTHONPATH", f"{Path(__file__).parents[1]}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
        ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
        yield ray
        ray.shutdown()


@contextmanager
def dask_of_two() -> Iterator[str]:
    """Start a Dask whose workers are not forgiven a death, and yield its address."""
    distributed = pytest.importorskip("distributed")
    dask = pytest.importorskip("dask")
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster,
    ):
        yield cluster.scheduler_address
