"""A file can be compared on: the same parts, network and sweep as for the embedded data."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.files.made import rows, write_csv
from tests.recipes.compare.blobs import TINY

from calibayes.errors import InvalidArgumentError
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
    torch.testing.assert_close(splits.train[0], expected.splits.train[0], rtol=0, atol=0, equal_nan=True)
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


def test_baselines_get_numbers_with_gaps_and_codes_of_categories(tmp_path: Path) -> None:
    task, _, _ = file_task(write_csv(tmp_path / "t.csv", rows(100)), DATA, Settings.thorough())
    assert task.plain_inputs is not None
    inputs, splits = task.plain_inputs(65, 15, 20), task.load(65, 15, 20)
    assert (inputs.kind, inputs.categorical) == ("table", (1,))
    for part in ("train", "validation", "test"):
        raw, (coded, labels) = getattr(inputs, part), getattr(splits, part)
        assert len(raw) == len(labels)
        known = ~np.isnan(raw[:, 0])
        assert not known.all() or part != "train"
        np.testing.assert_allclose(raw[known, 0], coded[known, 0], rtol=1e-6)  # the same rows in the same order
        assert coded[~known, 0].isnan().all()
        assert set(np.unique(raw[:, 1][~np.isnan(raw[:, 1])])) <= {0.0, 1.0}


def test_baselines_get_the_words_of_texts(tmp_path: Path) -> None:
    body = [[f"A {'sea' if k % 2 else 'sky'}, a ship-{k}!", ["dry", "wet"][k % 2]] for k in range(40)]
    path = write_csv(tmp_path / "t.csv", body, ("body", "kind"))
    task, _, _ = file_task(path, replace(DATA, text=("body",)), Settings.thorough())
    assert task.plain_inputs is not None
    inputs, splits = task.plain_inputs(26, 6, 8), task.load(26, 6, 8)
    assert inputs.kind == "texts"
    for part in ("train", "validation", "test"):
        words, labels = getattr(inputs, part), getattr(splits, part)[1]
        assert [text[1] for text in words] == [["sky", "sea"][label] for label in labels]
        assert all(len(text) == 5 and text[2] == "a" for text in words)  # all words, once or not, known or not


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


@pytest.mark.parametrize(("settings", "flag"), [({"network": "resnet20"}, "--network"), ({"image_size": 40}, "--image-size")])
def test_what_would_have_no_effect_is_refused(tmp_path: Path, settings: dict[str, Any], flag: str) -> None:
    path = write_csv(tmp_path / "t.csv", rows(30))
    for text in ((), ("colour",)):
        with pytest.raises(InvalidArgumentError, match=f"Expected no {flag} for data without images"):
            prepare(path, replace(DATA, text=text, **settings))
    with pytest.raises(InvalidArgumentError, match="Expected no --embeddings for data without texts"):
        prepare(path, replace(DATA, embeddings="glove"))
