"""Use a classifier that calibayes exported, without calibayes or PyTorch: this file needs numpy, and onnxruntime to predict.

    from reader import Classifier

    classifier = Classifier("model.onnx")
    for answer in classifier.predict([{"age": 31, "city": "Lisbon"}]):
        print(answer["decision"], answer["confidence"])

A copy of this file lies beside every exported file that has a description of its rows (``model.json``).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["Classifier", "row_inputs"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LARGEST = 1e150
_MISSING = {"", "nan", "+nan", "-nan", "na", "n/a", "#n/a", "<na>", "null", "none", "nil", "-", "?", "."}
_NUMBER = {".": re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)}
_NUMBER[","] = re.compile(r"[+-]?(?:\d+,?\d*|,\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_WHOLE_NUMBER = re.compile(r"([+-]?)0*(\d+)(?:\.0*)?", re.ASCII)
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_\u3040-\u30ff\u3400-\u9fff]+(?:'[^\W_]+)*")


class Classifier:
    """An exported file in onnxruntime, with rows as they are in tables.

    Args:
        path: the ONNX file; it holds the description of the rows itself.
    """

    def __init__(self, path: str | Path) -> None:
        import onnxruntime

        self.session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        properties = self.session.get_modelmeta().custom_metadata_map
        self.description = json.loads(properties["calibayes"])
        self.card = properties["card"]

    def predict(self, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Answer each row: the decision, whether to abstain, the probabilities by class, and what else the file says."""
        if not rows:
            return []
        inputs = row_inputs(self.description["rows"], rows)
        (name,) = (each.name for each in self.session.get_inputs())
        outputs = [each.name for each in self.session.get_outputs()]
        found = dict(zip(outputs, self.session.run(None, {name: inputs}), strict=True))
        return [self._answer({name: values[row] for name, values in found.items()}) for row in range(len(rows))]

    def _answer(self, values: dict[str, Any]) -> dict[str, Any]:
        classes, actions = self.description["classes"], self.description["actions"]
        answer: dict[str, Any] = {"decision": None if values["abstain"] else actions[int(values["decision"])]}
        answer["abstain"] = bool(values["abstain"])
        answer["probs"] = dict(zip(classes, values["probs"].tolist(), strict=True))
        if "set" in values:
            answer["set"] = [name for name, inside in zip(classes, values["set"], strict=True) if inside]
        others = ("confidence", "epistemic", "aleatoric", "outsider")
        return answer | {name: float(values[name]) for name in others if name in values}


def row_inputs(description: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> np.ndarray:
    """The input of the graph for rows, each a dict of columns.

    Args:
        description: of the rows, ``rows`` in ``model.json``.
        rows: with texts, numbers or nothing (None) in the columns of tables and texts; for images an array of bytes in
            ``file``, or the name of a file (which needs Pillow).
    """
    kind = description["kind"]
    if kind == "table":
        return _table(description, rows)
    if kind == "text":
        return _texts(description, rows)
    channels, size = description["channels"], description["size"]
    pixels = [_pixels(description, cell) for cell in _cells(rows, "file")]
    return np.array(pixels, dtype=np.uint8).reshape(-1, channels, size, size)


def _cells(rows: Sequence[Mapping[str, Any]], name: str) -> list[Any]:
    """A column; a row without it is an error, since it is more often misspelt than empty."""
    for place, row in enumerate(rows, start=1):
        if name not in row:
            raise ValueError(f"Row {place} has no {name!r}, only {list(row)}. Where a value is missing, pass None.")
    return [row[name] for row in rows]


def _table(description: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> np.ndarray:
    columns: list[Any] = []
    for column in description["columns"]:
        cells, decimal = _cells(rows, column["name"]), description["decimal"]
        if column["kind"] == "category":
            places = {name: place for place, name in enumerate(column["values"])}
            columns.append([[_code(cell, places, decimal)] for cell in cells])
        elif column["kind"] == "date":
            columns.append(_converted(cells, column["name"], lambda cell: _date(cell, description["date_format"])))
        else:
            columns.append(_converted(cells, column["name"], lambda cell: [_number(cell, description["decimal"])]))
    widths = [4 if column["kind"] == "date" else 1 for column in description["columns"]]
    parts = [np.array(cells, dtype=np.float64).reshape(-1, width) for cells, width in zip(columns, widths, strict=True)]
    return np.concatenate(parts, axis=1)


def _converted(cells: Sequence[Any], name: str, convert: Callable[[Any], Sequence[float]]) -> list[Sequence[float]]:
    """The numbers of each cell; errors say which cell it was."""
    found = []
    for place, cell in enumerate(cells, start=1):
        try:
            found.append(convert(cell))
        except (ValueError, TypeError) as error:
            raise ValueError(f"Row {place}, column {name!r}: {error}") from None
    return found


def _code(cell: Any, places: Mapping[str, int], decimal: str) -> float:
    text = _text(cell, decimal)
    return float(places.get(_label(text), len(places))) if text.strip() else math.nan


def _text(cell: Any, decimal: str = ".") -> str:
    """A cell as a CSV file has it."""
    if isinstance(cell, float | np.floating):
        return "" if math.isnan(cell) else str(cell).removesuffix(".0").replace(".", decimal)
    return "" if cell is None else str(cell)


def _label(text: str) -> str:
    """One text for all spellings of a whole number or a truth value: 3 for 3.0, true for True."""
    text = text.strip()
    number = _WHOLE_NUMBER.fullmatch(text)
    if number:
        return number[2] if number[1] != "-" or number[2] == "0" else "-" + number[2]
    return text.lower() if text.lower() in ("true", "false") else text


def _number(cell: Any, decimal: str) -> float:
    if cell is None or not isinstance(cell, str):
        return _finite(math.nan if cell is None else float(cell))
    text = cell.strip()
    if text.lower() in _MISSING:
        return math.nan
    if not _NUMBER[decimal].fullmatch(text):
        raise ValueError(f"{cell!r} is not a number. Write it with digits and the decimal mark {decimal!r}.")
    return _finite(float(text.replace(decimal, ".")))


def _finite(value: float) -> float:
    if abs(value) > _LARGEST:
        raise ValueError(f"{value:g} is too large a number. If it stands for a missing value, pass None.")
    return value


def _date(cell: Any, date_format: str | None) -> tuple[float, ...]:
    moment = _moment(cell, date_format)
    if moment is None:
        return (math.nan,) * 4
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return (moment - _EPOCH) / timedelta(days=1), moment.month, moment.weekday(), moment.hour


def _moment(cell: Any, date_format: str | None) -> datetime | None:
    if cell is None or isinstance(cell, datetime):
        return cell
    if isinstance(cell, date):
        return datetime(cell.year, cell.month, cell.day)
    text = str(cell).strip()
    if text.lower() in _MISSING:
        return None
    if date_format is not None:
        try:
            return datetime.strptime(text, date_format)
        except ValueError:
            pass
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{cell!r} is not a date. Write it like 2024-12-31 or 2024-12-31 23:59.") from None


def _texts(description: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> np.ndarray:
    places = {word: place for place, word in enumerate(description["vocabulary"], start=1)}
    columns = [list(map(_text, _cells(rows, name))) for name in description["columns"]]
    texts = ["\n".join(cells) for cells in zip(*columns, strict=True)]
    words = [_WORD.findall(text.lower().replace("’", "'")) for text in texts]
    parts = [words]
    if description["bigrams"]:
        parts.append([[f"{first} {second}" for first, second in pairwise(text)] for text in words])
    length, once = description["length"], description["once"]
    return np.concatenate([_indices(part, places, length, once) for part in parts], axis=1)


def _indices(texts: Iterable[Sequence[str]], places: Mapping[str, int], length: int, once: bool) -> np.ndarray:
    """Word indices, with zeros before those of a short text; words that are not known are left out."""
    rows = []
    for text in texts:
        known = [places[word] for word in text if word in places]
        kept = (list(dict.fromkeys(known)) if once else known)[:length]
        rows.append([0] * (length - len(kept)) + kept)
    return np.array(rows, dtype=np.int64).reshape(-1, length)


def _pixels(description: Mapping[str, Any], image: Any) -> Any:
    """Bytes ``[channels, size, size]`` of an image."""
    channels, size = description["channels"], description["size"]
    if not isinstance(image, np.ndarray):
        image = _opened(image, channels, size)
    if image.shape == (size, size):
        image = image[None]
    if image.shape != (channels, size, size) or image.dtype != np.uint8:
        raise ValueError(
            f"Expected bytes of shape [{channels}, {size}, {size}], but got {list(image.shape)} of {image.dtype}. Resize first."
        )
    return image


def _opened(path: Any, channels: int, size: int) -> Any:
    """An image file upright, on white, resized to a square."""
    from PIL import Image, ImageOps

    with Image.open(path) as image:
        whole = ImageOps.exif_transpose(image)
        if whole.mode.startswith("I"):  # 16 bits
            whole = Image.fromarray((np.asarray(whole, dtype=np.int64).clip(0, 65535) >> 8).astype(np.uint8))
        if whole.mode in ("LA", "La", "PA", "RGBA", "RGBa") or "transparency" in whole.info:
            clear = whole.convert("RGBA")
            whole = Image.alpha_composite(Image.new("RGBA", clear.size, "white"), clear)
        whole = whole.convert("L" if channels == 1 else "RGB").resize((size, size), Image.Resampling.BILINEAR)
        pixels = np.asarray(whole, dtype=np.uint8)
    return pixels[None] if channels == 1 else pixels.transpose(2, 0, 1)
