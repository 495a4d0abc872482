"""A table is split, not cut, where the terminal is narrow."""

from __future__ import annotations

import re

import pytest

from calibayes.recipes.compare.split_table import SplitTable, TableColumn
from calibayes.terminal import as_text

NAMES = TableColumn("", ["logistic regression", "CA-BNN + T"], left=True)
COLUMNS = [TableColumn(f"head {each}\nof {each}", [f"0.{each}1 ± 0.0{each}", f"0.{each}2 ± 0.0{each}"]) for each in range(1, 9)]


@pytest.mark.parametrize("width", [38, 50, 80, 110, 200])
def test_every_cell_is_there_whole_at_every_width(width: int) -> None:
    text = as_text(SplitTable("Numbers", NAMES, COLUMNS), width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    for name, place in ((name, place) for name in (0, 1) for place in range(8)):
        assert text.count(COLUMNS[place].cells[name]) == 1
    parts = text.count("head 1") + text.count("(continued)")
    assert text.count("logistic regression") == parts  # each part names its rows
    assert (parts == 1) == (width == 200)


def test_a_part_has_as_many_columns_as_fit() -> None:
    text = as_text(SplitTable("Numbers", NAMES, COLUMNS), 80)
    lines = [line for line in text.splitlines() if "logistic regression" in line]
    counts = [len(re.findall("±", line)) for line in lines]
    assert sum(counts) == 8
    assert 2 + 21 + (counts[0] + 1) * 13 > 80 >= max(map(len, lines))


def test_a_name_that_is_wider_than_the_terminal_is_continued() -> None:
    long = TableColumn("", ["abcdefghij" * 4], left=True)
    text = as_text(SplitTable("Long", long, [TableColumn("x", ["1"])]), 30)
    assert "".join(re.findall("[a-j]", text.partition("x\n")[2])) == "abcdefghij" * 4
