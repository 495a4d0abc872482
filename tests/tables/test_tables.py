"""Cells of every format, numbers and dates as people write them, and where records end."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
from datetime import date, datetime
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

from calibayes.errors import DataError, MissingExtraError
from calibayes.tables import TableOptions, frame_block, open_table
from calibayes.tables.dates import date_parts, looks_like_dates
from calibayes.tables.delimited import record_end
from calibayes.tables.numbers import is_number, parse_numbers


@settings(max_examples=300)
@given(st.lists(st.lists(st.text(st.sampled_from('a,"\n\r '), max_size=4), min_size=2, max_size=3), min_size=1, max_size=5))
def test_records_end_where_the_csv_module_says(body: list[list[str]]) -> None:
    text = io.StringIO(newline="")
    csv.writer(text).writerows(body)
    data = text.getvalue().encode()
    ends = {0}
    for count in range(1, len(body) + 1):
        part = io.StringIO(newline="")
        csv.writer(part).writerows(body[:count])
        ends.add(len(part.getvalue().encode()))
    for cut in range(len(data) + 1):
        end = record_end(data[:cut], b",")
        # A CR at the very end may be half of a line end.
        assert end is not None
        assert end in ends or end + 1 in ends
        assert end <= cut


@pytest.mark.parametrize("data", [b'a,5" of rain\n', b'a,"b"c\n', b'a, "b"\n'])
def test_irregular_quotes_are_left_to_the_csv_module(data: bytes) -> None:
    assert record_end(data, b",") is None


@given(
    st.one_of(
        st.floats(allow_nan=False, allow_infinity=False).map(repr), st.text(st.sampled_from("0123456789.,+-eE "), max_size=8)
    )
)
def test_texts_are_the_numbers_that_python_reads(text: str) -> None:
    parsed = parse_numbers([pa.array([text], pa.large_string())])
    assert bool(parsed.good[0, 0]) == (is_number(text) or text.strip().lower() in ("", "-", "."))
    if is_number(text):
        assert parsed.values[0, 0] == float(text)
    comma = parse_numbers([pa.array([text.replace(".", ",")], pa.large_string())], ",")
    if is_number(text):
        assert comma.values[0, 0] == parsed.values[0, 0]


def test_many_columns_are_parsed_as_one_is() -> None:
    columns = [pa.array([f"{i + j / 7}" if (i + j) % 5 else "x" for i in range(3)]) for j in range(40)]
    whole = parse_numbers(columns)
    for place, column in enumerate(columns):
        one = parse_numbers([column])
        np.testing.assert_array_equal(whole.values[:, place], one.values[:, 0])
        np.testing.assert_array_equal(whole.good[:, place], one.good[:, 0])


def test_dates_are_read_in_a_format_of_ones_own() -> None:
    cells = pa.array(["31.12.2024", "2024-12-31", "NA", "soon", None])
    assert looks_like_dates(cells, "%d.%m.%Y").tolist() == [True, True, True, False, True]
    assert looks_like_dates(cells, None).tolist() == [False, True, True, False, True]
    block = frame_block({"d": ["31.12.2024", "2024-12-31T06:00", ""]}, TableOptions(date_format="%d.%m.%Y"))
    days = (date(2024, 12, 31) - date(1970, 1, 1)).days
    assert date_parts(block, "d")[:2].tolist() == [[days, 12, 1, 0], [days + 0.25, 12, 1, 6]]
    assert np.isnan(date_parts(block, "d")[2]).all()
    with pytest.raises(DataError, match=r"Row 1, column 'd': '31/12/2024' is not a date. Write it like 31.12.2024"):
        date_parts(frame_block({"d": ["31/12/2024"]}, block.source.options), "d")


def test_a_workbook_is_the_table_that_a_text_file_is(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="needs the extra excel")
    book = openpyxl.Workbook()
    for row in [
        [],
        ["name", "size", "seen", "wild"],
        ["Rex", 30.5, datetime(2024, 12, 31), True],
        [],
        ["Tom", 4, datetime(2024, 1, 2, 3, 4), None],
    ]:
        book.active.append(row)
    book.save(tmp_path / "pets.xlsx")
    table = open_table(tmp_path / "pets.xlsx")
    (block,) = table.blocks(numbers={"size"})
    assert block.table.to_pydict() == {
        "name": ["Rex", "Tom"],
        "size": [30.5, 4.0],
        "seen": ["2024-12-31", "2024-01-02 03:04:00"],
        "wild": ["true", None],
    }
    assert (table.where(1, "wild"), table.cell(0, "size")) == ("row 5, column 'wild'", "30.5")
    numbered = open_table(tmp_path / "pets.xlsx", TableOptions(header=False))
    assert (numbered.names[0], numbered.cell(0, "column1")) == ("column1", "name")


def test_without_openpyxl_the_message_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    (tmp_path / "a.xlsx").write_bytes(b"PK\x03\x04")
    with pytest.raises(MissingExtraError, match=r"pip install 'calibayes\[excel\]'"):
        open_table(tmp_path / "a.xlsx")


def test_names_of_their_own_need_no_header(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"a": 1}\n')
    with pytest.raises(DataError, match="Leave --no-header out"):
        open_table(tmp_path / "a.jsonl", TableOptions(header=False))


def test_values_in_json_lines_are_spelled_as_in_csv_files_and_have_one_name_each(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": 1}\n{"a": 1067.0}\n{"a": 0.5}\n')
    (block,) = open_table(path, TableOptions(decimal=",")).blocks()
    assert block.cells("a").to_pylist() == ["1", "1067", "0,5"]
    path.write_text('{"a": 1}\n{"a": 2, "a": 3}\n')
    with pytest.raises(DataError, match=r"line 2: The name 'a' occurs more than once"):
        list(open_table(path, TableOptions()).blocks())


def test_a_cell_beside_the_table_of_a_workbook_is_refused(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="needs the extra excel")
    book = openpyxl.Workbook()
    for row in (["a", "b"], [1, 2], [1, 2, "note"]):
        book.active.append(row)
    book.save(tmp_path / "t.xlsx")
    with pytest.raises(DataError, match=r"t.xlsx', row 3: the row has 3 cells, but the header has 2 columns"):
        list(open_table(tmp_path / "t.xlsx").blocks())


def test_files_are_imported_without_the_comparison() -> None:
    code = "import sys, calibayes.files; print(*(name for name in sys.modules if name.startswith('calibayes.recipes')))"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip() == ""
