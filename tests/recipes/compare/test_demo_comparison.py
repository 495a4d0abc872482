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
from calibayes.recipes.compare import FASHION_MNIST, MethodRun, Settings, compare
from calibayes.recipes.compare.demo_comparison import demo_settings, demo_text, describe_demo, run_and_print_demo
from calibayes.recipes.compare.jobs import ScoredRun
from calibayes.recipes.compare.score_columns import summary
from calibayes.recipes.compare.trainings import Trainings, run_trainings

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
    console, aside = (Console(file=stream, highlight=False) for stream in (out, err))
    run_and_print_demo(TINY, folder, console=console, aside=aside, command="calibayes demo", workers=1)
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
    task = replace(FASHION_MNIST, load=with_wrong_test_labels)
    misled = describe_demo(run_trainings(task, demo_settings(TINY), workers=1), "")
    assert misled["candidates"] == first.numbers["candidates"]
    for scheme, found in misled["schemes"].items():
        honest = first.numbers["schemes"][scheme]
        assert (found["lam"], found["beta"]) == (honest["lam"], honest["beta"])
        assert [seed["validation"] for seed in found["seeds"]] == [seed["validation"] for seed in honest["seeds"]]
        assert found["test"]["nll"] != honest["test"]["nll"]


def scores(value: float) -> cb.metrics.Scores:
    measured = cb.evaluate(torch.tensor([[0.5, 0.5]]), torch.tensor([0]), intervals=False)
    return replace(measured, accuracy=value, nll=value, brier=value, ece=value, overconfidence=0.5 - value)


def results(**values: tuple[float, ...]) -> Trainings:
    runs = {name.replace("_", "-"): MethodRun(name.replace("_", "-"), 0.0, 0.0, 0) for name in values}
    tested = {
        scheme: [ScoredRun(run, np.zeros((1, 2), np.float32), 0.0, scores(value)) for value in each]
        for (scheme, run), each in zip(runs.items(), values.values(), strict=True)
    }
    part = torch.zeros(1, 2), torch.zeros(1)
    data = Splits(train=part, validation=part, test=part, classes=("a", "b"))
    settings = Settings(seeds=len(tested["fnn"]))
    return Trainings(FASHION_MNIST, settings, data, [], runs, tested, tested, 1, 1.0, 1.0, 0)


def test_the_closing_words_follow_the_numbers() -> None:
    words = demo_text(results(fnn=(0.50, 0.52), bnn=(0.31, 0.33), ca_fnn=(0.30, 0.34), ca_bnn=(0.60, 0.62)))
    assert "lowest NLL:       BNN (0.320 ± 0.014), then CA-FNN (0.320 ± 0.028): within the spread" in words
    assert "highest accuracy: CA-BNN (61.0 ± 1.4), then FNN (51.0 ± 1.4): apart" in words
    assert "highest ECE" not in words


def test_one_seed_is_no_evidence() -> None:
    made = results(fnn=(0.5,), bnn=(0.3,), ca_fnn=(0.4,), ca_bnn=(0.6,))
    assert "none of these differences is evidence" in demo_text(made)
    assert "apart" not in demo_text(made).split("\n", 3)[3]
    assert summary([each.scores for each in made.tested["fnn"]])["nll"] == (0.5, None)


def test_more_test_images_than_are_left_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="at most 6000, the images that are left, but got 7000"):
        run_trainings(FASHION_MNIST, demo_settings(Settings(test=7000)), workers=1)


def test_the_mixture_changes_nothing_about_the_schemes_and_is_said_to_train_more_networks(first: Shown) -> None:
    alone = compare(FASHION_MNIST, replace(TINY, baselines=()), workers=1)
    for contender, entry in alone.entries.items():
        if not contender.scaled:
            seeds = first.numbers["schemes"][contender.scheme]["seeds"]
            assert [seed["test"]["nll"] for seed in seeds] == [scores.nll for scores in entry.test]
    assert first.numbers["settings"]["method_settings"] == {"mixture": {"members": 4, "beta": 0.01}}
    assert "mixture: 4 networks with a Gaussian each" in first.out
    assert "every other method trains one network" in " ".join(first.out.split())
