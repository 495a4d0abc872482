"""The demo's course, on a few images."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from rich.console import Console

import calibayes as cb
from calibayes.data import Splits
from calibayes.errors import InvalidArgumentError
from calibayes.methods import method_named
from calibayes.recipes.compare import compare
from calibayes.recipes.compare.columns import summary
from calibayes.recipes.compare.task import FASHION_MNIST
from calibayes.recipes.demo import Results, Run, Settings, run_demo
from calibayes.recipes.demo.files import describe
from calibayes.recipes.demo.show import show
from calibayes.recipes.demo.words import closing_words

METHODS = (*cb.SCHEMES, "mixture")
TINY = Settings(seeds=2, train=96, validation=64, test=128, epochs=2, batch_size=32, predictive_samples=2)


class Shown(NamedTuple):
    """What a tiny demo leaves behind."""

    numbers: dict[str, Any]
    out: str
    err: str
    folder: Path


def shown(place: Path) -> Shown:
    out, err, folder = io.StringIO(), io.StringIO(), place / "demo"
    consoles = {"console": Console(file=out, highlight=False), "aside": Console(file=err, highlight=False)}
    show(TINY, folder, **consoles, command="calibayes demo", workers=1)
    return Shown(json.loads((folder / "results.json").read_text()), out.getvalue(), err.getvalue(), folder)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    return shown(tmp_path_factory.mktemp("first"))


def test_the_files_say_what_is_printed(first: Shown) -> None:
    numbers, out, err, folder = first
    table = (folder / "table.txt").read_text()
    assert table in out
    for scheme in METHODS:
        found = numbers["schemes"][scheme]
        cells = re.search(rf"^ *{method_named(scheme).title} .*$", table, flags=re.MULTILINE)
        assert cells is not None
        for name, scale, digits in (("accuracy", 100, 1), ("ece", 100, 1), ("nll", 1, 3), ("brier", 1, 3)):
            values = [seed["test"][name] for seed in found["seeds"]]
            mean, std = float(np.mean(values)), float(np.std(values, ddof=1))
            assert f" {scale * mean:.{digits}f} ± {scale * std:.{digits}f} " in cells[0] + " "
            assert found["test"][name] == pytest.approx({"mean": mean, "std": std})
        assert [seed["seed"] for seed in found["seeds"]] == [0, 1]
    assert (folder / "reliability.png").read_bytes().startswith(b"\x89PNG")
    assert set(numbers["versions"]) == {"python", "torch", "numpy", "calibayes"}
    assert numbers["command"] == "calibayes demo"
    assert numbers["machine"]["cpu"]
    trainings = 10 + 5  # nine candidates of the schemes and one mixture, and one more seed for each method
    assert len(re.findall(r"^\[ ?\d+/15\] .* validation NLL [0-9.]+", err, flags=re.MULTILINE)) == trainings
    assert len(re.findall(r", about \d+:\d\d left$", err, flags=re.MULTILINE)) == trainings - 1
    assert "\x1b" not in out + err  # no terminal, no control characters


def test_the_choice_is_the_lowest_validation_nll_of_each_scheme(first: Shown) -> None:
    numbers = first.numbers
    assert len(numbers["candidates"]) == 10
    for scheme in METHODS:
        tried = [each for each in numbers["candidates"] if each["scheme"] == scheme]
        best = min(tried, key=lambda each: each["validation"]["nll"])
        found = numbers["schemes"][scheme]
        assert (found["lam"], found["beta"]) == (best["lam"], best["beta"])
        assert found["seeds"][0]["validation"] == best["validation"]  # what was chosen is what is tested


def test_the_same_settings_give_the_same_numbers(first: Shown, tmp_path: Path) -> None:
    second = shown(tmp_path)
    assert {**second.numbers, "seconds": None} == {**first.numbers, "seconds": None}
    assert (second.folder / "table.txt").read_text() == (first.folder / "table.txt").read_text()


def with_wrong_test_labels(train: int, validation: int, test: int) -> Splits:
    splits = FASHION_MNIST.load(train, validation, test)
    x, y = splits.test
    return replace(splits, test=(x, (y + 1) % 10))


def test_test_labels_have_no_say_in_the_choice(first: Shown) -> None:
    misled = describe(run_demo(TINY, task=replace(FASHION_MNIST, load=with_wrong_test_labels), workers=1), "")
    assert misled["candidates"] == first.numbers["candidates"]
    for scheme, found in misled["schemes"].items():
        honest = first.numbers["schemes"][scheme]
        assert (found["lam"], found["beta"]) == (honest["lam"], honest["beta"])
        assert [seed["validation"] for seed in found["seeds"]] == [seed["validation"] for seed in honest["seeds"]]
        assert found["test"]["nll"] != honest["test"]["nll"]


def scores(value: float) -> cb.metrics.Scores:
    measured = cb.evaluate(torch.tensor([[0.5, 0.5]]), torch.tensor([0]), intervals=False)
    return replace(measured, accuracy=value, nll=value, brier=value, ece=value, overconfidence=0.5 - value)


def results(**values: tuple[float, ...]) -> Results:
    test = {name.replace("_", "-"): [scores(value) for value in each] for name, each in values.items()}
    chosen = {scheme: Run(scheme, 0.0, 0.0, 0) for scheme in test}
    settings = Settings(seeds=len(test["fnn"]))
    return Results(settings, [], chosen, test, test, [], 1, 1.0)


def test_the_closing_words_follow_the_numbers() -> None:
    words = closing_words(results(fnn=(0.50, 0.52), bnn=(0.31, 0.33), ca_fnn=(0.30, 0.34), ca_bnn=(0.60, 0.62)))
    assert "lowest NLL:       BNN (0.320 ± 0.014), then CA-FNN (0.320 ± 0.028): within the spread" in words
    assert "highest accuracy: CA-BNN (61.0 ± 1.4), then FNN (51.0 ± 1.4): apart" in words
    assert "highest ECE" not in words


def test_one_seed_is_no_evidence() -> None:
    made = results(fnn=(0.5,), bnn=(0.3,), ca_fnn=(0.4,), ca_bnn=(0.6,))
    assert "none of these differences is evidence" in closing_words(made)
    assert "apart" not in closing_words(made).split("\n", 3)[3]
    assert summary(made.test["fnn"])["nll"] == (0.5, None)


def test_more_test_images_than_are_left_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="at most 6000, the images that are left, but got 7000"):
        run_demo(Settings(test=7000), workers=1)


def test_the_mixture_changes_nothing_about_the_schemes_and_is_said_to_train_more_networks(first: Shown) -> None:
    alone = compare(FASHION_MNIST, TINY, workers=1)
    for contender, entry in alone.entries.items():
        if not contender.scaled:
            seeds = first.numbers["schemes"][contender.scheme]["seeds"]
            assert [seed["test"]["nll"] for seed in seeds] == [scores.nll for scores in entry.test]
    assert first.numbers["settings"]["method_settings"] == {"mixture": {"members": 4, "beta": 0.01}}
    assert "mixture: 4 networks with a Gaussian each" in first.out
    assert "every other method trains one network" in " ".join(first.out.split())
