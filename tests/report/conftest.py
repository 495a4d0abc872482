"""One browser for all tests of the page, and pages of every kind on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.report.browser import Browser, missing

from calibayes.report.page import write_page


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    reason = missing()
    if reason:
        pytest.skip(reason)
    with Browser() as browser:
        yield browser


@pytest.fixture
def browser(chromium: Browser) -> Browser:
    """The browser as a desktop in light colours, with nothing logged yet."""
    chromium.resize(1280)
    chromium.media(prefers_color_scheme="light", prefers_reduced_motion="reduce")
    chromium.post("/url", {"url": "about:blank"})
    chromium.log("browser")
    chromium.log("performance")
    return chromium


@pytest.fixture
def written(tmp_path: Path) -> Callable[[dict[str, Any]], Path]:
    def write(study: dict[str, Any]) -> Path:
        path = tmp_path / "report.html"
        write_page(study, path)
        return path

    return write
