"""Rows to check an exported model with: those of a file, or made up ones that have all kinds of cells."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from calibayes.exporting.reader import row_inputs
from calibayes.files.model import Coding, Model
from calibayes.files.read_rows import read_rows
from calibayes.files.table_coding import TableCoding
from calibayes.files.table_columns import CategoryColumn, DateColumn, InputColumn
from calibayes.files.text_coding import TextCoding
from calibayes.randomness import derived_seed
from calibayes.tables import RowBlock, TableOptions, frame_block
from calibayes.tables.numbers import label_key

__all__ = ["CheckRows", "described_rows", "generated_rows", "rows_of_file"]

_ROWS = 256
_MOST_ROWS = 20_000
_MISSING = 0.1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, eq=False)
class CheckRows:
    """Rows as inputs.

    Attributes:
        inputs: of the networks, as calibayes encodes the rows.
        tensor: of the exported file, as the reader beside it encodes them.
        known: the places of the rows with a class that the model knows.
        labels: the classes of these.
    """

    inputs: Tensor
    tensor: Tensor
    known: Tensor
    labels: Tensor


def described_rows(coding: Coding, options: TableOptions) -> dict[str, Any]:
    """How rows become inputs, in plain values, for `calibayes.exporting.reader`."""
    if isinstance(coding, TableCoding):
        columns = [
            {"name": column.name, "kind": column.kind}
            | ({"values": list(column.values)} if isinstance(column, CategoryColumn) else {})
            for column in coding.columns
        ]
        return {"kind": "table", "columns": columns, "decimal": options.decimal, "date_format": options.date_format}
    if isinstance(coding, TextCoding):
        return {"bigrams": False, **coding.to_dict()}
    return coding.to_dict()


def rows_of_file(model: Model, path: Path, options: TableOptions) -> CheckRows:
    """At most 20,000 rows of a file, drawn at random; those with a class that the model knows are labelled."""
    block, _ = read_rows(path, options, max_rows=_MOST_ROWS, seed=model.seed)
    model.check_columns(block.table.column_names)
    codes: list[int] = [-1] * len(block.rows)
    if model.target in block.table.column_names:
        places = {label_key(name): place for place, name in enumerate(model.classes)}
        cells = block.cells(model.target).to_pylist()
        codes = [-1 if cell is None else places.get(label_key(cell), -1) for cell in cells]
    known = [row for row, code in enumerate(codes) if code >= 0]
    return _checked(model, block, options, torch.tensor(known, dtype=torch.int64), torch.tensor([codes[row] for row in known]))


def generated_rows(model: Model, options: TableOptions) -> CheckRows:
    """Rows with cells like those of the training data, some missing or unknown, by a fixed seed."""
    generator = np.random.default_rng(derived_seed(0, "rows to check"))
    nothing = torch.zeros(0, dtype=torch.int64)
    coding = model.coding
    if isinstance(coding, TableCoding):
        cells = {column.name: _cells(column, generator, options) for column in coding.columns}
    elif isinstance(coding, TextCoding):
        cells = {name: [" ".join(generator.choice(coding.vocabulary, 12)) for _ in range(_ROWS)] for name in coding.columns}
    else:
        pixels = torch.from_numpy(generator.integers(0, 256, (_ROWS // 8, coding.channels, coding.size, coding.size), np.uint8))
        return CheckRows(pixels, pixels, nothing, nothing)
    block = frame_block(cells)
    return _checked(model, RowBlock(block.table, block.rows, _with_options(block.source, options)), options, nothing, nothing)


def _checked(model: Model, block: RowBlock, options: TableOptions, known: Tensor, labels: Tensor) -> CheckRows:
    inputs = model.coding.encode(block)  # first: its errors name the line
    rows = block.table.select(list(model.coding.needs)).to_pylist()
    tensor = torch.from_numpy(row_inputs(described_rows(model.coding, options), rows))
    return CheckRows(inputs, tensor, known, labels)


def _with_options(source: Any, options: TableOptions) -> Any:
    return type(source)(source.path, options)


def _cells(column: InputColumn, generator: np.random.Generator, options: TableOptions) -> list[str | None]:
    texts: list[str]
    if isinstance(column, CategoryColumn):
        texts = [str(each) for each in generator.choice([*column.values, "something else"], _ROWS)]
    elif isinstance(column, DateColumn):
        days = generator.normal(column.means[0], column.stds[0], _ROWS).clip(-20_000, 50_000)
        moments = [_EPOCH + timedelta(days=float(day)) for day in days]
        texts = [each.strftime(options.date_format or "%Y-%m-%d %H:%M") for each in moments]
    else:
        numbers = generator.normal(column.mean, 3 * column.std, _ROWS)
        texts = [repr(float(each)).replace(".", options.decimal) for each in numbers]
    missing = generator.random(_ROWS) < _MISSING
    return [None if empty else text for text, empty in zip(texts, missing, strict=True)]
