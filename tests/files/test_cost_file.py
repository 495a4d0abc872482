"""A file of costs: its columns are matched to classes by name, and what is wrong with it is named by line and column."""

from __future__ import annotations

from pathlib import Path

import pytest

from calibayes.acting import CostTable
from calibayes.errors import DataError
from calibayes.files.cost_file import read_cost_file
from calibayes.tables import TableOptions

CLASSES = ("ill", "well")


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_columns_may_be_in_any_order_and_actions_need_not_be_classes(tmp_path: Path) -> None:
    path = written(tmp_path / "c.csv", "action,well,ill\nhome,0,100\ntreat,10,1\nwatch,2,2.5\n")
    assert read_cost_file(path, CLASSES) == CostTable(("home", "treat", "watch"), ((100, 0), (1, 10), (2.5, 2)))


def test_abstaining_has_one_cost(tmp_path: Path) -> None:
    path = written(tmp_path / "c.csv", "do,ill,well\nabstain,3,3\nill,0,1\nwell,9,0\n")
    assert read_cost_file(path, CLASSES) == CostTable(("ill", "well"), ((0, 1), (9, 0)), 3.0)


def test_whole_numbers_as_classes_and_other_marks(tmp_path: Path) -> None:
    path = written(tmp_path / "c.csv", "do;1.0;0\na;0,5;2\n")
    assert read_cost_file(path, ("0", "1"), TableOptions(decimal=",")) == CostTable(("a",), ((2.0, 0.5),))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("action,ill\na,1\n", "there is no column for the classes 'well'"),
        ("action,ill,well,wel\na,1,2,3\n", "the column 'wel' is not a class. Did you mean 'well'?"),
        ("action,ill,well\na,1,\n", "line 2, column 'well'.*the cost, but got nothing"),
        ("action,ill,well\na,1,2\nb,nan,2\n", "line 3, column 'ill'.*but got 'nan'"),
        ("action,ill,well\na,1,inf\n", "but got 'inf'"),
        ("action,ill,well\na,1,much\n", "but got 'much'"),
        ("action,ill,well\n,1,2\n", "there is no name of an action"),
        ("action,ill,well\na,1,2\na,3,4\n", "the action 'a' is there twice"),
        ("action,ill,well\nabstain,1,1\n", "no action besides 'abstain'"),
        ("action,ill,well\na,1,2\nabstain,1,2\n", "the row 'abstain' has different costs, '1.0', '2.0'"),
        ("action,ill,well\n", "no row below it"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_cost_file(written(tmp_path / "c.csv", text), CLASSES)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no such file"):
        read_cost_file(tmp_path / "none.csv", CLASSES)
