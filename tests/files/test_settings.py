"""Settings from flags and TOML: names and types are checked, and the nearest right name is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from calibayes.errors import DataError, InvalidArgumentError
from calibayes.files import TrainSettings
from calibayes.files.settings import read_settings


def test_a_toml_file_says_what_flags_can_say(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(
        'target = "kind"\ntext = "body"\nscheme = "ca-fnn"\nlam = 3\nbatch-size = 32\nhidden = [16]\ndrop-rare = true\n'
    )
    made = TrainSettings.of(read_settings(path))
    assert (made.text, made.lam, made.beta, made.batch_size, made.hidden) == (("body",), 3.0, None, 32, (16,))
    assert made.drop_rare


def test_one_split_is_what_its_fractions_ask_for() -> None:
    assert [TrainSettings.of(given).folds for given in ({}, {"test": 0.3}, {"validation": 0.1}, {"test": 0.3, "folds": 4})] == [
        5,
        1,
        1,
        4,
    ]


def test_names_of_methods_are_found_in_any_case() -> None:
    assert TrainSettings(scheme="CA-BNN").scheme == "ca-bnn"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"epoch": 3}, "There is no setting 'epoch'. Did you mean 'epochs'?"),
        ({"epochs": "3"}, "Expected 'epochs' to be a whole number, but got '3'."),
        ({"epochs": True}, "whole number"),
        ({"epochs": 0}, "positive integer"),
        ({"lam": "much"}, "Expected 'lam' to be a number"),
        ({"drop_rare": 1}, "true or false"),
        ({"target": 3}, "Expected 'target' to be a text"),
        ({"text": [1]}, "a text or a list of texts"),
        ({"hidden": ["a"]}, "a list of whole numbers"),
        ({"scheme": "cabnn"}, "ca-bnn"),
        ({"scheme": "fnn", "lam": 1.0}, "Expected no `lam` for 'fnn'"),
        ({"scheme": "ca-fnn", "lam": 0.0}, "lam"),
        ({"embeddings": "word2vec"}, "learned, glove"),
        ({"network": "resnet50"}, "small-cnn, resnet20"),
        ({"image_size": 4}, "at least 10"),
        ({"image_size": 4000}, "at most 512"),
        ({"test": 0.5, "validation": 0.45}, "at least a tenth"),
        ({"seed": 99999999999999999999}, "at most 63 bits, but got 99999999999999999999"),
        ({"scheme": "bnn", "prior_std": 1e-300}, "`prior_std` to lie between 1e-15 and 1e+15, but got 1e-300"),
        ({"max-rows": 3, "max_rows": 4}, "Expected 'max_rows' once"),
        ({"lam": 1.0}, "Expected --method with --lam"),
        ({"method_settings": {"members": 2}}, "Expected --method with --set"),
        ({"scheme": "boosted-trees", "lam": 1.0}, "Expected no `lam` for 'boosted-trees'"),
        ({"scheme": "fnn", "prior_std": 1.0}, "Expected no 'prior_std' for 'fnn'"),
        ({"folds": 0}, "folds"),
        ({"budget": 0.0}, "budget"),
        ({"seed": 1.5}, "'seed' to be a whole number"),
    ],
)
def test_what_makes_no_sense_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        TrainSettings.of(given)
    assert message in str(caught.value)


def test_a_file_that_is_no_toml_is_named(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text("target = \n")
    with pytest.raises(DataError, match=r"s.toml.*line 1"):
        read_settings(path)
    with pytest.raises(DataError, match="Cannot read"):
        read_settings(tmp_path / "none.toml")


def test_a_mark_of_the_byte_order_is_no_setting_and_types_are_checked_where_they_are_read(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_bytes(b"\xef\xbb\xbfmax-rows = 5\n")
    assert read_settings(path) == {"max_rows": 5}
    path.write_text("epochs = '3'\n")
    with pytest.raises(InvalidArgumentError, match="'epochs' to be a whole number"):
        read_settings(path)


def test_a_column_that_is_named_twice_is_meant_once() -> None:
    assert TrainSettings(text=("body", "title", "body")).text == ("body", "title")
