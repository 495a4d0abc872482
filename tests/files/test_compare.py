"""`calibayes compare` on texts and on folders of images: what is printed, and what is left behind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from tests.commands.test_file_commands import call
from tests.files.test_texts_and_images import SEVERAL, images, texts

from calibayes.data.predictions import read_predictions

SCHEMES = ("FNN", "BNN", "CA-FNN", "CA-BNN")
FILES = {"table.txt", "reliability.png", "report.html", "results.json", "predictions", "runs"}
FEW = ("--quick", "--epochs", "2", "--lams", "3", "--betas", "0.1", "--workers", "1", "--out", "found")
TEST = 2 * SEVERAL // 5


def compared(*words: str, examples: str) -> tuple[dict[str, Any], str]:
    """The numbers that a comparison wrote, and what it said on the way."""
    done = call("compare", *words, *FEW)
    assert done.exit_code == 0, done.output
    assert f"{TEST} test {examples}" in done.stdout
    lines = [line.split() for line in done.stdout.splitlines()]
    for scheme in SCHEMES:
        assert any(line[:1] == [scheme] and line[1:2] != ["+"] for line in lines), done.stdout
        assert any(line[:3] == [scheme, "+", "T"] for line in lines), done.stdout
    assert {path.name for path in Path("found").iterdir()} == FILES
    return json.loads(Path("found", "results.json").read_text()), done.stderr


def check(found: dict[str, Any], classes: tuple[str, ...]) -> None:
    """Every contender is there, with the predictions that its numbers are of."""
    assert found["task"]["classes"] == list(classes)
    assert [found["task"][part] for part in ("train", "validation", "test")] == [26, 6, TEST]
    names = {"logistic regression", *SCHEMES, *(f"{scheme} + T" for scheme in SCHEMES)}  # boosted trees are for tables
    assert {each["name"] for each in found["contenders"]} == names
    labels = set()
    for contender in found["contenders"]:
        (only,) = contender["seeds"]
        table = read_predictions(Path("found", only["predictions"]))
        assert (table.n, only["test"]["n"], table.class_names) == (TEST, TEST, classes)
        assert only["test"]["accuracy"] == pytest.approx((table.probs.argmax(1) == table.targets).mean())
        labels.add(tuple(table.targets.tolist()))
    assert [sorted(each) for each in labels] == [[0] * (TEST // 2) + [1] * (TEST // 2)]  # the same for all


@pytest.mark.slow
def test_the_schemes_are_compared_on_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame(texts(), columns=["topic", "body"]).assign(extra=1)
    frame.loc[::4, "topic"] = frame.loc[::-4, "topic"].tolist()  # some are wrong, as in life
    frame.to_csv("notes.csv", index=False)
    found, said = compared("notes.csv", "--target", "topic", "--text", "body", examples="texts")
    assert "Only the text is read; columns not used: 'extra'." in said
    assert "notes.csv, 2 classes of 'topic': 26 texts to train" in said
    check(found, ("sea", "sky"))


@pytest.mark.slow
def test_the_schemes_are_compared_on_folders_of_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    images(Path("photos"))
    for number in range(0, SEVERAL, 4):  # some are wrong, as in life
        left, right = (Path("photos", side, f"{number}.jpg") for side in ("left", "right"))
        left.rename("left.jpg")
        right.rename(left)
        Path("left.jpg").rename(right)
    found, said = compared("photos", examples="images")
    assert "photos, 2 classes of 'label': 26 images to train" in said
    check(found, ("left", "right"))
