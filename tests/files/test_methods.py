"""Models of other methods than the paper's four, in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.files.made import HEADER, rows, write_csv

from calibayes.errors import InvalidArgumentError, ModelFileError
from calibayes.files import TrainSettings, load, predict_file, train
from calibayes.metrics import evaluate
from calibayes.tensor_tree_file import read_tree, write_tree

KIND = "classifier of files"
FRAME = {name: [row[place] for row in rows(30, seed=1)] for place, name in enumerate(HEADER)}
SMALL: dict[str, Any] = {"target": "kind", "epochs": 3, "predictive_samples": 4, "hidden": [8], "folds": 2}


@pytest.mark.parametrize(
    ("method", "settings"),
    [("ensemble", {"members": 2}), ("mixture", {"members": 2}), ("mc-dropout", {}), ("natural-gradient", {}), ("ema", {})],
)
def test_a_model_of_any_method_says_the_same_after_loading(method: str, settings: dict[str, Any], tmp_path: Path) -> None:
    data = write_csv(tmp_path / "data.csv", rows(80))
    trained = train(data, scheme=method, method_settings=settings, **SMALL)
    trained.model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    probs = trained.model.predict(FRAME).probs
    assert torch.equal(loaded.predict(FRAME).probs, probs)
    torch.testing.assert_close(probs.sum(-1), torch.ones(30, dtype=torch.float64))
    assert len(loaded.posterior.members) == 2 * settings.get("members", 1)
    assert loaded.about["settings"]["method_settings"] == settings
    done = predict_file(loaded, data, tmp_path / "out.csv")
    assert (done.rows, done.labelled) == (80, True)
    assert 0 <= evaluate(probs, torch.arange(30) % 2, intervals=False).ece <= 1


def test_a_file_that_promises_more_members_than_it_holds_is_refused(tmp_path: Path) -> None:
    data = write_csv(tmp_path / "data.csv", rows(60))
    train(data, scheme="ensemble", method_settings={"members": 2}, **SMALL).model.save(tmp_path / "model")
    tree = read_tree(tmp_path / "model", KIND)
    members = tree["posterior"]["architecture"]["members"]
    tree["posterior"]["architecture"]["members"] = members * 1000
    write_tree(tmp_path / "more", KIND, tree)
    with pytest.raises(ModelFileError, match=r"describes a network of .* bytes of weights"):
        load(tmp_path / "more")
    tree["posterior"]["architecture"]["members"] = members
    name = next(each for each in tree["posterior"]["state"] if each.startswith("parts.1."))
    tree["posterior"]["state"][name] = torch.full_like(tree["posterior"]["state"][name], torch.nan)
    write_tree(tmp_path / "broken", KIND, tree)
    with pytest.raises(ModelFileError, match=r"the weights 'parts\.1\..*' are not finite"):
        load(tmp_path / "broken")


def test_defaults_are_those_of_the_method_and_the_papers_schemes_keep_theirs() -> None:
    paper, other, point = (TrainSettings(scheme=scheme).of_method() for scheme in ("ca-bnn", "mixture", "ensemble"))
    expected = {"lam": 1.0, "beta": 0.03, "prior_std": 0.1, "init_std": 0.02, "learning_rate": 0.003}
    assert {name: paper[name] for name in expected} == expected
    assert not set(expected) & {*other, *point}  # the registered defaults hold
    assert "lam" not in TrainSettings(scheme="bnn").of_method()
    assert TrainSettings(scheme="ensemble", lam=3.0).of_method()["lam"] == 3.0
    assert TrainSettings(scheme="ensemble", method_settings={"members": 2}).of_method()["members"] == 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"scheme": "ensembel"}, "Did you mean 'ensemble'?"),
        ({"scheme": "ensemble", "beta": 0.1}, "no `beta` for 'ensemble', but got 0.1"),
        ({"scheme": "bnn", "lam": 0.1}, "With the term it is 'ca-bnn'"),
        ({"scheme": "fnn", "method_settings": {"members": 2}}, "'fnn' has no setting 'members'"),
        ({"scheme": "mixture", "method_settings": {"beta": 2}}, "use the setting 'beta' itself instead"),
        ({"scheme": "mixture", "method_settings": 3}, "a table of settings by name, but got 3"),
        ({"scheme": "mixture", "beta": 0.0}, "`beta` to be a positive finite number"),
    ],
)
def test_settings_that_a_method_does_not_have(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        TrainSettings.of(settings)
