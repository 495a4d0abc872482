"""A file on a server for every test that asks for one."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from tests.data.fetching.server import Served, served

CONTENT = random.Random(0).randbytes(300_000)


@pytest.fixture
def file(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with served(CONTENT) as there:
        yield there
