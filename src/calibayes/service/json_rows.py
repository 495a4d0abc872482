"""Rows in JSON, read strictly: what is not a row of plain values is refused with a message that says where."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple, NoReturn

import numpy as np

from calibayes.errors import DataError
from calibayes.service.row_limits import RowLimits
from calibayes.tables import RowBlock, TableOptions, UnnamedRows
from calibayes.tables.formats import is_utf8
from calibayes.tables.json_objects import object_of_pairs
from calibayes.tables.numbers import plain_text
from calibayes.wording import shown, type_name

__all__ = ["JsonRows", "json_rows", "rows_as_block"]

_FORM = 'Send an object like {"rows": [{"size": 1.5, "colour": "red"}]}.'


class JsonRows(NamedTuple):
    """The rows of a request.

    Attributes:
        names: of all columns.
        cells: the texts of the columns that the model uses.
        rows: how many there are.
    """

    names: tuple[str, ...]
    cells: dict[str, list[str | None]]
    rows: int


def json_rows(body: bytes, options: TableOptions, limits: RowLimits) -> JsonRows:
    r"""Return the rows of a JSON body as texts, as a file of JSON lines with the same rows would give.

    Columns are those of the first row; what a later row leaves out is missing, as null is. Cells of columns that the model
    does not use are checked, but not kept: a short body with many names and rows would fill much memory with nothing.

    Examples:
        >>> limits = RowLimits(10, {"size", "wild"})
        >>> json_rows(b'{"rows": [{"size": 1.5, "wild": true}, {"size": null}]}', TableOptions(), limits).cells
        {'size': ['1.5', None], 'wild': ['true', None]}
    """
    source = UnnamedRows(None, options)
    rows = _rows(body, limits)
    known = rows[0].keys()
    limits.check_columns(known)
    for name in known:
        if not is_utf8(name):
            raise DataError(f"The name {shown(name)} holds half a character. Write it whole.")
    cells: dict[str, list[str | None]] = {name: [None] * len(rows) for name in known if name in limits.needed}
    for number, row in enumerate(rows):
        if not row.keys() <= known:
            extra = next(name for name in row if name not in known)
            raise source.problem(f"{shown(extra)} is not among the names of the first row. Give it null there.", number)
        for name, value in row.items():
            text = _cell(value, number, name, source)
            if name in cells:
                cells[name][number] = text
    return JsonRows(tuple(known), cells, len(rows))


def rows_as_block(requests: Sequence[JsonRows], options: TableOptions) -> RowBlock:
    """Return the rows of requests that have the same columns as one table of texts.

    Examples:
        >>> rows = JsonRows(("size", "unused"), {"size": ["1.5"]}, 1)
        >>> rows_as_block([rows, rows], TableOptions()).table.to_pydict()
        {'size': ['1.5', '1.5'], 'unused': [None, None]}
    """
    import pyarrow as pa

    names, first, _ = requests[0]
    count = sum(each.rows for each in requests)
    # One array for all columns: making one takes as long as ten rows do.
    texts = chain.from_iterable(each.cells[name] for name in first for each in requests)
    flat = pa.array(list(texts), pa.large_string())
    used = {name: flat.slice(place * count, count) for place, name in enumerate(first)}
    unused = pa.nulls(count, pa.large_string())
    columns = {name: used.get(name, unused) for name in names if name.strip()}
    return RowBlock(pa.table(columns), np.arange(count), UnnamedRows(None, options))


def _rows(body: bytes, limits: RowLimits) -> Sequence[dict[str, Any]]:
    try:
        value = json.loads(body.decode(), object_pairs_hook=object_of_pairs, parse_constant=_constant)
    except DataError:
        raise  # of one of the hooks; it is a ValueError, too
    except UnicodeDecodeError as error:
        raise DataError(f"The body is not UTF-8 text ({shown(error)}). Send JSON in UTF-8.") from None
    except RecursionError:
        raise DataError(f"The body is nested too deeply. {_FORM}") from None
    except ValueError as error:
        raise DataError(f"The body is not JSON ({shown(error)}). {_FORM}") from None
    rows = value.get("rows") if isinstance(value, dict) else None
    if isinstance(value, dict) and set(value) == {"rows"} and not isinstance(rows, list):
        raise DataError(f"Expected 'rows' to be a list of objects, but got {shown(rows)}. {_FORM}")
    if not isinstance(value, dict) or set(value) != {"rows"} or not isinstance(rows, list):
        raise DataError(f"Expected an object with a list 'rows' and nothing else, but got {type_name(value)}. {_FORM}")
    if not rows:
        raise DataError("There are no rows. Send one for each example.")
    limits.check_rows(len(rows))
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict) or not row:
            raise DataError(f"Row {number:,}: expected an object with a value for each column, but got {shown(row)}.")
    return rows


def _constant(name: str) -> NoReturn:
    raise DataError(f"{name} is not a value in JSON. Send null for a missing number.")


def _cell(value: Any, row: int, name: str, source: UnnamedRows) -> str | None:
    if value is None:
        return None
    if isinstance(value, str):
        if not is_utf8(value):
            raise source.problem(f"{shown(value)} holds half a character. Write it whole, or leave it out.", row, name)
        return value
    if isinstance(value, list | dict):
        kind = "list" if isinstance(value, list) else "nested object"
        raise source.problem(f"the value is a {kind}. Give it one value.", row, name)
    if isinstance(value, float) and not math.isfinite(value):
        raise source.problem("the number is infinite. Send null if it stands for a missing value.", row, name)
    return plain_text(value, source.options.decimal)
