"""The HTTP service: predictions, health, metrics, a description, and a page for people."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib.resources import files
from typing import Any

import numpy as np
import torch
from fastapi import FastAPI, Request, Response
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse
from torch import Tensor

import calibayes
from calibayes.errors import CalibayesError
from calibayes.files.image_coding import ImageCoding
from calibayes.files.model import Model, load
from calibayes.service.model_description import answer_schema, description, request_schema
from calibayes.service.request_batcher import RequestBatcher
from calibayes.service.request_errors import RequestError
from calibayes.service.request_gate import RequestGate, error_response
from calibayes.service.request_inputs import RequestReader, read_body
from calibayes.service.row_predictor import RowPredictor
from calibayes.service.service_metrics import ServiceMetrics
from calibayes.service.settings import ServiceSettings
from calibayes.tables import RowBlock, TableOptions, UnnamedRows

__all__ = ["create_app"]

_PAGE = {"/": ("page.html", "text/html"), "/page.css": ("page.css", "text/css"), "/page.js": ("page.js", "text/javascript")}
_PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
_FAILED = "Something went wrong in the service. Its log says what."
_TICK = 0.5
_SWITCH = 0.0005  # seconds after which the event loop lets the predictor's thread go on
_REFUSALS = {400: "A form that cannot be read.", 401: "A token is missing or wrong.",
             403: "A page of another site, or another name for this machine, without a token.", 408: "The body took too long.",
             413: "Too many rows or bytes.", 415: "A type that cannot be read.", 422: "Rows that cannot be read.",
             503: "Too many requests at the same time, or a prediction took too long."}  # fmt: skip


def create_app(settings: ServiceSettings) -> FastAPI:
    """Load the model and return the application of one worker."""
    torch.set_num_threads(1)
    sys.setswitchinterval(_SWITCH)
    model, options = load(settings.model), TableOptions(**settings.table_options)
    predictor = RowPredictor(model, options, **settings.actions)
    metrics = ServiceMetrics(model.set_aside, settings.workers, seed=os.getpid())
    batcher = RequestBatcher(predictor, _blank(model, options), metrics.rows)
    reader = RequestReader(model, options, settings.max_rows)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        ticking = asyncio.create_task(_tick(metrics))
        yield
        ticking.cancel()
        with suppress(asyncio.CancelledError):
            await ticking
        reader.close()
        batcher.close()
        metrics.catch_up()

    app = FastAPI(
        title=f"calibayes: {settings.model.name}",
        description=f"Predicts {model.target!r}, and says how sure it is. " + " ".join(predictor.actions.notes),
        version=calibayes.__version__,
        docs_url=None,  # they would load scripts from elsewhere
        redoc_url=None,
        lifespan=lifespan,
    )
    app.add_middleware(RequestGate, settings=settings, seen=metrics.request)
    app.add_exception_handler(CalibayesError, error_response)
    app.add_exception_handler(Exception, lambda request, error: JSONResponse({"detail": _FAILED}, 500))
    app.add_exception_handler(ClientDisconnect, lambda request, error: Response(status_code=400))

    async def predict(request: Request) -> Response:
        """Predict rows: the decision, probabilities, confidence, set, abstention and how much of an outsider each row is."""
        body: bytes | None = None
        try:
            async with asyncio.timeout(settings.max_seconds):
                body = await read_body(request, settings.max_bytes)
                rows = await reader.read(request.headers, body)
                parts = await batcher.predict(rows.inputs)
        except TimeoutError:
            within = f"within {settings.max_seconds:g} seconds"
            if body is None:
                raise RequestError(408, f"The body did not arrive {within}.") from None
            raise RequestError(503, f"There was no prediction {within}. Send fewer rows, or later.", Retry_After="1") from None
        text = f'{{"rows":[{",".join(part.text for part in parts)}],"notes":{json.dumps(rows.notes, ensure_ascii=False)}}}'
        return Response(text, media_type="application/json")

    answer = {"description": "One prediction for each row.", "content": {"application/json": {"schema": answer_schema(model)}}}
    app.post(
        "/predict",
        response_class=Response,
        responses={200: answer, **{status: {"description": text} for status, text in _REFUSALS.items()}},
        openapi_extra={"requestBody": {"required": True, "content": request_schema(model)}},
    )(predict)

    async def about() -> dict[str, Any]:
        """The columns that rows need, the classes, what is guaranteed, and the limits on requests."""
        return description(model, predictor.actions, settings)

    async def health() -> dict[str, str]:
        """Answers if the service does; needs no token."""
        return {"status": "ok"}

    async def numbers() -> Response:
        """All numbers for Prometheus."""
        return Response(metrics.page(), media_type="text/plain; version=0.0.4; charset=utf-8")

    app.get("/model")(about)
    app.get("/health")(health)
    app.get("/metrics", response_class=Response)(numbers)
    for path, (name, media_type) in _PAGE.items():
        app.get(path, include_in_schema=False)(_static(name, media_type))
    return app


def _static(name: str, media_type: str) -> Any:
    content = files("calibayes.service").joinpath("page", name).read_bytes()

    async def page() -> Response:
        return Response(content, media_type=media_type, headers=_PAGE_HEADERS)

    return page


def _blank(model: Model, options: TableOptions) -> Tensor:
    """Return the inputs of a row in which everything is missing."""
    import pyarrow as pa

    if isinstance(model.coding, ImageCoding):
        return torch.zeros(1, model.coding.channels, model.coding.size, model.coding.size, dtype=torch.uint8)
    table = pa.table({name: pa.array([None], pa.large_string()) for name in model.coding.needs})
    return model.encode(RowBlock(table, np.arange(1), UnnamedRows(None, options)))


async def _tick(metrics: ServiceMetrics) -> None:
    """Count what was predicted from time to time, and end when the process that started this worker is gone."""
    parent = os.getppid()
    while True:
        await asyncio.sleep(_TICK)
        metrics.catch_up()
        if os.getppid() != parent:
            signal.raise_signal(signal.SIGTERM)
