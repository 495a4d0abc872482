"""A model in words and schemas: for the page, and for programs that read OpenAPI."""

from __future__ import annotations

from typing import Any

import calibayes
from calibayes.files.image_coding import ImageCoding
from calibayes.files.model import Model
from calibayes.files.row_actions import RowActions
from calibayes.files.table_coding import TableCoding
from calibayes.files.table_columns import CategoryColumn, InputColumn, NumberColumn
from calibayes.service.settings import ServiceSettings
from calibayes.service.uploads import IMAGES, TABLES

__all__ = ["answer_schema", "description", "request_schema"]

_NUMBER, _TEXT = {"type": "number"}, {"type": "string"}


def description(model: Model, actions: RowActions, settings: ServiceSettings) -> dict[str, Any]:
    """Return what the page shows of a model: its columns, classes, guarantees and limits."""
    return {
        "name": settings.model.name,
        "version": calibayes.__version__,
        "kind": model.coding.kind,
        "target": model.target,
        "classes": list(model.classes),
        "columns": _columns(model),
        "statements": list(actions.notes),
        "abstains": actions.abstains,
        "limits": {
            "bytes": settings.max_bytes,
            "rows": settings.max_rows,
            "seconds": settings.max_seconds,
            "requests": settings.max_requests,
        },
    }


def request_schema(model: Model) -> dict[str, Any]:
    """Return the body of ``POST /predict`` in OpenAPI."""
    file = {"type": "object", "properties": {"file": {"type": "string", "format": "binary"}}, "required": ["file"]}
    forms: dict[str, Any] = {"multipart/form-data": {"schema": file}}
    if isinstance(model.coding, ImageCoding):
        return forms | {kind: {"schema": {"type": "string", "format": "binary"}} for kind in IMAGES}
    cell = {"type": ["string", "number", "boolean", "null"]}
    row = {
        "type": "object",
        "required": list(model.coding.needs),
        "properties": {column["name"]: cell | {"description": column["hint"]} for column in _columns(model)},
        "additionalProperties": True,
    }
    rows = {"type": "array", "items": row, "minItems": 1}
    body = {"type": "object", "required": ["rows"], "properties": {"rows": rows}, "additionalProperties": False}
    return {"application/json": {"schema": body}} | {kind: {"schema": _TEXT} for kind in TABLES} | forms


def answer_schema(model: Model) -> dict[str, Any]:
    """Return the answer of ``POST /predict`` in OpenAPI."""
    classes = list(model.classes)
    row: dict[str, Any] = {
        "decision": {"type": ["string", "null"], "description": "The class or action; null where it abstains."},
        "abstain": {"type": "boolean"},
        "reason": {"type": ["string", "null"], "description": "Why it abstains."},
        "confidence": _NUMBER | {"description": "The probability of the most probable class."},
        "probabilities": {"type": "object", "properties": dict.fromkeys(classes, _NUMBER), "required": classes},
        "set": {"type": ["array", "null"], "items": _TEXT, "description": "A set with the guaranteed coverage, if any."},
        "outsider": {"type": ["number", "null"], "description": "The share of known rows that look less unusual, if known."},
        "epistemic": _NUMBER | {"description": "Uncertainty for lack of data, in nats."},
        "aleatoric": _NUMBER | {"description": "Uncertainty of the classes themselves, in nats."},
    }
    rows = {"type": "array", "items": {"type": "object", "properties": row, "required": list(row)}}
    notes = {"type": "array", "items": _TEXT}
    return {"type": "object", "properties": {"rows": rows, "notes": notes}, "required": ["rows", "notes"]}


def _columns(model: Model) -> list[dict[str, Any]]:
    if isinstance(model.coding, TableCoding):
        return [_column(column) for column in model.coding.columns]
    kind, hint = ("image", "PNG or JPEG") if isinstance(model.coding, ImageCoding) else ("text", "a text")
    return [{"name": name, "kind": kind, "hint": hint} for name in model.coding.needs]


def _column(column: InputColumn) -> dict[str, Any]:
    if isinstance(column, NumberColumn):
        return {"name": column.name, "kind": "number", "hint": f"{column.mean:.3g} ± {float(f'{column.std:.2g}'):g}"}
    if isinstance(column, CategoryColumn):
        return {"name": column.name, "kind": "category", "hint": "a category", "values": list(column.values)}
    return {"name": column.name, "kind": "date", "hint": "a date like 2024-12-31"}
