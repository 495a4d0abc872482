"""Columns become numbers: standardised by the training part, with places for what is missing and for what is new."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from calibayes.errors import DataError
from calibayes.files.fields import Fields
from calibayes.files.reading import table_from
from calibayes.files.settings import DataSettings
from calibayes.files.table import TableCoding, fit_table

HALF = np.arange(4)


def fitted(columns: dict[str, list[Any]], train: Any = None, **settings: Any) -> tuple[TableCoding, list[str]]:
    table = table_from(columns)
    rows = np.arange(table.num_rows) if train is None else train
    return fit_table(table, rows, DataSettings(**settings), ("label",))


def encoded(coding: TableCoding, **columns: list[Any]) -> list[list[float]]:
    found: list[list[float]] = coding.encode(table_from(columns)).tolist()
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
    with pytest.raises(DataError, match="Row 1,002, column 'x': 'five' is not a number"):
        coding.encode(table_from({"x": ["1", "five"]}), first=1000)


def test_a_coding_from_a_file_encodes_the_same() -> None:
    columns = {"x": ["1", "", "3", "4"], "a": ["u", "v", "u", "v"], "d": ["2024-01-01", "2024-02-02", "", "2024-02-05"]}
    coding, _ = fitted(columns)
    again = TableCoding.of(Fields(coding.to_dict(), "coding"))
    assert again == coding
    assert torch.equal(again.encode(table_from(columns)), coding.encode(table_from(columns)))
