"""`calibayes train` and `predict` as users meet them: real files, and real processes for the way from one to the next."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from tests.files.made import HEADER, records, rows, table_model, write_csv, write_records
from tests.test_cli import run
from typer.testing import CliRunner, Result

from calibayes.cli import app
from calibayes.files import load


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "data.csv", rows(90))
    return tmp_path


def call(*words: object) -> Result:
    return CliRunner().invoke(app, list(map(str, words)))


def test_train_predict_evaluate(place: Path) -> None:
    done = run("train", "data.csv", "--target", "kind", "-o", "my model", "--epochs", "3", "--scheme", "fnn", cwd=place)
    assert done.returncode == 0, done.stderr
    assert "90 rows in 5 folds; 2 classes of 'kind'; FNN." in done.stderr
    for words in ("each predicted by a member", "accuracy", "NLL", "ECE", "the average of 5 members at a temperature of"):
        assert words in done.stdout
    assert "Next: calibayes predict 'my model' new.csv -o predictions.csv" in done.stdout
    done = run("predict", "my model", "data.csv", "-o", "out.csv", "--abstain-below", "0.7", cwd=place)
    assert done.returncode == 0, done.stderr
    assert "90 rows" in done.stdout
    assert "Next: calibayes evaluate out.csv" in done.stdout
    done = run("evaluate", "out.csv", "--replicates", "100", cwd=place)
    assert done.returncode == 0, done.stderr
    assert "90 examples, 2 classes; labels from 'label'" in done.stderr


def test_a_column_called_like_one_of_classes_is_the_target(place: Path) -> None:
    text = (place / "data.csv").read_text()
    (place / "named.csv").write_text(text.replace("kind", "Class", 1))
    done = call("train", "named.csv", "--method", "logistic-regression", "--no-report", "-o", "m")
    assert done.exit_code == 0, done.output
    assert "Learning to predict the column 'Class'; to predict another, use --target." in done.output
    assert load(place / "m").target == "Class"
    (place / "named.csv").write_text(text.replace("kind", "Class", 1).replace("seen", "label", 1))
    done = call("train", "named.csv", "-o", "m")
    assert done.exit_code == 2
    assert "Expected --target to name the column of the classes" in done.output
    assert call("train", "named.csv", "--method", "logistic-regression", "--ignore", "label", "-o", "m").exit_code == 0


def test_flags_win_over_the_file_of_settings(place: Path) -> None:
    (place / "s.toml").write_text('target = "kind"\nscheme = "fnn"\nepochs = 3\nseed = 7\nignore = ["seen"]\n')
    done = call("train", "data.csv", "--config", "s.toml", "--epochs", "2", "--out", "m")
    assert done.exit_code == 0, done.output
    model = load(place / "m")
    settings = model.about["settings"]
    assert (settings["epochs"], settings["seed"], settings["scheme"]) == (2, 7, "fnn")
    assert model.coding.needs == ("size", "colour")


def test_the_same_seed_trains_the_same_model(place: Path) -> None:
    frame = {name: [row[k] for row in rows(9)] for k, name in enumerate(HEADER)}
    found = []
    for seed in (3, 3, 4):
        assert call("train", "data.csv", "--target", "kind", "--epochs", "1", "--seed", seed, "-o", "m").exit_code == 0
        found.append(load(place / "m").predict(frame).probs.tolist())
    assert found[0] == found[1] != found[2]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "none.csv", "--target", "kind"], "'none.csv': there is no such file"),
        (["train", "data.csv"], "Expected --target to name the column of the classes. The columns are 'size'"),
        (["train", "two.csv"], "Expected --target to name the column of the classes: is it 'y' or 'label'?"),
        (["train", "data.csv", "--target", "kinds"], "there is no column 'kinds' (--target). Did you mean 'kind'?"),
        (["train", "data.csv", "--target", "kind", "--text", "kind"], "in both"),
        (["train", "data.csv", "--target", "kind", "--scheme", "gnn"], "but got 'gnn'. Did you mean 'fnn'?"),
        (["train", "data.csv", "--target", "kind", "--scheme", "fnn", "--lam", "3"], "no `lam` for 'fnn'"),
        (["train", "data.csv", "--target", "kind", "--method", "fnn", "--set", "members=2"], "'fnn' has no setting 'members'"),
        (["train", "data.csv", "--target", "kind", "--set", "epochs=2,3"], "one value of 'epochs' after --set, but got 2"),
        (["compare", "data.csv", "--target", "kind", "--methods", "fnn,gnn"], "but got 'gnn'. Did you mean 'fnn'?"),
        (["compare", "data.csv", "--target", "kind", "--set", "members=2"], "None of fnn, bnn, ca-fnn, ca-bnn has the setting"),
        (["train", "data.csv", "--target", "seen", "--drop-rare"], "at least two classes"),
        (["train", "data.csv", "--target", "kind", "-o", "data.csv"], "holds the data or settings to read"),
        (["train", "data.csv", "--target", "kind", "-o", "no/where"], "cannot be written"),
        (["train", "data.csv", "--target", "kind", "--config", "bad.toml"], "no setting 'epocs'. Did you mean 'epochs'?"),
        (["train", "data.csv", "--config", "s.toml", "-o", "s.toml"], "holds the data or settings to read"),
        (["train", "data.csv", "--target", "kind", "--test-file", "s.toml", "-o", "s.toml"], "holds the data or settings"),
        (["train", "data.csv", "--target", "kind", "-o", "new.html", "--report", "new.html"], "or the model"),
        (
            ["train", "data.csv", "--config", "wrong.toml", "--epochs", "2"],
            "Expected 'epochs' to be a whole number, but got '3'",
        ),
        (["train", "data.csv", "--target", "kind", "--network", "resnet20"], "Expected no --network for data without images"),
        (["train", "latin.csv", "--target", "kind"], "--encoding latin-1"),
        (["predict", "none", "data.csv"], "there is no such file"),
        (["predict", "data.csv", "data.csv"], "cannot be loaded"),
        (["predict", "model", "other.csv"], "needs columns that are not there: 'size', 'colour', 'seen'"),
        (["predict", "model", "data.csv", "-o", "model"], "holds the model or the data to read"),
        (["predict", "model", "data.csv", "-o", "out.txt"], "ends in .csv or .parquet"),
        (["predict", "model", "data.csv", "--abstain-below", "2"], "between 0 and 1"),
        (["compare", "none.csv", "--target", "kind"], "there is no such file"),
        (["compare", "data.csv"], "Expected --target"),
        (["compare", "--config", "s.toml"], "Expected a file or folder of your own with --config"),
        (["compare", "data.csv", "--config", "bad.toml"], "no setting 'epocs'"),
        (["compare", "--target", "kind"], "Expected a file or folder of your own with --target"),
    ],
)
def test_what_goes_wrong_is_one_line(place: Path, words: list[str], message: str) -> None:
    table_model().save(place / "model")
    (place / "bad.toml").write_text("epocs = 3\n")
    (place / "s.toml").write_text("target = 'kind'\n")
    (place / "wrong.toml").write_text("target = 'kind'\nepochs = '3'\n")
    (place / "two.csv").write_text("y,label\n1,a\n2,b\n")
    (place / "latin.csv").write_bytes("x,kind\n1,café\n".encode("latin-1"))
    (place / "other.csv").write_text("a,b\n1,2\n")
    done = call(*words)
    assert done.exit_code == 2
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("calibayes: ")]
    assert message in line
    assert done.stdout == ""
    assert not (place / "predictions.csv").exists()


@pytest.mark.slow
def test_compare_shows_a_file_of_ones_own(place: Path) -> None:
    words = ("--quick", "--epochs", "1", "--lams", "3", "--betas", "0.1", "--workers", "1", "--out", "found")
    (place / "s.toml").write_text("target = 'none'\nscheme = 'bnn'\nmax-rows = 1000\n")
    done = call("compare", "data.csv", "--config", "s.toml", "--target", "kind", *words)
    assert done.exit_code == 0, done.output
    assert "Ignored from 's.toml', because a comparison sets them itself: scheme." in done.stderr
    assert "data.csv, 2 classes of 'kind': 59 rows to train" in done.stderr
    assert "18 test rows" in done.stdout
    assert (place / "found" / "report.html").exists()


def test_evaluate_is_not_the_next_command_where_it_would_fail(place: Path) -> None:
    table_model().save(place / "model")
    write_csv(place / "new.csv", [[*row[:3], ""] for row in rows(9)])
    done = call("predict", "model", "new.csv", "-o", "out.csv")
    assert done.exit_code == 0, done.output
    assert "Next" not in done.stdout
    assert "9 rows without a class in 'kind'" in done.stderr


def test_a_kept_column_and_decisions_stand_side_by_side(place: Path) -> None:
    table_model().save(place / "model")
    body = [[*row, f"n{i}"] for i, row in enumerate(rows(9))]
    write_csv(place / "new.csv", body, (*HEADER, "id"))
    done = call("predict", "model", "new.csv", "-o", "out.csv", "--keep", "id", "--temperature", "--samples", "2")
    assert done.exit_code == 0, done.output
    out = pd.read_csv(place / "out.csv")
    assert list(out) == ["label", "id", "decision", "p_large", "p_small", "confidence", "epistemic", "aleatoric"]
    assert out["id"].tolist() == [f"n{i}" for i in range(9)]


def way(folder: Path, ending: str) -> dict[str, Any]:
    """From a file of one format to what evaluate says; predictions are in `out.csv`."""
    old, new = write_records(folder / f"old{ending}", records(90)), write_records(folder / f"new{ending}", records(40, seed=1))
    model, out = folder / "model", folder / "out.csv"
    for words in (
        ("train", old, "--target", "kind", "--scheme", "bnn", "--epochs", 3, "-o", model),
        ("predict", model, new, "-o", out),
        ("evaluate", out, "--replicates", 100, "--json"),
    ):
        done = call(*words)
        assert done.exit_code == 0, done.output
    told: dict[str, Any] = json.loads(done.stdout)
    assert told["data"].pop("files") == [str(out)]
    return told


@pytest.mark.slow
@pytest.mark.parametrize("ending", [".parquet", ".jsonl", ".xlsx"])
def test_other_formats_go_the_same_way_as_csv_to_the_last_digit(tmp_path: Path, ending: str) -> None:
    plain, other = tmp_path / "plain", tmp_path / "other"
    plain.mkdir()
    other.mkdir()
    expected, found = way(plain, ".csv"), way(other, ending)
    assert (other / "out.csv").read_text() == (plain / "out.csv").read_text()
    assert pd.read_csv(other / "out.csv")["label"].tolist() == [record["kind"] for record in records(40, seed=1)]
    assert found == expected
    assert call("predict", plain / "model", other / f"new{ending}", "-o", plain / "across.csv").exit_code == 0
    assert (plain / "across.csv").read_text() == (plain / "out.csv").read_text()


def test_predictions_in_a_workbook_are_evaluated_as_those_in_a_csv_file(place: Path) -> None:
    table_model().save(place / "model")
    assert call("predict", "model", "data.csv", "-o", "out.csv").exit_code == 0
    pytest.importorskip("openpyxl", reason="needs the extra excel")
    pd.read_csv(place / "out.csv").to_excel(place / "out.xlsx", index=False)
    results = []
    for name in ("out.csv", "out.xlsx"):
        done = call("evaluate", name, "--replicates", 100, "--json")
        assert done.exit_code == 0, done.output
        assert f"{name}: 90 examples, 2 classes; labels from 'label'" in done.stderr
        results.append(json.loads(done.stdout))
        assert results[-1]["data"].pop("files") == [name]
        results[-1]["models"] = [{**model, "name": ""} for model in results[-1]["models"]]
    assert results[0] == results[1]


def test_dates_in_a_format_of_ones_own_are_learnt_as_iso_dates_are(place: Path) -> None:
    body = [[row[0], row[1], "" if not row[2] else date.fromisoformat(row[2]).strftime("%d.%m.%Y"), row[3]] for row in rows(90)]
    write_csv(place / "german.csv", body)
    words = ("--target", "kind", "--scheme", "fnn", "--epochs", "2", "-o")
    refused = call("train", "german.csv", *words, "no")
    assert refused.exit_code == 2
    assert "looks like a date" in refused.stderr
    assert "--date-format %d.%m.%Y" in refused.stderr
    assert call("train", "data.csv", *words, "iso").exit_code == 0
    done = call("train", "german.csv", "--date-format", "%d.%m.%Y", *words, "german")
    assert done.exit_code == 0, done.output
    assert "Column 'seen' is taken for dates." in done.stderr
    assert call("predict", "iso", "data.csv", "-o", "iso.csv").exit_code == 0
    assert call("predict", "german", "german.csv", "--date-format", "%d.%m.%Y", "-o", "out.csv").exit_code == 0
    assert (place / "out.csv").read_text() == (place / "iso.csv").read_text()


@pytest.mark.slow
def test_a_comparison_is_the_same_in_all_four_formats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    results = {}
    for ending in (".csv", ".jsonl", ".parquet", ".xlsx"):
        write_records(tmp_path / f"data{ending}", records(90))
        words = ("--quick", "--epochs", "1", "--methods", "fnn", "--workers", "1", "--out", f"found{ending}")
        done = call("compare", f"data{ending}", "--target", "kind", *words)
        assert done.exit_code == 0, done.output
        assert f"data{ending}, 2 classes of 'kind': 59 rows to train" in done.stderr
        found = json.loads((tmp_path / f"found{ending}" / "results.json").read_text())
        results[ending] = [(each["name"], [seed["test"] for seed in each["seeds"]]) for each in found["contenders"]]
        assert [name for name, _ in results[ending]] == ["logistic regression", "boosted trees", "FNN", "FNN + T"]
    assert all(result == results[".csv"] for result in results.values())


def test_a_method_and_its_settings_are_typed_or_read(place: Path) -> None:
    (place / "s.toml").write_text("target = 'kind'\nepochs = 2\n[method_settings]\nmembers = 3\nema = 0.5\n")
    words = ("train", "data.csv", "--config", "s.toml", "--method", "mixture", "-o", "m", "--set", "members=2", "--set")
    done = call(*words, "prior-std=0.2")
    assert done.exit_code == 0, done.output
    model = load(place / "m")
    settings = model.about["settings"]
    assert settings["method_settings"] == {"members": 2, "ema": 0.5}
    assert (settings["scheme"], settings["prior_std"], len(model.posterior.members)) == ("mixture", 0.2, 10)
    assert call("predict", "m", "data.csv", "-o", "out.csv").exit_code == 0
    assert call("evaluate", "out.csv").exit_code == 0


@pytest.mark.slow
def test_methods_are_compared_on_a_file(place: Path) -> None:
    words = ("compare", "data.csv", "--target", "kind", "--quick", "--epochs", "1", "--methods", "fnn,ensemble", "--set")
    done = call(*words, "members=2", "--workers", "1", "--out", "there")
    assert done.exit_code == 0, done.output
    assert "ensemble + T" in done.output


def test_ctrl_c_in_the_report_leaves_the_model_and_its_scores(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("calibayes.files.report_page.write_report", interrupted)
    done = call("train", "data.csv", "--target", "kind", "-o", "m", "--method", "logistic-regression")
    assert done.exit_code == 130
    assert load(place / "m").classes == ("large", "small")
    assert "accuracy" in done.stdout
    assert "Written: m\n" in done.stdout
    assert "The report was not written." in done.stderr
