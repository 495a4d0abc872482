"""`train`, `predict` and `evaluate` with sets, certified thresholds and costs, as users type them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.commands.test_file_commands import call
from tests.files.guaranteed import CLASSES, HEADER, drawn_rows, trained
from tests.files.made import rows, table_model, write_csv
from tests.test_cli import run

from calibayes.acting import Threshold
from calibayes.files import load

QUICK = ("--target", "kind", "--method", "logistic-regression", "--folds", "3")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "data.csv", drawn_rows(400), HEADER)
    write_csv(tmp_path / "new.csv", drawn_rows(300, seed=1), HEADER)
    trained().model.save(tmp_path / "model")
    table_model().save(tmp_path / "plain")
    (tmp_path / "costs.csv").write_text("action,cow,dog,cat|s\nkeep,0,3,9\nsell,4,0,1\n")
    return tmp_path


def test_from_a_table_to_sets_and_certified_decisions(place: Path) -> None:
    words = ("--sets", "0.9", "--certify", "accuracy=0.8,certainty=0.85", "--set-aside", "0.4", "-o", "m")
    done = call("train", "data.csv", *QUICK, *words)
    assert done.exit_code == 0, done.output
    assert re.search(r"1[56]\d rows set aside, which nothing in training sees", done.stderr)
    assert re.search(r"Sets of 90 %: the true class is in [\d.]+ % of 1[56]\d sets", done.stdout)
    assert "at least the asked accuracy of 80 % with certainty 85 %" in done.stdout
    page = (place / "m.html").read_text()
    assert "Sets and thresholds with a guarantee" in page
    assert "How many classes the sets have" in page
    done = call("predict", "m", "new.csv", "-o", "out.csv")
    assert done.exit_code == 0, done.output
    assert "at least the asked accuracy of 80 %" in done.stderr
    frame = pd.read_csv(place / "out.csv", keep_default_na=False, dtype={"abstain": str})
    count = int((frame["decision"] == "").sum())
    assert f"300 rows, mean confidence {100 * frame['confidence'].mean():.0f} %. Abstained on {count}." in done.stdout
    assert 0 < count < 300
    assert (frame["set"] != "").all()
    assert {"set", "outsider"} < set(frame)
    done = call("evaluate", "out.csv", "--replicates", "50")
    assert done.exit_code == 0, done.output


def test_settings_of_a_file_ask_for_the_same(place: Path) -> None:
    (place / "s.toml").write_text('target = "kind"\nscheme = "logistic-regression"\nfolds = 3\nsets = 0.8\nset-aside = 0.25\n')
    done = call("train", "data.csv", "--config", "s.toml", "--sets-score", "aps", "-o", "m", "--no-report")
    assert done.exit_code == 0, done.output
    kept = load(place / "m").set_aside
    assert kept is not None
    assert (kept.request.sets, kept.request.score, kept.request.certify) == (0.8, "aps", None)
    assert len(kept.labels) == pytest.approx(100, abs=3)


def test_options_of_predict_replace_those_of_training(place: Path) -> None:
    done = call("predict", "model", "new.csv", "-o", "out.parquet", "--sets", "0.99", "--certify", "precision=0.7")
    assert done.exit_code == 0, done.output
    assert "Sets hold the true class for at least 0.99" in done.stderr
    for name in CLASSES:
        assert f"{name}: " in done.stderr
    sizes = pd.read_parquet(place / "out.parquet")["set"].str.count(r"(?<!\\)\|") + 1
    done = call("predict", "model", "new.csv", "-o", "other.csv", "--costs", "costs.csv", "--sets", "0.6")
    assert done.exit_code == 0, done.output
    other = pd.read_csv(place / "other.csv")
    assert set(other["decision"]) == {"keep", "sell"}
    assert sizes.mean() > (other["set"].str.count(r"(?<!\\)\|") + 1).mean()


def predictions(path: Path, n: int = 900) -> tuple[np.ndarray, np.ndarray]:
    """A CSV of anybody's classifier."""
    rng = np.random.default_rng(0)
    scores = np.exp(2 * rng.normal(size=(n, 3)))
    probs = np.round(scores / scores.sum(1, keepdims=True), 6)
    labels = np.array([rng.choice(3, p=row / row.sum()) for row in probs])
    frame = pd.DataFrame(probs, columns=["p_a", "p_b", "p_c"])
    frame.insert(0, "label", np.array(["a", "b", "c"])[labels])
    frame.assign(weight=1 + labels % 2).to_csv(path, index=False)
    return probs, labels


@pytest.mark.slow
def test_one_command_certifies_a_threshold_on_a_csv_of_predictions(place: Path) -> None:
    probs, labels = predictions(place / "p.csv")
    done = run("evaluate", "p.csv", "--certify", "accuracy=0.9", "--replicates", "50", cwd=place)
    assert done.returncode == 0, done.stderr
    expected = Threshold.fit(probs / probs.sum(1, keepdims=True), labels, 0.9)
    assert expected.value is not None
    told = " ".join(done.stdout.split())
    assert f"Decisions of a confidence above {expected.value:.6g} have at least the asked accuracy of 90 %" in told
    assert f"{expected.answered} of 900" in told
    assert "Sets" not in told


def test_json_and_the_page_show_the_same_numbers(place: Path) -> None:
    predictions(place / "p.csv")
    words = ("--sets", "0.9", "--sets-by-class", "--certify", "accuracy=0.9", "--replicates", "50", "--report", "page.html")
    done = call("evaluate", "p.csv", *words, "--json")
    assert done.exit_code == 0, done.output
    (model,) = json.loads(done.stdout)["models"]
    found = model["guarantees"]
    assert found["rows"] == 900
    assert found["sets"]["by_class"]
    assert found["sets"]["measured"]["coverage"]["value"] == pytest.approx(0.9, abs=0.05)
    page = (place / "page.html").read_text()
    for number in (
        found["threshold"]["value"],
        found["sets"]["measured"]["mean_size"]["value"],
        found["threshold"]["answered"],
    ):
        assert str(number) in page
    assert found["sets"]["statement"] in page
    plain = call("evaluate", "p.csv", "--replicates", "50", "--json")
    assert json.loads(plain.stdout)["models"][0]["guarantees"] is None


def test_costs_are_certified_on_predictions_too(place: Path) -> None:
    predictions(place / "p.csv")
    (place / "c.csv").write_text("do,a,b,c\nx,0,1,1\ny,1,0,1\nz,1,1,0\n")
    done = call("evaluate", "p.csv", "--costs", "c.csv", "--certify", "cost=0.1", "--replicates", "50")
    assert done.exit_code == 0, done.output
    assert "a mean cost of at most 0.1 with certainty 90 %" in " ".join(done.stdout.split())


def test_confidences_alone_certify_an_accuracy(place: Path) -> None:
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.5, 1, 2000)
    right = rng.uniform(size=2000) < confidence
    pd.DataFrame({"confidence": confidence, "correct": right.astype(int)}).to_csv(place / "pairs.csv", index=False)
    done = call("evaluate", "pairs.csv", "--certify", "accuracy=0.85", "--replicates", "50", "--report", "pairs.html")
    assert done.exit_code == 0, done.output
    assert "have at least the asked accuracy of 85 %" in " ".join(done.stdout.split())
    assert "Certified threshold" in (place / "pairs.html").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "data.csv", "--target", "kind", "--sets", "90"], "but got 90.0. For 90 %, pass 0.9."),
        (["train", "data.csv", "--target", "kind", "--certify", "95"], "Write for example accuracy=0.95"),
        (["train", "data.csv", "--target", "kind", "--set-aside", "0.9"], "from 0.05 to 0.5"),
        (["train", "data.csv", "--target", "kind", "--sets-by-class"], "Expected --sets"),
        (["train", "data.csv", "--target", "kind", "--costs", "costs.csv"], "--costs and --certify cost=… together"),
        (["train", "data.csv", "--target", "kind", "--certify", "cost=1", "--costs", "none.csv"], "there is no such file"),
        (
            ["train", "data.csv", "--target", "kind", "--certify", "cost=1", "--costs", "costs.csv", "-o", "costs.csv"],
            "holds the",
        ),
        (["predict", "plain", "flat.csv", "--sets", "0.9"], "Train it again with --sets or --certify"),
        (["predict", "plain", "flat.csv", "--certify", "accuracy=0.9"], "calibayes evaluate predictions.csv --certify"),
        (["predict", "model", "new.csv", "--sets", "0.9", "--no-temperature"], "Leave --no-temperature out"),
        (["predict", "model", "new.csv", "--certify", "accuracy=0.9", "--abstain-below", "0.8"], "but got both"),
        (["predict", "model", "new.csv", "--certify", "cost=2"], "Expected --costs"),
        (
            ["predict", "model", "new.csv", "--costs", "costs.csv", "--certify", "cost=20"],
            "between the smallest and the largest",
        ),
        (["predict", "plain", "flat.csv", "--costs", "costs.csv"], "the column 'cow' is not a class"),
        (["predict", "model", "new.csv", "--costs", "costs.csv", "-o", "costs.csv"], "holds the model or the data to read"),
        (["evaluate", "pairs.csv", "--sets", "0.9"], "need the probabilities of all classes"),
        (["evaluate", "pairs.csv", "--certify", "precision=0.9"], "To certify a precision"),
        (["evaluate", "pairs.csv", "--certify", "cost=1", "--costs", "costs.csv"], "Expected no --costs for confidences"),
        (["evaluate", "p.csv", "--costs", "costs.csv"], "Expected --certify cost=… with --costs"),
        (["evaluate", "p.csv", "--sets", "0.9", "--weights", "weight"], "there are weights. Leave them out"),
        (["evaluate", "p.csv", "--sets", "2"], "`sets`"),
    ],
)
def test_what_goes_wrong_is_one_line(place: Path, words: list[str], message: str) -> None:
    predictions(place / "p.csv", 60)
    write_csv(place / "flat.csv", rows(9))
    (place / "pairs.csv").write_text("confidence,correct\n" + "0.9,1\n0.6,0\n" * 20)
    before = (place / "costs.csv").read_text()
    done = call(*words)
    assert done.exit_code == 2, done.output
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("calibayes: ")]
    assert message in line
    assert done.stdout == ""
    assert not (place / "predictions.csv").exists()
    assert (place / "costs.csv").read_text() == before
