"""What predictions of a file decide: sets that cover, thresholds that hold, costs, and errors where nothing is guaranteed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from tests.files.guaranteed import CLASSES, HEADER, drawn_rows, trained
from tests.files.made import rows, table_model, write_csv

from calibayes.acting import CertifyRequest, GuaranteeRequest, decide_by_cost
from calibayes.errors import InvalidArgumentError
from calibayes.files import Model, predict_file
from calibayes.files.predicting import Predicted
from calibayes.files.row_actions import joined_set
from calibayes.files.set_aside_rows import SetAsideRows

WITH_ALL = [
    "label",
    "decision",
    "abstain",
    "set",
    "p_cat|s",
    "p_cow",
    "p_dog",
    "confidence",
    "epistemic",
    "aleatoric",
    "outsider",
]


@pytest.fixture
def new(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "new.csv", drawn_rows(500, seed=7), HEADER)


def predicted(model: Model, path: Path, ending: str = ".csv", **others: Any) -> tuple[pd.DataFrame, Predicted, list[str]]:
    notes: list[str] = []
    out = path.with_name(f"out{ending}")
    done = predict_file(model, path, out, say=notes.append, **others)
    found = pd.read_csv(out, keep_default_na=False, dtype={"abstain": str}) if ending == ".csv" else pd.read_parquet(out)
    return found, done, notes


def members(frame: pd.DataFrame) -> list[set[str]]:
    """The sets, split where no backslash stands before the sign."""
    return [set(text.replace("\\|", "\0").replace("|", "\n").replace("\0", "|").split("\n")) for text in frame["set"]]


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_what_a_model_was_trained_for_is_the_default(new: Path, ending: str) -> None:
    model = trained().model
    frame, done, notes = predicted(model, new, ending)
    assert list(frame) == WITH_ALL
    found = trained().guarantees
    assert found is not None
    assert found.sets is not None
    probs = model.calibrated_probs(model.predict(pd.read_csv(new, dtype=str)))
    names = np.array(CLASSES)
    assert members(frame) == [set(names[row]) for row in found.sets.predict(probs).numpy()]
    answers = found.answers(probs)
    assert answers is not None
    assert (frame["abstain"] == "false").tolist() == answers.tolist()
    decided = np.where(answers.numpy(), names[probs.argmax(1).numpy()], "")
    assert frame["decision"].tolist() == decided.tolist()
    assert done.abstains
    assert done.abstained == int((~answers).sum()) > 0
    assert notes[-2:] == found.statements(CLASSES)
    assert all(members(frame))
    assert frame["outsider"].between(0, 1).all()


def test_the_promise_is_kept_through_the_door(tmp_path: Path) -> None:
    """Coverage over calibration samples is the level, and the accuracy is missed no more often than was said."""
    model = trained().model
    covered, missed, made_any, total = [], 0, False, 25
    fresh = write_csv(tmp_path / "fresh.csv", drawn_rows(1200, seed=999), HEADER)
    for seed in range(total):
        body = drawn_rows(150, seed=100 + seed)
        frame = {name: [row[place] for row in body] for place, name in enumerate(HEADER)}
        predictive = model.predict(frame)
        labels = np.array([CLASSES.index(row[2]) for row in body])
        request = GuaranteeRequest(0.9, certify=CertifyRequest("accuracy", 0.8, 0.8))
        kept = SetAsideRows.predicted(predictive, model.calibrated_probs(predictive), labels, request)
        found, _, _ = predicted(replace(model, set_aside=kept), fresh)
        truth = found["label"].tolist()
        covered.append(np.mean([label in each for label, each in zip(truth, members(found), strict=True)]))
        made = found[found["abstain"] == "false"]
        made_any |= bool(len(made))
        missed += bool(len(made)) and (made["decision"] == made["label"]).mean() < 0.8
    # The mean coverage is that of rank 136 of 151; 25 samples of 150 rows and one of 1,200 have a standard error of 0.01.
    assert np.mean(covered) == pytest.approx(136 / 151, abs=0.03)
    assert np.min(covered) < 0.9
    # 20 % may miss it: with 25 samples, more than 11 would be a chance of 1 in 500.
    assert missed <= 11
    assert made_any


def test_other_levels_and_scores_can_be_asked_for_later(new: Path) -> None:
    model = trained().model
    small, _, _ = predicted(model, new, sets=0.6)
    large, _, _ = predicted(model, new, sets=0.97, sets_score="aps", sets_by_class=True)
    sizes = [np.mean([len(each) for each in members(frame)]) for frame in (small, large)]
    assert sizes[0] < sizes[1]
    loose, done, _ = predicted(model, new, certify="accuracy=0.7,certainty=0.8")
    assert done.abstained < predicted(model, new)[1].abstained
    assert (loose["decision"] == "").sum() == done.abstained
    none, done, notes = predicted(model, new, certify="accuracy=0.999")
    assert done.abstained == 500
    assert set(none["decision"]) == {""}
    assert any("No threshold can be certified" in note for note in notes)
    assert any("So every row is left without a decision" in note for note in notes)


def test_a_threshold_by_hand_replaces_the_certified_one(new: Path) -> None:
    model = trained().model
    frame, done, notes = predicted(model, new, abstain_below=0.0)
    assert done.abstained == 0
    assert "set" in frame
    assert not any("asked accuracy" in note for note in notes)
    frame, _, _ = predicted(model, new, abstain_below=0.7)
    assert ((frame["confidence"] < 0.7) == (frame["decision"] == "")).mean() > 0.99
    with pytest.raises(InvalidArgumentError, match="one of --abstain-below, a threshold by hand, and --certify"):
        predicted(model, new, abstain_below=0.7, certify="accuracy=0.8")


def test_costs_decide_for_any_model(new: Path, tmp_path: Path) -> None:
    costs = tmp_path / "costs.csv"
    costs.write_text("action,cow,dog,cat|s\nkeep,0,3,9\nsell,4,0,1\nabstain,0.9,0.9,0.9\n")
    plain = replace(trained().model, set_aside=None)
    frame, done, _ = predicted(plain, new, costs=costs)
    assert "outsider" not in frame
    assert "set" not in frame
    probs = plain.calibrated_probs(plain.predict(pd.read_csv(new, dtype=str)))
    expected = decide_by_cost(probs, [[9, 0, 3], [1, 4, 0]], 0.9, actions=["keep", "sell"]).named
    assert frame["decision"].tolist() == ["" if name == "abstain" else name for name in expected]
    assert done.abstained == expected.count("abstain") > 0
    assert {"keep", "sell"} < set(expected)
    also, _, _ = predicted(trained().model, new, costs=costs)
    assert also["decision"].tolist() == frame["decision"].tolist()
    assert "set" in also


def test_a_mean_cost_is_certified(new: Path, tmp_path: Path) -> None:
    costs = tmp_path / "costs.csv"
    costs.write_text("action,cow,dog,cat|s\nkeep,0,3,9\nsell,4,0,1\n")
    frame, done, notes = predicted(trained().model, new, costs=costs, certify="cost=1.2")
    assert any("mean cost of at most 1.2" in note for note in notes)
    assert 0 < done.abstained < 500
    table = pd.DataFrame({"keep": [9, 0, 3], "sell": [1, 4, 0]}, index=list(CLASSES))
    made = frame[frame["decision"] != ""]
    incurred = [table.loc[label, action] for label, action in zip(made["label"], made["decision"], strict=True)]
    assert np.mean(incurred) < 1.5
    with pytest.raises(InvalidArgumentError, match="Certify their mean cost"):
        predicted(trained().model, new, costs=costs, certify="accuracy=0.8")


def test_without_rows_set_aside_nothing_is_guaranteed(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "new.csv", rows(9))
    for asked in ({"sets": 0.9}, {"certify": "accuracy=0.9"}):
        with pytest.raises(InvalidArgumentError) as caught:
            predicted(table_model(), path, **asked)
        assert "Train it again with --sets or --certify" in str(caught.value)
        assert "calibayes evaluate predictions.csv --certify accuracy=0.95" in str(caught.value)
    assert not (tmp_path / "out.csv").exists()
    frame, _, _ = predicted(table_model(), path)
    assert list(frame) == ["label", "decision", "p_large", "p_small", "confidence", "epistemic", "aleatoric"]


def random_model() -> Model:
    """One whose predictions depend on the number of samples, with rows set aside."""
    body = rows(80, seed=3)
    frame = {name: [row[place] for row in body] for place, name in enumerate(("size", "colour", "seen"))}
    model = table_model()
    predictive = model.predict(frame)
    labels = np.array([model.classes.index(row[3]) for row in body])
    kept = SetAsideRows.predicted(predictive, model.calibrated_probs(predictive), labels, GuaranteeRequest(sets=0.8))
    return replace(model, set_aside=kept)


def test_other_samples_or_another_temperature_are_refused_or_left_out(tmp_path: Path) -> None:
    path, model = write_csv(tmp_path / "new.csv", rows(30, seed=1)), random_model()
    with pytest.raises(InvalidArgumentError, match="calibrated for 3 samples of the weights, but --samples is 2"):
        predicted(model, path, sets=0.8, samples=2)
    with pytest.raises(InvalidArgumentError, match=r"with the temperature. Leave --no-temperature out"):
        predicted(model, path, certify="accuracy=0.8", temperature=False)
    frame, _, notes = predicted(model, path, samples=2)
    assert "set" not in frame
    assert "outsider" not in frame
    assert any("Left out: the sets of the training" in note for note in notes)
    assert any("No column 'outsider'" in note for note in notes)
    frame, _, _ = predicted(model, path, temperature=False)
    assert "set" not in frame
    assert "outsider" in frame
    frame, _, _ = predicted(model, path, samples=3)
    assert "set" in frame
    # Members that are not random have the same prediction for any number of samples.
    fixed, fresh = trained().model, write_csv(tmp_path / "fixed.csv", drawn_rows(20), HEADER)
    assert "set" in predicted(fixed, fresh, samples=5)[0]


def test_a_set_depends_on_its_row_alone(new: Path, tmp_path: Path) -> None:
    whole, _, _ = predicted(trained().model, new)
    body = drawn_rows(500, seed=7)
    part, _, _ = predicted(trained().model, write_csv(tmp_path / "part.csv", body[100:130], HEADER))
    assert part["set"].tolist() == whole["set"].tolist()[100:130]
    assert part["decision"].tolist() == whole["decision"].tolist()[100:130]
    assert part["outsider"].tolist() == whole["outsider"].tolist()[100:130]


def test_names_with_the_sign_in_them_can_be_told_apart() -> None:
    sets = [["a|b"], ["a", "b"], ["a\\", "b"], ["a\\|b"], []]
    assert len({joined_set(each) for each in sets}) == len(sets)


def test_names_of_columns_are_not_taken_twice(new: Path) -> None:
    frame = pd.read_csv(new).assign(outsider="x")
    frame.to_csv(new, index=False)
    with pytest.raises(InvalidArgumentError, match="Expected --keep not to name 'outsider'"):
        predicted(trained().model, new, keep=["outsider"])


def test_probabilities_are_kept_in_few_bytes() -> None:
    kept = trained().model.set_aside
    assert kept is not None
    assert (kept.probs.dtype, kept.outsiders.dtype, kept.labels.dtype) == (torch.float32, torch.float32, torch.int64)
