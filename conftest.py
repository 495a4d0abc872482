"""One thread and fixed seeds, so that every run gives the same bits."""

from __future__ import annotations

import signal
from importlib.util import find_spec
from typing import Any

import hypothesis
import pytest
import torch

import calibayes

torch.set_num_threads(1)
# A shell that starts the tests in the background has Ctrl-C ignored, by them and by all processes that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Doors to packages that are not installed cannot be imported: neither their examples nor their tests can be collected.
_PACKAGES = {"lightning": "lightning", "transformers": "transformers", "service": "fastapi"}
_CLOSED = [door for door, package in _PACKAGES.items() if find_spec(package) is None]
collect_ignore = [f"{place}/{door}" for door in _CLOSED for place in ("src/calibayes", "tests")]
hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None)
hypothesis.settings.load_profile("repeatable")


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def _doctest_names(request: pytest.FixtureRequest, doctest_namespace: dict[str, Any]) -> None:
    """A docstring stands in its module; a page shows every import, since a reader types it from the top."""
    doctest_namespace.clear()
    if request.path.suffix == ".py":
        doctest_namespace.update(torch=torch, calibayes=calibayes)
