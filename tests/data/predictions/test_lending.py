from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from pyarrow import ArrowInvalid, csv

from calibayes.data.predictions.lending import Lending
from calibayes.files.delimited import delimited_tables


@pytest.fixture
def lent(monkeypatch: pytest.MonkeyPatch) -> list[Lending]:
    """Every file that is lent while the test runs."""
    found: list[Lending] = []
    lend = Lending.lend

    def noted(self: Lending) -> Any:
        found.append(self)
        return lend(self)

    monkeypatch.setattr(Lending, "lend", noted)
    return found


def written(path: Path, rows: int) -> Path:
    path.write_text("a,b\n" + '1,"x"\n' * rows)
    return path


def test_a_file_is_given_back_before_anyone_goes_on(tmp_path: Path, lent: list[Lending]) -> None:
    for _ in range(50):
        (table,) = delimited_tables(written(tmp_path / "some.csv", 10))
        assert table.num_rows == 10
        assert not lent.pop()._is_out()


def test_also_where_reading_ends_early(tmp_path: Path, lent: list[Lending]) -> None:
    parts = delimited_tables(written(tmp_path / "long.csv", 4_000_000))
    next(parts)
    assert lent[0]._is_out()
    parts.close()
    assert not lent[0]._is_out()


def test_also_after_an_error(tmp_path: Path) -> None:
    path = tmp_path / "odd.csv"
    path.write_text("a,b\n1,2\n1,2,3\n")
    begun = time.monotonic()
    with pytest.raises(ArrowInvalid), Lending(path.open("rb")) as file:
        csv.read_csv(file.lend())
    assert not file._is_out()
    assert time.monotonic() < begun + 5


def test_quotation_marks_are_counted(tmp_path: Path) -> None:
    with Lending(written(tmp_path / "some.csv", 7).open("rb")) as file:
        csv.read_csv(file.lend())
        assert file.quotes == 14
