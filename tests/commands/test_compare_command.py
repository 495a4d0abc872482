"""`calibayes compare` decides for the user: what it says first, and the command that it gives."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.commands.test_file_commands import call
from tests.files.test_texts_and_images import images

FEW = ("--methods", "fnn", "--epochs", "2", "--seeds", "3", "--workers", "1", "--out", "found")


def squares(n: int, seed: int = 0) -> pd.DataFrame:
    """Rows whose class depends on the product of two numbers and on a colour, with gaps: easy for trees alone."""
    generator = np.random.default_rng(seed)
    frame = pd.DataFrame(generator.normal(size=(n, 2)).round(3), columns=["a", "b"])
    frame["colour"] = generator.choice(["red", "green", "blue"], n)
    frame["row id"] = generator.integers(0, 10**6, n)
    kind = (frame["a"] * frame["b"] > 0) ^ (frame["colour"] == "red")
    frame["kind"] = np.where(kind ^ (generator.random(n) < 0.02), "yes", "no")
    frame.loc[generator.random(n) < 0.02, "a"] = np.nan
    return frame


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def results() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path("found", "results.json").read_text())
    return found


@pytest.mark.slow
def test_where_boosted_trees_clearly_win_the_first_line_says_so(place: Path) -> None:
    squares(1600).to_csv("my data.csv", sep=";", index=False)
    words = ("my data.csv", "--target", "kind", "--ignore", "row id", "--drop-rare", "--delimiter", ";", "--max-rows", "1500")
    done = call("compare", *words, *FEW)
    assert done.exit_code == 0, done.output
    first, *others = done.stdout.splitlines()
    assert first.startswith("Use boosted trees, the clear winner: validation NLL 0.")
    assert "The best network, FNN" in first
    text = " ".join(others)
    assert "higher by" in " ".join([first, *others[:2]])
    assert "over 3 seeds and 225 validation rows" in " ".join([first, *others[:2]])
    command = next(line.strip() for line in others if line.startswith("  calibayes train "))
    assert shlex.split(command) == ["calibayes", "train", *words, "--method", "boosted-trees"]
    assert "pip install 'calibayes[boosting]'" in text
    assert "Check on 300 test rows, which had no part in the choice" in text
    following = done.stdout.partition("\nNext:\n")[2]
    assert command in following
    assert "found/predictions/boosted-trees-seed0.npz" in following
    page = Path("found", "report.html").read_text(encoding="utf-8")
    assert page.index("Use boosted trees, the clear winner") < page.index('id="verdict"')
    found = results()
    assert found["verdict"]["recommended"] == "boosted trees"
    names = [each["name"] for each in found["contenders"]]
    assert names == ["logistic regression", "boosted trees", "FNN", "FNN + T"]
    assert "too sure" not in done.stdout + page
    (place / "found" / "predictions" / "boosted-trees-seed0.npz").unlink()
    again = call("compare", *words, *FEW, "--no-baselines")
    assert again.exit_code == 0, again.output
    assert [each["name"] for each in results()["contenders"]] == ["FNN", "FNN + T"]
    assert "boosted" not in again.stdout
    assert again.stdout.startswith("Use FNN")
    assert not list((place / "found" / "predictions").glob("boosted*"))


@pytest.mark.slow
def test_the_command_for_a_network_trains_it(place: Path) -> None:
    squares(240).to_csv("data.csv", index=False)
    done = call("compare", "data.csv", "--target", "kind", "--ignore", "row id", "--no-baselines", "--set", "lam=2", *FEW[2:],
                "--methods", "ca-fnn")  # fmt: skip
    assert done.exit_code == 0, done.output
    (_, command), _ = results()["verdict"]["commands"]
    words = shlex.split(command)
    assert words == ["calibayes", "train", "data.csv", "--target", "kind", "--ignore", "row id", *words[7:]]
    assert words[7:] == ["--method", "ca-fnn", "--set", "lam=2"]
    trained = call(*words[1:], "-o", "model")
    assert trained.exit_code == 0, trained.output
    assert Path("model").exists()


def test_baselines_can_be_named_among_the_methods(place: Path) -> None:
    squares(120).to_csv("data.csv", index=False)
    few = ("--epochs", "1", "--seeds", "1", "--workers", "1", "--out", "found")
    done = call("compare", "data.csv", "--target", "kind", "--methods", "fnn,logistic-regression", *few)
    assert done.exit_code == 0, done.output
    assert [each["name"] for each in results()["contenders"]] == ["logistic regression", "FNN", "FNN + T"]


@pytest.mark.slow
def test_texts_have_logistic_regression_alone_and_its_command(place: Path) -> None:
    generator = np.random.default_rng(0)
    words = np.array([["salt", "ship", "fish", "wave"], ["wing", "cloud", "bird", "sun"]])
    labels = np.arange(200) % 2
    bodies = [
        " ".join(words[label if generator.random() < 0.8 else 1 - label][generator.integers(0, 4, 6)]) for label in labels
    ]
    pd.DataFrame({"topic": np.array(["sea", "sky"])[labels], "body": bodies}).to_csv("notes.csv", index=False)
    done = call("compare", "notes.csv", "--target", "topic", "--text", "body", *FEW)
    assert done.exit_code == 0, done.output
    assert "Left out: boosted trees, because they are for tables, not for texts." in done.stderr
    found = results()
    assert [each["name"] for each in found["contenders"]] == ["logistic regression", "FNN", "FNN + T"]
    assert done.stdout.startswith("Use logistic regression")
    (_, command), _ = found["verdict"]["commands"]
    assert command == "calibayes train notes.csv --target topic --text body --method logistic-regression"
    assert call(*shlex.split(command)[1:], "--folds", "2").exit_code == 0


@pytest.mark.slow
def test_images_have_logistic_regression_on_their_pixels(place: Path) -> None:
    images(Path("photos"))
    done = call("compare", "photos", *FEW)
    assert done.exit_code == 0, done.output
    assert "Left out: boosted trees, because they are for tables, not for images." in done.stderr
    assert [each["name"] for each in results()["contenders"]] == ["logistic regression", "FNN", "FNN + T"]
