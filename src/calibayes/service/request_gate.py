"""What every request passes: the token, or that no web page of others sent it; the limit on requests; and the count."""

from __future__ import annotations

import hmac
import ipaddress
import time
from collections.abc import Callable
from typing import Any, final
from urllib.parse import urlsplit

from fastapi import Request, Response
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from calibayes.service.request_errors import RequestError
from calibayes.service.settings import ServiceSettings
from calibayes.wording import shown

__all__ = ["RequestGate", "error_response"]

_OPEN = frozenset({"/", "/page.css", "/page.js", "/health"})
_PATHS = _OPEN | {"/predict", "/metrics", "/model", "/openapi.json"}


@final
class RequestGate:
    """Lets requests pass that carry the token, as long as there are not too many, and counts all of them.

    Without a token, a browser on this machine could be made to use the service by any page that it shows. So rows that a page
    of another site sends are refused, and, where only this machine is served, so are requests to a name that its owner may
    have pointed at this machine.

    Args:
        app: what answers them.
        settings: with the token and the limit.
        seen: called with the path, the status and the seconds of each request.
    """

    def __init__(self, app: ASGIApp, settings: ServiceSettings, seen: Callable[[str, int, float], None]) -> None:
        self._app, self._seen, self._most = app, seen, settings.max_requests
        self._local_host = None if settings.for_others else settings.host
        self._expected = None if settings.token is None else f"Bearer {settings.token}".encode()
        self._active = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass on what is none."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status = time.perf_counter(), 500

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        refusal = self._refusal(scope)
        self._active += 1
        try:
            if refusal is None:
                await self._app(scope, receive, noted)
            else:
                await error_response(None, refusal)(scope, receive, noted)
        finally:
            self._active -= 1
            path = scope["path"] if scope["path"] in _PATHS else "other"
            self._seen(path, status, time.perf_counter() - start)

    def _refusal(self, scope: Scope) -> RequestError | None:
        if scope["path"] in _OPEN:
            return None
        headers = Headers(scope=scope)
        if self._expected is None:
            if (foreign := self._foreign(scope["method"], headers)) is not None:
                return foreign
        elif not hmac.compare_digest(headers.get("authorization", "").encode("latin-1"), self._expected):
            what = "This service needs a token, and the request has none that fits. Send Authorization: Bearer TOKEN."
            return RequestError(401, what, WWW_Authenticate="Bearer")
        if self._active >= self._most:
            return RequestError(503, f"There are {self._active} requests under way already. Try again soon.", Retry_After="1")
        return None

    def _foreign(self, method: str, headers: Headers) -> RequestError | None:
        """Return why a request without a token may come from a web page of others; None if it does not."""
        if method == "POST" and headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            return RequestError(403, "A page of another site may not use a service without a token. Start it with a --token.")
        host = headers.get("host", "")
        if self._local_host is not None and not _names_an_address(host, self._local_host):
            what = f"This service answers to localhost, and not to {shown(host)}. Start it with a --token to serve other names."
            return RequestError(403, what)
        return None


def _names_an_address(host: str, own: str) -> bool:
    """Return True if a Host header has a name that only this machine can have given: localhost, an address, or its own."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        if host and name not in ("localhost", own.lower()) and not name.endswith(".localhost"):
            ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def error_response(request: Request | None, error: Any) -> Response:
    """Return the message of an error, as the command line prints it, with its status."""
    known = isinstance(error, RequestError)
    notes = getattr(error, "__notes__", [])
    message = " ".join([" ".join(str(error).split()), *notes])
    return JSONResponse({"detail": message}, error.status if known else 422, headers=error.headers if known else None)
