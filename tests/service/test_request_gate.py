"""A service without a token does not answer to the pages of others, whatever name they give to this machine."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from calibayes.service.settings import ServiceSettings

pytest.importorskip("fastapi")
pytestmark = pytest.mark.serve


def answer(settings: ServiceSettings, method: str, path: str, **headers: str) -> tuple[int, str]:
    """The status of a request, and the message; 200 if the gate lets it pass."""
    from starlette.responses import Response

    from calibayes.service.request_gate import RequestGate

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    named = [(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in headers.items()]
    scope = {"type": "http", "method": method, "path": path, "headers": named}
    asyncio.run(RequestGate(Response(b"{}"), settings, lambda *_: None)(scope, receive, send))
    return sent[0]["status"], json.loads(sent[1]["body"]).get("detail", "")


def settings(**others: Any) -> ServiceSettings:
    return ServiceSettings(model=Path("a.model"), **others)


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8000", "127.0.0.1:8000", "[::1]:8000", "a.localhost:80", "192.168.0.7", ""]
)
def test_names_of_this_machine_pass(host: str) -> None:
    assert answer(settings(), "POST", "/predict", host=host) == (200, "")


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example:8000", "127.0.0.1.evil.example", "x[", "localhos"])
def test_a_name_that_others_pointed_at_this_machine_is_refused(host: str) -> None:
    for method, path in (("POST", "/predict"), ("GET", "/model"), ("GET", "/metrics"), ("GET", "/openapi.json")):
        status, detail = answer(settings(), method, path, host=host)
        assert (status, "answers to localhost, and not to '" in detail) == (403, True)
    assert answer(settings(), "GET", "/health", host=host) == (200, "")
    assert answer(settings(host="0.0.0.0"), "GET", "/model", host=host) == (200, "")
    assert answer(settings(token="s3cret"), "GET", "/model", host=host, authorization="Bearer s3cret") == (200, "")
    assert answer(settings(token="s3cret"), "GET", "/model", host=host)[0] == 401


@pytest.mark.parametrize(("site", "status"), [("same-origin", 200), ("none", 200), ("same-site", 403), ("cross-site", 403)])
def test_only_the_services_own_page_may_send_rows_without_a_token(site: str, status: int) -> None:
    for host in ("127.0.0.1", "0.0.0.0"):
        assert answer(settings(host=host), "POST", "/predict", sec_fetch_site=site)[0] == status
    own = settings(token="s3cret")
    assert answer(own, "POST", "/predict", sec_fetch_site=site, authorization="Bearer s3cret")[0] == 200
