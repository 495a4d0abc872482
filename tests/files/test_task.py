"""A file can be compared on: the same parts, network and sweep as for the embedded data."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.files.made import rows, write_csv
from tests.recipes.compare.blobs import TINY

from calibayes.errors import InvalidArgumentError
from calibayes.files import DataSettings, file_task, train
from calibayes.files.prepare import prepare
from calibayes.files.summary_text import scores_table
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


def test_a_file_that_was_written_anew_is_read_anew(tmp_path: Path) -> None:
    found = []
    for seed in (0, 9):
        path = write_csv(tmp_path / "t.csv", rows(60, seed))
        found.append(file_task(path, DATA, Settings.quick())[0].load(1, 1, 1).train[0])
    assert not torch.equal(*found)


def test_test_rows_that_are_copies_are_told_and_not_called_unseen(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "t.csv", rows(30) * 3)
    _, _, notes = file_task(path, DATA, Settings.thorough())
    assert re.search(r"1\d of 1\d test rows have the same inputs as some to train on. If they are copies", notes[-1])
    trained = train(path, target="kind", scheme="fnn", epochs=1)
    assert trained.prepared.copies > 10
    assert f"{trained.prepared.copies} of them like some that training has seen" in str(scores_table(trained).title)


@pytest.mark.parametrize(("settings", "flag"), [({"network": "resnet20"}, "--network"), ({"image_size": 40}, "--image-size")])
def test_what_would_have_no_effect_is_refused(tmp_path: Path, settings: dict[str, Any], flag: str) -> None:
    path = write_csv(tmp_path / "t.csv", rows(30))
    for text in ((), ("colour",)):
        with pytest.raises(InvalidArgumentError, match=f"Expected no {flag} for data without images"):
            prepare(path, replace(DATA, text=text, **settings))
    with pytest.raises(InvalidArgumentError, match="Expected no --embeddings for data without texts"):
        prepare(path, replace(DATA, embeddings="glove"))
