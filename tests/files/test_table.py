"""Columns become numbers: standardised by the training part, with places for what is missing and for what is new."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from calibayes.checked_fields import Fields
from calibayes.errors import DataError
from calibayes.files.settings import DataSettings
from calibayes.files.table_coding import TableCoding, fit_table
from calibayes.tables import frame_block

HALF = np.arange(4)


def fitted(columns: dict[str, list[Any]], train: Any = None, **settings: Any) -> tuple[TableCoding, list[str]]:
    block = frame_block(columns)
    rows = block.rows if train is None else train
    return fit_table(block, rows, DataSettings(**settings), ("label",))


def encoded(coding: TableCoding, **columns: list[Any]) -> list[list[float]]:
    found: list[list[float]] = coding.encode(frame_block(columns)).tolist()
    return found


def test_numbers_are_standardised_by_the_training_part_alone() -> None:
    coding, _ = fitted({"x": ["1", "3", "1", "3", "1000", "-1000"]}, HALF)
    assert encoded(coding, x=[1.0, 2.0, 3.0, 1e9]) == [[-1], [0], [1], [10]]  # what is far off is not infinitely far


def test_a_missing_number_is_the_mean_and_said_to_be_missing_where_training_had_such() -> None:
    coding, _ = fitted({"x": ["1", "NA", "3", "n/a"], "y": ["1", "2", "1", "2"]})
    assert encoded(coding, x=["", "1"], y=["", "2"]) == [[0, 1, 0], [-1, 0, 1]]


def test_an_unknown_category_has_the_place_of_the_rare_ones_or_none() -> None:
    columns = {"a": ["u", "u", "v", "v", "once", ""], "b": ["x", "x", "y", "y", "x", "y"]}
    coding, _ = fitted(columns)
    assert coding.width == 4 + 2
    assert encoded(coding, a=["u", "new", "", "once"], b=["y", "new", "", "x"]) == [
        [1, 0, 0, 0, 0, 1],
        [0, 0, 1, 0, 0, 0],
        [0, 0, 0, 1, 0, 0],
        [0, 0, 1, 0, 1, 0],
    ]


def test_dates_are_day_month_weekday_and_hour() -> None:
    coding, notes = fitted({"d": ["1970-01-05", "1970-03-06 12:00", "1970-01-05", "1970-03-06 12:00"]})
    assert notes == ["Column 'd' is taken for dates."]
    (column,) = coding.columns
    days = (4 + 64.5) / 2
    assert column.to_dict()["means"] == pytest.approx([days, 2.0, (0 + 4) / 2, 6.0])
    assert encoded(coding, d=["1970-03-06T12:00", None]) == [[1, 1, 1, 1], [0, 0, 0, 0]]
    assert encoded(coding, d=["9999-12-31", "0001-01-01T00:00Z"])[0][0] == 10
    for bad in ("1970-13-01", "0000-01-01", "0001-01-01T00:00+05:00"):
        with pytest.raises(DataError, match=f"Row 1, column 'd': '{re.escape(bad)}' is not a date"):
            encoded(coding, d=[bad])
    with pytest.raises(DataError, match="Row 1, column 'd': '1970-13-01' is not a date"):
        encoded(coding, d=["1970-13-01"])


def test_what_says_nothing_is_left_out_and_told() -> None:
    n = 30
    columns = {
        "row": [str(i) for i in range(n)],
        "same": ["7"] * n,
        "always": ["yes"] * n,
        "empty": [""] * n,
        "name": [f"person {i}" for i in range(n)],
        "x": [str(i * i % 7) for i in range(n)],
        "secret": [str(i * i % 5) for i in range(n)],
    }
    coding, notes = fitted(columns, ignore=("secret",))
    assert coding.needs == ("x",)
    told = " ".join(notes)
    for words in ("'row' counts the rows", "'same' is always the same", "'empty' is empty", "--text"):
        assert words in told
    with pytest.raises(DataError, match="No column is left"):
        fitted({"same": ["7"] * n})


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (["1", "2", "3", "4", "5", "6", "7", "8", "9", "1", "2", "3 kg"], "Row 12, column 'x': '3 kg' is not a number"),
        (["0,5", "1,5", "2,5"], "'0,5' has a comma"),
        (["03/04/2024", "13/04/2024"], "looks like a date.*2024-12-31"),
        (["1"] * 19 + ["inf"], "infinite"),
        (["1"] * 19 + ["1e200"], "Row 20, column 'x': '1e200' is too large a number.*leave the cell empty"),
        (["2024-01-05"] * 19 + ["soon"], "Row 20, column 'x': 'soon' is not a date"),
    ],
)
def test_texts_that_are_meant_for_numbers_are_refused_not_taken_for_categories(cells: list[str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        fitted({"x": cells})


def test_codes_that_look_like_numbers_can_be_categories() -> None:
    coding, _ = fitted({"zip": ["8001", "9000", "8001", "9000"]}, categorical=("zip",))
    assert encoded(coding, zip=["9000", "8001"]) == [[0, 1], [1, 0]]


def test_a_bad_cell_is_named_by_its_row_in_the_whole_file() -> None:
    coding, _ = fitted({"x": ["1", "2", "5"]})
    block = frame_block({"x": ["1"] * 1001 + ["five"]})
    with pytest.raises(DataError, match="Row 1,002, column 'x': 'five' is not a number"):
        coding.encode(list(block.slices(1000))[1])


def test_a_coding_from_a_file_encodes_the_same() -> None:
    columns = {"x": ["1", "", "3", "4"], "a": ["u", "v", "u", "v"], "d": ["2024-01-01", "2024-02-02", "", "2024-02-05"]}
    coding, _ = fitted(columns)
    again = TableCoding.of(Fields(coding.to_dict(), "coding"))
    assert again == coding
    assert torch.equal(again.encode(frame_block(columns)), coding.encode(frame_block(columns)))


def test_categories_are_the_same_in_every_spelling_of_a_truth_value_or_whole_number() -> None:
    coding, _ = fitted({"b": ["True", "False"] * 3, "k": ["1", "2"] * 3}, categorical=("k",))
    expected = [[0, 1, 1, 0], [1, 0, 0, 1]]
    assert encoded(coding, b=["True", "False"], k=["1", "2"]) == expected
    assert encoded(coding, b=[True, False], k=[1.0, 2.0]) == expected


def test_a_date_may_be_said_to_be_missing() -> None:
    coding, notes = fitted({"d": ["2024-01-05", "NA", "2024-03-01", "2024-03-01"]})
    assert notes == ["Column 'd' is taken for dates."]
    assert encoded(coding, d=["n/a"]) == [[0, 0, 0, 0, 1]]


def test_numbers_of_the_rows_are_found_when_rows_are_missing() -> None:
    rows = np.array([0, 1, 3, 4, 8, 9])
    columns = {"i": [str(i) for i in rows + 100], "x": ["1", "5", "2", "7", "1", "3"], "up": ["1", "2", "8", "30", "40", "90"]}
    coding, notes = fit_table(replace(frame_block(columns), rows=rows), np.arange(6), DataSettings(), ())
    assert coding.needs == ("x", "up")
    assert notes == ["Column 'i' counts the rows: not used."]
    before = [i for i in range(100) if i % 20 != 3]  # taken out before the file was written
    assert fitted({"i": [str(i) for i in before], "x": ["1", "2"] * 47 + ["3"]})[0].needs == ("x",)


@pytest.mark.parametrize("cells", [["1"] * 19 + ["oops"], ["1"] * 19 + ["1e999"], ["2024-01-05"] * 19 + ["2024-01-99"]])
def test_a_bad_cell_is_named_by_its_row_in_a_file_whose_rows_were_left_out(cells: list[str]) -> None:
    with pytest.raises(DataError, match="Row 40, column 'x'"):
        fit_table(replace(frame_block({"x": cells}), rows=np.arange(20) + 20), np.arange(20), DataSettings(), ())


def test_a_number_that_is_always_the_same_where_it_is_there_is_not_blown_up() -> None:
    coding, _ = fitted({"x": ["0.1"] * 9 + [""], "d": ["2024-01-05 01:00"] * 9 + [""]})
    assert encoded(coding, x=["0.11"], d=["2024-01-05 01:00"])[0][0] == pytest.approx(0.01)
    assert [column.to_dict().get("std", column.to_dict().get("stds")) for column in coding.columns] == [1.0, [1.0] * 4]
    tiny, _ = fitted({"x": ["1e-20", "3e-20"] * 3})
    assert encoded(tiny, x=["1e-20", "3e-20"]) == [[-1], [1]]
