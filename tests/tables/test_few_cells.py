"""A few cells are parsed one by one and many by Arrow, with the same result."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from calibayes.files.table_columns import CategoryColumn
from calibayes.tables import frame_block
from calibayes.tables.numbers import parse_numbers

CELLS = [
    None, "", " ", "\t", "\u00a0", "\u3000", "1", " 2.5 ", "\u00a03\u2003", "+1e3", "-.5", "5.", ".", "-", "?", "NA", "n/a",
    "NaN", "<NA>", "1e400", "-1e400", "1e-400", "0x10", "1_000", "1,5", "1,", ",5", "1.5e-3", "inf", "∞", "٣", "１", "one",
    "1 2", "--1", "1e", "nil", "None", "0.1000000000000000055511151231257827", "9007199254740993", "1.7976931348623157e308",
    "4.9e-324", "\u212aNA", "1\n", "true",
]  # fmt: skip


@pytest.mark.parametrize("decimal", [".", ","])
def test_numbers(decimal: str) -> None:
    many = parse_numbers([pa.array(CELLS * 10, pa.large_string())], decimal)
    for place, cell in enumerate(CELLS):
        one = parse_numbers([pa.array([cell], pa.large_string())], decimal)
        assert one.good[0, 0] == many.good[place, 0], cell
        np.testing.assert_array_equal(one.values[0], many.values[place], err_msg=repr(cell))


@pytest.mark.parametrize("raw", [True, False])
def test_categories(raw: bool) -> None:
    column = CategoryColumn("c", ("3", "one", "true"), unknown=True, missing=True)
    texts = [*CELLS, "3.0", " 03", "TRUE", "one "]
    encode = column.encode_raw if raw else column.encode
    many = encode(frame_block({"c": texts * 3}))
    for place, text in enumerate(texts):
        one = encode(frame_block(pa.table({"c": pa.array([text], pa.large_string())})))
        np.testing.assert_array_equal(one[0], many[place], err_msg=repr(text))
