"""Experiments under shift: equal effort, data that fit together, and trainings from end to end in their tiny size."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.data.real import needs
from tests.reproduction.shift.test_people import HERE
from typer.testing import CliRunner

import calibayes as cb
from calibayes.cli import app
from calibayes.data.corrupt import SEVERITIES
from calibayes.errors import InvalidArgumentError
from calibayes.methods import method_named
from calibayes.sweeps.sweep_plan import choices
from reproduction.experiment import PRESETS
from reproduction.experiments import EXPERIMENTS, experiment
from reproduction.shift.shift_experiments import METHODS_UNDER_SHIFT, SHIFTS
from reproduction.shift.shift_tasks import TASKS
from reproduction.shift.shift_training import SHIFT_SCORES, ShiftTraining, shift_trial


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("name", SHIFTS)
def test_settings_can_be_written_down_and_every_method_has_its_command(name: str, preset: str) -> None:
    asked = experiment(name, preset)
    settings = asked.settings()
    written = json.loads(json.dumps(settings))
    assert {ShiftTraining.of(each) for each in written} == {each for part in asked.parts for each in part.settings}
    assert len(settings) == len(METHODS_UNDER_SHIFT) * len(asked.parts[0].settings)
    for part in asked.parts:
        words = [word for word in asked.command(part).split() if "=" in word]
        assert asked.only(choices(words, "--only")).parts == (part,)


@pytest.mark.parametrize("name", SHIFTS)
def test_all_methods_have_the_same_effort_and_their_own_defaults(name: str) -> None:
    asked = experiment(name)
    shared = (
        "optimizer",
        "learning_rate",
        "schedule",
        "epochs",
        "batch_size",
        "train",
        "test",
        "shifted",
        "predictive_samples",
    )
    settings = [part.settings[0].to_dict() for part in asked.parts]
    assert len({tuple(each[one] for one in shared) for each in settings}) == 1
    assert all(len(part.settings) >= 3 for part in asked.parts)
    for each in settings:
        method = method_named(each["scheme"])
        for one in ("lam", "beta", "prior_std", "init_std"):
            assert not method.has(one) or each[one] == method.default(one)


def test_names_of_both_kinds_are_found() -> None:
    assert {experiment(name).name for name in EXPERIMENTS} == set(EXPERIMENTS)
    with pytest.raises(InvalidArgumentError, match=r"but got 'shift-digit'\. Did you mean 'shift-digits'"):
        experiment("shift-digit")


def test_shifted_parts_keep_their_labels() -> None:
    task = TASKS["digits"]
    splits = task.load(None, None)
    known = {tuple(row.tolist()): int(label) for row, label in zip(*splits.test, strict=True)}
    parts = list(task.shifted(splits, 300))
    assert [(part.name, part.severity) for part in parts] == [(name, each) for name in task.shifts for each in SEVERITIES]
    for part in parts:
        assert len(part.x) == len(part.y) == 300
        if part.name == "tilted_rows":
            assert all(known[tuple(row.tolist())] == label for row, label in zip(part.x, part.y.tolist(), strict=True))
        else:
            assert torch.equal(part.y, splits.test[1][:300])


def test_the_digits_are_standardised_and_in_three_parts() -> None:
    splits = TASKS["digits"].load(None, None)
    assert [len(part[1]) for part in (splits.train, splits.validation, splits.test)] == [800, 300, 697]
    torch.testing.assert_close(splits.train[0].mean(0), torch.zeros(64), atol=1e-5, rtol=0)
    assert float(splits.train[0].std(0).max()) == pytest.approx(1.0, abs=1e-4)


def test_the_clothes_are_the_bytes_that_they_were() -> None:
    x, y = TASKS["fashion"].load(500, 40).train
    given = cb.data.fashion_mnist(500, 1000).train
    assert x.dtype == torch.uint8
    assert torch.equal(y, given[1])
    assert (int(x.min()), int(x.max())) == (0, 255)
    scaled = (given[0] - given[0].mean()) / given[0].std()
    torch.testing.assert_close((x - x.float().mean()) / x.float().std(), scaled, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("method", ["fnn", "swag", "mixture"])
def test_a_training_is_scored_under_every_shift(method: str) -> None:
    settings = next(each for each in experiment("shift-digits", "tiny").settings() if each["scheme"] == method)
    final = shift_trial(settings)["final"]
    _check(final, "digits")
    assert shift_trial(settings)["final"] == final


def _check(final: dict[str, Any], task: str) -> None:
    assert set(final["shifts"]) == set(TASKS[task].shifts)
    assert final["temperature"] > 0
    for scores in (final["unshifted"], *(each for shift in final["shifts"].values() for each in shift.values())):
        assert set(scores["plain"]) == set(scores["scaled"]) == set(SHIFT_SCORES)
        assert scores["plain"]["accuracy"] == scores["scaled"]["accuracy"]
        assert all(math.isfinite(value) for way in scores.values() for value in way.values())


def test_wrong_settings_are_named() -> None:
    with pytest.raises(InvalidArgumentError, match="`shifted` to be a positive integer, but got 0"):
        ShiftTraining(shifted=0)
    with pytest.raises(InvalidArgumentError, match="`task` to be one of"):
        ShiftTraining(task="mnist")  # type: ignore[arg-type]


def _reproduce(*words: object) -> Any:
    return CliRunner().invoke(app, ["reproduce", *map(str, words)])


@pytest.mark.slow
def test_the_command_writes_results_and_continues(tmp_path: Path) -> None:
    words = ("shift-digits", "--preset", "tiny", "--out", tmp_path, "--workers", 1, "--only")
    done = _reproduce(*words, "scheme=fnn")
    assert done.exit_code == 0, done.output
    assert f"{len(METHODS_UNDER_SHIFT) - 1} trainings are missing." in done.stdout
    done = _reproduce(*words, "scheme=fnn,ema")
    assert done.exit_code == 0, done.output
    assert "From before: 1 of 2 trials." in done.stderr
    folder = tmp_path / "shift-digits"
    assert (folder / "table.txt").read_text() in done.stdout
    files = {"table.txt", "summary.json", "commands.txt", "severity.png", "severity-temperature.png", "shifts.png"}
    assert {path.name for path in folder.iterdir()} == files
    assert [part["name"] for part in json.loads((folder / "summary.json").read_text())["parts"]] == ["FNN", "EMA"]


@pytest.mark.slow
@HERE
@needs("cifar10", "resnet20")
def test_people_judge_the_fine_tuned_network() -> None:
    final = shift_trial(experiment("shift-cifar10", "tiny").settings()[0])["final"]
    _check(final, "cifar10")
    assert 0 < final["people"]["plain"]["kl"] < 2
    assert final["unshifted"]["plain"]["accuracy"] > 0.7  # the published weights are kept


@pytest.mark.slow
@needs("newsgroups", "glove")
def test_texts_are_scored_under_shift() -> None:
    settings = experiment("shift-newsgroups", "tiny").settings()
    _check(shift_trial(next(each for each in settings if each["scheme"] == "mc-dropout"))["final"], "newsgroups")
