"""A training on a file: what trains and what measures, what is tried and taken, and the file that comes of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from calibayes.crossfit import NetworkLearner
from calibayes.errors import DataError, InvalidArgumentError
from calibayes.files import Trained, load, predict_file, train

QUICK: dict[str, Any] = {"target": "label", "scheme": "logistic-regression"}


def frame(n: int = 300, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    size, colour = rng.lognormal(size=n), rng.choice(["red", "green", "blue"], n)
    score = np.log(size) * np.where(colour == "red", -1, 1) + 0.5 * rng.normal(size=n)
    made = pd.DataFrame(
        {"size": size, "colour": colour, "noise": rng.normal(size=n), "label": np.where(score > 0, "yes", "no")}
    )
    made.loc[rng.random(n) < 0.1, "size"] = np.nan
    return made


def written(folder: Path, made: pd.DataFrame, name: str = "table.csv") -> Path:
    made.to_csv(folder / name, index=False)
    return folder / name


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("table"), frame())


@pytest.fixture(scope="module")
def trained(table: Path) -> Trained:
    return train(table, target="label", folds=3)


def test_all_rows_have_an_honest_prediction_and_all_train(trained: Trained) -> None:
    assert (trained.scores.n, trained.held_out.rows) == (300, "held-out folds")
    assert trained.scores.accuracy > 0.75
    assert len(trained.selection.best.parts[0].members) == 3
    assert trained.model.about["tried"][0]["title"] == "logistic regression"
    seen = np.concatenate([fold.train for fold in trained.plan.folds])
    assert (np.bincount(seen, minlength=300) == 2).all()  # each row trains all members but one


def test_the_model_is_saved_and_predicts_the_same(trained: Trained, table: Path, tmp_path: Path) -> None:
    trained.model.save(tmp_path / "m.safetensors")
    loaded = load(tmp_path / "m.safetensors")
    rows = pd.read_csv(table).head(50)
    assert loaded.calibrated
    assert torch.equal(loaded.predict(rows).probs, trained.model.predict(rows).probs)
    assert torch.equal(loaded.scaled(loaded.predict(rows)), trained.model.scaled(trained.model.predict(rows)))


def test_the_same_seed_gives_the_same_model(trained: Trained, table: Path) -> None:
    again = train(table, target="label", folds=3)
    rows = pd.read_csv(table).head(50)
    assert again.model.temperature == trained.model.temperature
    assert torch.equal(again.model.predict(rows).probs, trained.model.predict(rows).probs)


def test_predictions_have_the_temperature_unless_told_otherwise(table: Path, tmp_path: Path) -> None:
    model = train(table, **QUICK).model
    assert model.temperature != 1
    for name, temperature in (("default", None), ("plain", False)):
        predict_file(model, table, tmp_path / f"{name}.parquet", temperature=temperature)
    found = model.predict(pd.read_csv(table))
    default, plain = (pd.read_parquet(tmp_path / f"{name}.parquet")["p_yes"] for name in ("default", "plain"))
    assert np.allclose(default, model.scaled(found)[:, 1])
    assert np.allclose(plain, found.probs[:, 1])


def test_one_split_keeps_test_rows_out_of_everything(table: Path) -> None:
    once = train(table, **QUICK, test=0.3)
    train_rows, validation = once.plan.folds[0]
    assert once.held_out.rows == "test part"
    assert (len(train_rows), len(validation), len(once.plan.test)) == (165, 45, 90)
    assert not set(once.plan.test) & {*train_rows, *validation}
    assert len(once.model.posterior.members) == 1
    # The scores are those of the saved model on the test rows of the file.
    rows = pd.read_csv(table).iloc[once.plan.test]
    probs = once.model.scaled(once.model.predict(rows)).numpy()
    assert np.allclose(once.held_out.probs, probs, atol=1e-6)


def test_a_test_file_measures_the_model_itself(table: Path, tmp_path: Path) -> None:
    other = frame(80, seed=1)
    other.loc[0, "label"] = "perhaps"
    measured = train(table, **QUICK, test_file=str(written(tmp_path, other)))
    assert (measured.held_out.rows, measured.scores.n) == ("test file", 79)
    assert measured.notes == ("1 test row without a class that the model knows: left out.",)
    probs = measured.model.scaled(measured.model.predict(other[1:]))
    assert np.allclose(measured.held_out.probs, probs)
    with pytest.raises(DataError, match="there is no column 'label' of the classes"):
        train(table, **QUICK, test_file=str(written(tmp_path, other.drop(columns="label"), "bare.csv")))


def test_groups_and_copies_stay_on_one_side_and_are_no_inputs(tmp_path: Path) -> None:
    made = frame(200)
    made["person"] = np.arange(200) // 4
    path = written(tmp_path, pd.concat([made, made[:20]]))
    found = train(path, **QUICK, group="person")
    people = np.concatenate([made["person"], made["person"][:20]])
    for train_rows, held_out in found.plan.folds:
        assert not set(people[train_rows]) & set(people[held_out])
    assert "person" not in found.model.coding.needs
    once = train(path, **QUICK, group="person", test=0.2)
    assert not set(people[once.plan.test]) & set(people[np.concatenate(once.plan.folds[0])])


def test_with_times_the_past_predicts_the_future_and_all_rows_train(tmp_path: Path) -> None:
    made = frame(240)
    order = np.random.default_rng(1).permutation(240)
    made["day"] = (pd.Timestamp("2024-01-01") + pd.to_timedelta(order // 2, "D")).strftime("%Y-%m-%d")
    found = train(written(tmp_path, made), **QUICK, time="day")
    for train_rows, held_out in found.plan.folds:
        assert order[train_rows].max() // 2 < order[held_out].min() // 2
    assert found.scores.n == 200  # all but the first block
    assert found.plan.final_folds is not None
    assert {*np.concatenate([fold.train for fold in found.plan.final_folds])} == set(range(240))
    assert len(found.model.posterior.members) == 5
    once = train(written(tmp_path, made), **QUICK, time="day", test=0.25)
    assert order[np.concatenate(once.plan.folds[0])].max() // 2 < order[once.plan.test].min() // 2
    made.loc[3, "day"] = "soon"
    with pytest.raises(DataError, match=r"line 5, column 'day': 'soon' is neither a date nor a number"):
        train(written(tmp_path, made), **QUICK, time="day", ignore=["day"])


def test_ctrl_c_keeps_the_best_so_far(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(NetworkLearner, "__call__", interrupted)
    found = train(table, target="label", folds=3)
    assert found.selection.interrupted
    assert found.selection.best.title in ("logistic regression", "boosted trees")
    with pytest.raises(KeyboardInterrupt):
        train(table, target="label", scheme="fnn", folds=3)


def test_ctrl_c_in_the_only_method_keeps_the_members_that_there_are(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original, calls = NetworkLearner.__call__, []

    def second_interrupted(self: NetworkLearner, *given: Any) -> Any:
        calls.append(given)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(self, *given)

    monkeypatch.setattr(NetworkLearner, "__call__", second_interrupted)
    found = train(table, target="label", scheme="fnn", epochs=3)
    assert len(found.model.posterior.members) == 2
    assert found.scores.n == 120  # the rows of two folds of five


def test_columns_that_name_the_rows_go_with_the_predictions(tmp_path: Path) -> None:
    made = frame(60)
    made.insert(0, "code", [f"c{place}" for place in range(60)])
    made["remark"] = [f"row {place}: " + "words " * 20 for place in range(60)]
    path = written(tmp_path, made)
    model = train(path, **QUICK).model
    assert model.identifiers == ("code",)
    predict_file(model, path, tmp_path / "out.csv")
    assert pd.read_csv(tmp_path / "out.csv")["code"].tolist() == made["code"].tolist()


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"group": "colour", "ignore": ["colour"]}, InvalidArgumentError, "in one of --ignore and --group"),
        ({"time": "when"}, DataError, r"there is no column 'when' \(--time\)"),
        ({"time": "colour"}, DataError, "is neither a date nor a number"),
        ({"group": "label"}, InvalidArgumentError, "--target and --group"),
    ],
)
def test_columns_that_cannot_be_what_they_are_named_for(
    table: Path, settings: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        train(table, **QUICK, **settings)


@pytest.mark.boosting
def test_boosted_trees_are_a_method_like_others(table: Path, tmp_path: Path) -> None:
    pytest.importorskip("lightgbm", reason="needs the extra boosting")
    model = train(table, target="label", scheme="Boosted-Trees", folds=3, method_settings={"rounds": 50}).model
    model.save(tmp_path / "m")
    rows = pd.read_csv(table)
    assert torch.equal(load(tmp_path / "m").predict(rows).probs, model.predict(rows).probs)
    assert bool((model.predict(rows).epistemic > 0).any())
