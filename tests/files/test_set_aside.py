"""Rows set aside for sets and thresholds: nothing in training sees them, and the model file carries them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.files.guaranteed import CLASSES, HEADER, QUICK, drawn_rows, trained
from tests.files.made import rows, table_model, write_csv

from calibayes.acting import CertifyRequest, GuaranteeRequest, PredictionSets, Threshold
from calibayes.errors import DataError, InvalidArgumentError, ModelFileError
from calibayes.files import TrainSettings, load, train
from calibayes.files.labelled_rows import read_labelled
from calibayes.files.set_aside_rows import SetAsideRows
from calibayes.files.set_rows_aside import SplitForCalibration, set_rows_aside
from calibayes.tensor_tree_file import read_tree, write_tree

KIND = "classifier of files"


def split(path: Path, **others: Any) -> SplitForCalibration:
    settings = TrainSettings.of({"target": "kind", **others})
    return set_rows_aside(read_labelled(path, settings, settings.group, settings.time), settings)


def cells(part: Any, name: str) -> list[str]:
    found: list[str] = part.rows.cells(name).to_pylist()
    return found


def test_rows_are_set_aside_only_if_asked_for(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "t.csv", drawn_rows(100), HEADER)
    assert split(path).aside is None
    for others, count in (({"sets": 0.9}, 20), ({"certify": "accuracy=0.9"}, 20), ({"set_aside": 0.3}, 30)):
        training, aside = split(path, **others)
        assert aside is not None
        assert abs(len(aside.labels.codes) - count) <= 2
        assert len(aside.labels.codes) + len(training.labels.codes) == 100
        assert not set(aside.rows.rows) & set(training.rows.rows)
        assert f"{len(aside.labels.codes)} rows set aside" in training.notes[-1]
        assert aside.labels.classes == training.labels.classes == CLASSES


def test_groups_and_copies_are_never_on_both_sides(tmp_path: Path) -> None:
    body = [[*row, f"g{place % 40}"] for place, row in enumerate(drawn_rows(200))]
    path = write_csv(tmp_path / "t.csv", body, (*HEADER, "owner"))
    training, aside = split(path, sets=0.9, group="owner")
    assert aside is not None
    assert not set(cells(training, "owner")) & set(cells(aside, "owner"))
    path = write_csv(tmp_path / "copies.csv", drawn_rows(100) * 2, HEADER)
    training, aside = split(path, sets=0.9)
    assert aside is not None
    assert not set(cells(training, "x")) & set(cells(aside, "x"))


def test_with_times_the_latest_rows_are_set_aside_and_their_groups_leave_training(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    body = [[*row, str(day), f"g{rng.integers(300)}"] for row, day in zip(drawn_rows(200), rng.permutation(200), strict=True)]
    path = write_csv(tmp_path / "t.csv", body, (*HEADER, "day", "owner"))
    training, aside = split(path, sets=0.9, time="day")
    assert aside is not None
    assert sorted(map(int, cells(aside, "day"))) == list(range(160, 200))
    training, aside = split(path, sets=0.9, time="day", group="owner")
    assert aside is not None
    assert not set(cells(training, "owner")) & set(cells(aside, "owner"))
    assert len(training.labels.codes) < 160
    assert "of the same groups, or like them: left out" in training.notes[-1]
    same = write_csv(tmp_path / "same.csv", [[*row, "1"] for row in drawn_rows(50)], (*HEADER, "day"))
    with pytest.raises(DataError, match="have the last time"):
        split(same, sets=0.9, time="day")
    late = [[row[0], row[1], "cow" if place < 40 else "dog", str(place)] for place, row in enumerate(drawn_rows(50))]
    with pytest.raises(DataError, match="no row of class 'dog' is left to train on"):
        split(write_csv(tmp_path / "late.csv", late, (*HEADER, "day")), sets=0.9, time="day")


def test_nothing_in_training_sees_them(tmp_path: Path) -> None:
    """Whatever the rows set aside hold, the model is the same to the last bit."""
    body = drawn_rows(200)
    settings = {**QUICK, "sets": 0.9, "seed": 3}
    first = train(write_csv(tmp_path / "t.csv", body, HEADER), **settings).model
    _, aside = split(tmp_path / "t.csv", sets=0.9, seed=3)
    assert aside is not None
    for row in aside.rows.rows:
        body[row][0] = f"{1000 + row}"
    second = train(write_csv(tmp_path / "u.csv", body, HEADER), **settings).model
    frame = {name: [row[place] for row in drawn_rows(40, seed=9)] for place, name in enumerate(HEADER)}
    assert torch.equal(first.predict(frame).probs, second.predict(frame).probs)
    assert first.temperature == second.temperature
    assert first.set_aside is not None
    assert second.set_aside is not None
    assert not torch.equal(first.set_aside.probs, second.set_aside.probs)


def test_what_is_kept_are_the_models_own_final_probabilities() -> None:
    model, kept = trained().model, trained().model.set_aside
    assert kept is not None
    assert 230 <= len(kept.labels) <= 250
    assert model.about["set_aside"] == len(kept.labels)
    assert model.about["examples"] + len(kept.labels) == 600
    found = trained().guarantees
    assert found is not None
    assert isinstance(found.threshold, Threshold)
    expected = Threshold.fit(kept.probs, kept.labels, 0.8)
    assert expected.value is not None
    assert found.threshold.value == pytest.approx(expected.value, abs=2e-6)
    assert found.threshold.answered == expected.answered
    assert kept.request == GuaranteeRequest(0.9, certify=CertifyRequest("accuracy", 0.8))
    settings = TrainSettings.of({**QUICK, "set_aside": 0.4})
    assert settings.set_aside == 0.4


def test_a_model_file_carries_everything(tmp_path: Path) -> None:
    model = trained().model
    model.save(tmp_path / "m")
    again = load(tmp_path / "m")
    assert model.set_aside is not None
    assert again.set_aside is not None
    assert torch.equal(again.set_aside.probs, model.set_aside.probs)
    assert torch.equal(again.set_aside.labels, model.set_aside.labels)
    assert torch.equal(again.set_aside.outsiders, model.set_aside.outsiders)
    assert again.set_aside.request == model.set_aside.request
    assert again.set_aside.guarantees().to_dict() == model.set_aside.guarantees().to_dict()


def test_a_model_without_rows_set_aside_is_written_as_before(tmp_path: Path) -> None:
    table_model().save(tmp_path / "m")
    assert "set_aside" not in read_tree(tmp_path / "m", KIND)
    assert load(tmp_path / "m").set_aside is None


def test_costs_go_into_the_file(tmp_path: Path) -> None:
    costs = tmp_path / "costs.csv"
    costs.write_text("action,dog,cow,cat|s\nkeep,0,3,3\nsell,2,0,1\n")
    path = write_csv(tmp_path / "t.csv", drawn_rows(300), HEADER)
    model = train(path, **QUICK, certify="cost=1.5,certainty=0.8", costs=str(costs)).model
    model.save(tmp_path / "m")
    again = load(tmp_path / "m").set_aside
    assert again is not None
    assert again.request.costs is not None
    assert again.request.costs.costs == ((3.0, 3.0, 0.0), (1.0, 0.0, 2.0))
    assert again.request.certify == CertifyRequest("cost", 1.5, 0.8)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("probs", "none", "a tensor of 2 axes"),
        ("probs", torch.zeros(3, 3), "a tensor of shape"),
        ("probs", None, "sum to 1"),
        ("labels", torch.full((5,), 7), "a tensor of shape|numbers of classes"),
        ("labels", torch.zeros(0, dtype=torch.int64), "a tensor of shape"),
        ("labels", torch.zeros(30_000, dtype=torch.int64), "at most 20000"),
        ("outsiders", "unsorted", "ascending"),
        ("outsiders", "nan", "finite"),
        ("outsider_score", "pickle", "one of epistemic, max-prob"),
        ("score", "best", "Unknown score"),
        ("sets", {"level": 2.0}, "`sets`"),
        ("certify", "accuracy=2", "`accuracy`"),
        ("costs", {"actions": ["a"], "costs": [[1.0]]}, "rows of 3 finite numbers"),
        ("by_class", 1, "true or false"),
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, name: str, value: Any, message: str) -> None:
    trained().model.save(tmp_path / "m")
    tree = read_tree(tmp_path / "m", KIND)
    old = tree["set_aside"][name]
    changes: dict[tuple[str, Any], Callable[[], Any]] = {
        ("probs", None): lambda: old * 0.5,
        ("outsiders", "unsorted"): lambda: old.flip(0),
    }
    changes["outsiders", "nan"] = lambda: torch.full_like(old, float("nan"))
    key = (name, value if isinstance(value, str) or value is None else "")
    tree["set_aside"][name] = changes[key]() if key in changes else value
    write_tree(tmp_path / "n", KIND, tree)
    with pytest.raises(ModelFileError, match=f"is damaged.*({message})"):
        load(tmp_path / "n")


def test_another_level_needs_no_other_training() -> None:
    kept = trained().model.set_aside
    assert kept is not None
    found = kept.guarantees(GuaranteeRequest(sets=0.7, score="aps")).sets
    assert found is not None
    expected = PredictionSets.fit(kept.probs, kept.labels, 0.7, "aps")
    assert found.thresholds.tolist() == pytest.approx(expected.thresholds.tolist(), abs=2e-6)


def test_outsiders_are_ranked_by_a_conformal_p_value() -> None:
    """Of rows like those set aside, at most a share of α has more than 1 - α; rows far off have the most."""
    model = trained().model
    assert model.set_aside is not None
    probs = model.set_aside.probs
    fresh = {name: [row[place] for row in drawn_rows(4000, seed=5)] for place, name in enumerate(HEADER)}
    found = model.set_aside.outsider(model.predict(fresh)).numpy()
    assert found.min() >= 0
    assert found.max() <= len(probs) / (len(probs) + 1)
    for alpha in (0.05, 0.2, 0.5):
        # The calibration sample of 240 rows adds a standard deviation of at most 0.033.
        assert (found > 1 - alpha).mean() == pytest.approx(alpha, abs=0.1)
    own = model.set_aside.outsiders.double()
    by_hand = [(own < score - 1e-6).double().sum() / (len(own) + 1) for score in model.predict(fresh).epistemic[:50]]
    assert found[:50].tolist() == pytest.approx([float(each) for each in by_hand])


def test_rows_that_are_the_same_are_not_above_themselves_by_rounding() -> None:
    model = trained().model
    cells = {name: [row[place] for row in drawn_rows(5, seed=6)] for place, name in enumerate(HEADER)}
    five = model.predict(cells)
    kept = SetAsideRows.predicted(five, five.probs, np.zeros(5), GuaranteeRequest())
    for rounding in (-5e-7, 0.0, 5e-7):  # of another batch, or another runtime
        found = kept.outsider(replace(five, aleatoric=five.aleatoric - rounding))
        assert found.sort().values.tolist() == pytest.approx([place / 6 for place in range(5)])


def test_a_single_network_has_no_disagreement_so_its_confidence_is_the_outsider_score() -> None:
    predictive = trained().model.predict({"x": ["0", "1"], "z": ["0", "1"]})
    sure = replace(predictive, aleatoric=predictive.entropy)
    kept = SetAsideRows.predicted(sure, sure.probs, np.array([0, 1]), GuaranteeRequest())
    assert kept.outsider_score == "max-prob"
    assert kept.outsiders.tolist() == pytest.approx(sorted((1 - sure.probs.amax(-1)).tolist()), abs=1e-6)


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ({"set_aside": 0.9}, "share of the rows from 0.05 to 0.5"),
        ({"sets": 1.2}, "`sets`"),
        ({"sets_score": "aps"}, "Expected --sets, the coverage of the sets, with --sets-score"),
        ({"sets_by_class": True}, "with --sets-by-class"),
        ({"sets": 0.9, "sets_score": "abs"}, "Unknown score of sets 'abs'. Did you mean 'aps'?"),
        ({"certify": "0.9"}, "Expected --certify"),
        ({"certify": "cost=1"}, "Expected --costs and --certify cost=… together"),
        ({"costs": "costs.csv"}, "Expected --costs and --certify cost=… together"),
        ({"costs": "costs.csv", "certify": "accuracy=0.9"}, "Expected --costs and --certify cost=… together"),
    ],
)
def test_settings_that_ask_for_nothing_sensible_are_named(others: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        TrainSettings.of({"target": "kind", **others})
    assert message in str(caught.value)


def test_too_few_rows_of_a_table_are_named(tmp_path: Path) -> None:
    body = [row for row in rows(40) if row[3] == "small"][:2] + [row for row in rows(40) if row[3] == "large"][:2]
    with pytest.raises(DataError, match="fewer than 3 examples"):
        split(write_csv(tmp_path / "t.csv", body), sets=0.9)
