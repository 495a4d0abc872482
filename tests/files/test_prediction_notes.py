"""What predictions tell the user of the rows of a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from calibayes.files import Model, predict_file, train


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    """A model of a number and a category that were always there, and of a number that was missing now and then."""
    generator = np.random.default_rng(0)
    made = pd.DataFrame({"a": generator.normal(size=200), "b": generator.normal(size=200), "c": list("xy") * 100})
    made["label"] = np.where(made["a"] > 0, "yes", "no")
    made.loc[::9, "b"] = np.nan
    path = tmp_path_factory.mktemp("notes") / "t.csv"
    made.to_csv(path, index=False)
    return train(path, scheme="logistic-regression", folds=2).model


def said(model: Model, folder: Path, text: str) -> str:
    (folder / "new.csv").write_text(text)
    notes: list[str] = []
    predict_file(model, folder / "new.csv", folder / "out.csv", say=notes.append)
    return " ".join(notes)


def test_cells_that_training_never_lacked_are_named(model: Model, tmp_path: Path) -> None:
    one = said(model, tmp_path, "a,b,c\n1,,x\nNA,2,y\n,2,x\n")
    assert "Cells are missing in column 'a', up to 2 rows, but none were in the training data" in one
    both = said(model, tmp_path, "a,b,c\n,1,\n,2,\n3,4,x\n")
    assert "Cells are missing in 2 columns, like 'a', up to 2 rows" in both


def test_cells_that_training_lacked_too_are_not(model: Model, tmp_path: Path) -> None:
    assert "missing" not in said(model, tmp_path, "a,b,c\n1,,x\n2,?,y\n")


def test_many_cells_are_read_as_a_few_are(model: Model, tmp_path: Path) -> None:
    header, rows = "a,b,c\n", "1,2,x\n NA ,2,\n?,2, NA \nnull,2,  \n-,2,y\n"
    few = said(model, tmp_path, header + rows)
    assert "Cells are missing in 2 columns, like 'a', up to 4 rows" in few
    assert said(model, tmp_path, header + rows * 100) == few.replace("4 rows", "400 rows")
