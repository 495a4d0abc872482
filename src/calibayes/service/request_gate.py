"""What every request passes: the token, the limit on requests at the same time, and the count."""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable
from typing import Any, final

from fastapi import Request, Response
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from calibayes.service.request_errors import RequestError
from calibayes.service.settings import ServiceSettings

__all__ = ["RequestGate", "error_response"]

_OPEN = frozenset({"/", "/page.css", "/page.js", "/health"})
_PATHS = _OPEN | {"/predict", "/metrics", "/model", "/openapi.json"}


@final
class RequestGate:
    """Lets requests pass that carry the token, as long as there are not too many, and counts all of them.

    Args:
        app: what answers them.
        settings: with the token and the limit.
        seen: called with the path, the status and the seconds of each request.
    """

    def __init__(self, app: ASGIApp, settings: ServiceSettings, seen: Callable[[str, int, float], None]) -> None:
        self._app, self._seen, self._most = app, seen, settings.max_requests
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
        if self._expected is not None:
            given = Headers(scope=scope).get("authorization", "").encode("latin-1")
            if not hmac.compare_digest(given, self._expected):
                what = "This service needs a token, and the request has none that fits. Send Authorization: Bearer TOKEN."
                return RequestError(401, what, WWW_Authenticate="Bearer")
        if self._active >= self._most:
            return RequestError(503, f"There are {self._active} requests under way already. Try again soon.", Retry_After="1")
        return None


def error_response(request: Request | None, error: Any) -> Response:
    """Return the message of an error, as the command line prints it, with its status."""
    known = isinstance(error, RequestError)
    notes = getattr(error, "__notes__", [])
    message = " ".join([" ".join(str(error).split()), *notes])
    return JSONResponse({"detail": message}, error.status if known else 422, headers=error.headers if known else None)
