"""A file can be compared on: the same parts, network and sweep as for the embedded data."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import torch
from tests.files.made import rows, write_csv
from tests.recipes.compare.blobs import TINY

from calibayes.files import DataSettings, file_task
from calibayes.files.prepare import prepare
from calibayes.recipes.compare import Settings, compare

DATA = DataSettings(target="kind", hidden=(8,))


def test_a_task_has_the_parts_of_the_file_wherever_it_is_loaded(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "t.csv", rows(100))
    task, settings, notes = file_task(path, DATA, Settings.thorough())
    assert notes == ("Column 'seen' is taken for dates.",)
    assert (settings.train, settings.validation, settings.test) == (65, 15, 20)
    assert settings.epochs == 60  # 12 would be too few steps for so few rows
    again = pickle.loads(pickle.dumps(task))
    splits = again.load(65, 15, 20)
    expected = prepare(path, DATA)
    assert torch.equal(splits.train[0], expected.splits.train[0])
    assert again.network()(splits.test[0]).shape == (20, 2)
    assert repr(again.network()) == repr(expected.network())


def test_quick_takes_a_part_and_epochs_can_be_given(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "t.csv", rows(3000))
    _, settings, _ = file_task(path, DATA, Settings.quick(), epochs=2)
    assert (settings.train, settings.validation, settings.test, settings.epochs) == (600, 400, 600, 2)


def test_the_schemes_are_compared_on_a_file(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "t.csv", rows(90))
    few = replace(TINY, seeds=1, lams=(3.0,), betas=(0.1,))
    task, settings, _ = file_task(path, DATA, few, epochs=2)
    found = compare(task, settings, workers=1)
    assert found.class_names == ("large", "small")
    assert {str(each) for each in found.entries} >= {"FNN", "CA-BNN + T"}
    assert len(found.targets) == settings.test == 18
