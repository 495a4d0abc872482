"""Files with a column of confidences and one of correctness."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from calibayes.cli import app
from calibayes.data.predictions.read_pairs import has_pairs, read_pairs
from calibayes.errors import PredictionFileError
from calibayes.metrics import evaluate

GENERATOR = np.random.default_rng(0)
R = np.round(GENERATOR.uniform(0.2, 1.0, 80), 3)
C = GENERATOR.random(80) < R


def write(folder: Path, ending: str, names: tuple[str, str] = ("confidence", "correct")) -> Path:
    path = folder / f"answers.{ending}"
    rows = [{names[0]: float(r), names[1]: bool(c)} for r, c in zip(R, C, strict=True)]
    if ending == "csv":
        path.write_text(
            f"id,{names[0]},{names[1]}\n" + "".join(f"{i},{r},{int(c)}\n" for i, (r, c) in enumerate(zip(R, C, strict=True)))
        )
    elif ending == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif ending == "npz":
        arrays: dict[str, Any] = {names[0]: R, names[1]: C}
        np.savez(path, **arrays)
    else:
        frame = pytest.importorskip("pandas").DataFrame(rows)
        frame.to_parquet(path) if ending == "parquet" else frame.to_excel(path, index=False)
    return path


@pytest.mark.parametrize("ending", ["csv", "jsonl", "npz", "parquet", "xlsx"])
def test_every_format_gives_the_same_pairs(tmp_path: Path, ending: str) -> None:
    path = write(tmp_path, ending)
    assert has_pairs(path)
    table = read_pairs(path)
    np.testing.assert_array_equal(table.confidence, R)
    np.testing.assert_array_equal(table.correct, C)
    assert table.name == "answers"


def test_the_command_finds_them_and_reports_what_pairs_tell(tmp_path: Path) -> None:
    path, page = write(tmp_path, "csv"), tmp_path / "page.html"
    done = CliRunner().invoke(app, ["evaluate", str(path), "--replicates", "20", "--report", str(page)])
    assert done.exit_code == 0, done.output
    assert f"{evaluate(confidence=R, correct=C, intervals=False).ece:.4f}" in done.output
    assert "need the probabilities of all classes" in " ".join(done.output.split())
    assert "classwise" not in done.output.split("need")[0].split("metric")[1].split("Top-k")[0]
    assert "need the probabilities of all classes" in page.read_text()


def test_columns_can_be_named(tmp_path: Path) -> None:
    path = write(tmp_path, "csv", ("sure", "judged"))
    assert not has_pairs(path)
    words = ["evaluate", str(path), "--confidence-column", "sure", "--correct-column", "judged", "--json", "--replicates", "20"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["models"][0]["scores"]["accuracy"]["value"] == pytest.approx(C.mean())
    assert found["models"][0]["scores"]["ece_classwise"]["value"] is None


def test_labels_decisions_and_confidences_are_pairs(tmp_path: Path) -> None:
    path = tmp_path / "answers.csv"
    path.write_text("id,label,prediction,confidence\n1,cat,cat,0.9\n2,dog,cat,0.4\n3,3.0,3,0.7\n")
    assert has_pairs(path)
    table = read_pairs(path)
    assert table.correct.tolist() == [1.0, 0.0, 1.0]
    assert "correctness from 'label = prediction'" in table.describe()
    path.write_text("label,prediction,confidence,p_cat,p_dog\ncat,cat,0.9,0.9,0.1\n")
    assert not has_pairs(path)  # there are probabilities of classes


def test_a_file_with_labels_is_read_as_predictions_of_classes(tmp_path: Path) -> None:
    path = tmp_path / "both.csv"
    path.write_text("label,p_a,p_b,confidence,correct\na,0.9,0.1,0.9,1\nb,0.6,0.4,0.6,0\n")
    assert not has_pairs(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("confidence,correct\n0.5,1\n93,0\n", "line 3, column 'confidence'.*93 is not a confidence.*percentages"),
        ("confidence,correct\n0.5,1\n0.3,maybe\n", "line 3, column 'correct'.*'maybe' says neither right nor wrong"),
        ("sure,correct\n0.5,1\n", "no column 'confidence' \\(--confidence-column\\)"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "answers.csv"
    path.write_text(text)
    with pytest.raises(PredictionFileError, match=message):
        read_pairs(path)
