"""A file of other rows to measure a model on: it is checked before anything is trained."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from tests.files.test_training import QUICK, frame, written

from calibayes.crossfit import CrossFit
from calibayes.errors import DataError
from calibayes.files import train


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda other: other.drop(columns="noise"), r"'other.csv': .*columns that are not there: 'noise'"),
        (lambda other: other.assign(noise="loud"), r"line 2, column 'noise': 'loud' is not a number"),
        (lambda other: other.assign(label="perhaps"), r"no row has one of the classes 'no', 'yes'"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_before_the_training(
    change: type, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(self: CrossFit) -> None:
        raise AssertionError("trained before the test file was read")

    monkeypatch.setattr(CrossFit, "train_next", never)
    monkeypatch.chdir(tmp_path)
    table = written(tmp_path, frame())
    written(tmp_path, change(frame(40, seed=1)), "other.csv")
    with pytest.raises(DataError, match=said):
        train(table, **QUICK, test_file="other.csv")


def test_rows_that_are_also_there_to_train_on_are_counted(tmp_path: Path) -> None:
    table = written(tmp_path, frame())
    other = pd.concat([frame(40, seed=1), frame().head(25)])
    measured = train(table, **QUICK, test_file=str(written(tmp_path, other, "other.csv")))
    assert len(measured.notes) == 1
    assert measured.notes[0].startswith("25 of 65 test rows have the same inputs as some to train on.")
