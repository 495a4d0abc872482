"""Predictions of a file: the same as those of a frame, in the form that `calibayes evaluate` reads, whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.files.made import HEADER, rows, table_model, write_csv

from calibayes.data.predictions import read_predictions
from calibayes.errors import CalibayesError, DataError, InvalidArgumentError
from calibayes.files import predict_file


def test_a_long_file_is_predicted_in_parts_as_a_frame_would_be(tmp_path: Path) -> None:
    body = rows(60) * 150  # 9,000 rows: two parts
    done = predict_file(table_model(), write_csv(tmp_path / "in.csv", body), tmp_path / "out.parquet")
    frame = {name: [row[place] for row in body[:60]] for place, name in enumerate(HEADER)}
    predictive = table_model().predict(frame)
    probs = table_model().calibrated_probs(predictive)
    out = pd.read_parquet(tmp_path / "out.parquet")
    assert (done.rows, len(out), done.labelled) == (9000, 9000, True)
    for start in (0, 8160, 8940):  # the same rows at the beginning, across the border and at the end
        part = out.iloc[start : start + 60]
        assert np.allclose(part[["p_large", "p_small"]], probs)
        assert np.allclose(part["epistemic"], predictive.epistemic)
        assert np.allclose(part["aleatoric"], predictive.aleatoric)
        assert np.allclose(part["confidence"], probs.amax(1))
        assert part["decision"].tolist() == [table_model().classes[k] for k in predictive.decision]
    assert done.confidence == pytest.approx(float(probs.amax(1).mean()))
    assert not np.allclose(probs, predictive.probs)


def test_evaluate_reads_what_predict_writes(tmp_path: Path) -> None:
    body = rows(60)
    source = write_csv(tmp_path / "in.csv", [[*row, str(i)] for i, row in enumerate(body)], (*HEADER, "id"))
    predict_file(table_model(), source, tmp_path / "out.csv", keep=["id"], abstain_below=0.9)
    table = read_predictions(tmp_path / "out.csv", id="id")
    frame = {name: [row[place] for row in body] for place, name in enumerate(HEADER)}
    assert np.allclose(table.probs, table_model().scaled(table_model().predict(frame)), rtol=1e-5)
    assert table.class_names == table_model().classes
    assert [table.class_names[k] for k in table.targets] == frame["kind"]
    assert table.ids == tuple(map(str, range(60)))


def test_below_the_threshold_there_is_no_decision(tmp_path: Path) -> None:
    body = rows(60)
    frame = {name: [row[place] for row in body] for place, name in enumerate(HEADER)}
    threshold = float(table_model().scaled(table_model().predict(frame)).amax(1).median()) + 1e-9
    source = write_csv(tmp_path / "in.csv", body)
    done = predict_file(table_model(), source, tmp_path / "out.csv", abstain_below=threshold)
    out = pd.read_csv(tmp_path / "out.csv")
    assert done.abstained == 30 == int(out["abstain"].sum())
    assert (out["decision"].isna() == out["abstain"]).all()
    assert out.loc[out["abstain"], "confidence"].max() <= out.loc[~out["abstain"], "confidence"].min()


def test_a_temperature_scales_the_probabilities_and_the_confidence(tmp_path: Path) -> None:
    source = write_csv(tmp_path / "in.csv", rows(20))
    for name, wanted in (("plain", False), ("scaled", True)):
        predict_file(table_model(), source, tmp_path / f"{name}.parquet", temperature=wanted)
    plain, scaled = (pd.read_parquet(tmp_path / f"{name}.parquet") for name in ("plain", "scaled"))
    power = plain["p_large"] ** (1 / table_model().temperature)
    other = plain["p_small"] ** (1 / table_model().temperature)
    assert np.allclose(scaled["p_large"], power / (power + other))
    assert np.allclose(scaled["confidence"], scaled[["p_large", "p_small"]].max(axis=1))
    assert (plain["epistemic"] == scaled["epistemic"]).all()


def test_extra_columns_are_said_once_and_the_target_need_not_be_there(tmp_path: Path) -> None:
    body = [[*row[:3], "x"] for row in rows(50)] * 200
    said: list[str] = []
    source = write_csv(tmp_path / "in.csv", body, (*HEADER[:3], "note"))
    done = predict_file(table_model(), source, tmp_path / "out.csv", say=said.append)
    assert said == ["Columns not used: 'note'."]
    assert (done.rows, done.labelled) == (10_000, False)
    assert "label" not in pd.read_csv(tmp_path / "out.csv").columns


def test_another_column_may_hold_the_classes(tmp_path: Path) -> None:
    source = write_csv(tmp_path / "in.csv", rows(9), (*HEADER[:3], "truth"))
    predict_file(table_model(), source, tmp_path / "out.csv", target="truth")
    assert pd.read_csv(tmp_path / "out.csv")["label"].tolist() == [row[3] for row in rows(9)]


def test_a_failure_on_the_way_leaves_what_was_there(tmp_path: Path) -> None:
    body = rows(50) * 200
    body[9000] = ["many", *body[9000][1:]]
    (tmp_path / "out.csv").write_text("old")
    with pytest.raises(DataError, match=r"in\.csv', line 9002, column 'size': 'many' is not a number"):
        predict_file(table_model(), write_csv(tmp_path / "in.csv", body), tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.csv", "out.csv"]


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"abstain_below": 1.5}, InvalidArgumentError, "between 0 and 1"),
        ({"samples": 0}, InvalidArgumentError, "samples"),
        ({"keep": ["none"]}, DataError, "there is no column 'none'"),
        ({"target": "none"}, DataError, "there is no column 'none'"),
        ({"keep": ["p_value"]}, InvalidArgumentError, "Rename it"),
    ],
)
def test_what_makes_no_sense_is_refused(
    tmp_path: Path, settings: dict[str, Any], error: type[CalibayesError], message: str
) -> None:
    source = write_csv(tmp_path / "in.csv", [[*row, "1"] for row in rows(9)], (*HEADER, "p_value"))
    with pytest.raises(error, match=message):
        predict_file(table_model(), source, tmp_path / "out.csv", **settings)
    with pytest.raises(DataError, match=r"ends in .csv or .parquet"):
        predict_file(table_model(), source, tmp_path / "out.xlsx")


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        (["small", ""], "6 rows without a class in 'kind' that the model knows: remove them before calibayes evaluate."),
        (["small", "tiny"], "6 rows without a class in 'kind' that the model knows, like 'tiny': remove"),
        (["", ""], "12 rows without a class"),
    ],
)
def test_labels_that_evaluate_would_refuse_are_told(tmp_path: Path, labels: list[str], told: str) -> None:
    body = [[*row[:3], labels[place % 2]] for place, row in enumerate(rows(12))]
    said: list[str] = []
    done = predict_file(table_model(), write_csv(tmp_path / "in.csv", body), tmp_path / "out.csv", say=said.append)
    assert not done.labelled
    assert len(said) == 1
    assert told in said[0]


def test_categories_that_training_has_not_seen_are_told_if_they_are_most(tmp_path: Path) -> None:
    for strange, notes in ((7, 1), (4, 0)):
        body = [["1.0", "rot" if place < strange else "red", "2024-01-05", "small"] for place in range(10)]
        said: list[str] = []
        predict_file(table_model(), write_csv(tmp_path / "in.csv", body), tmp_path / "out.csv", say=said.append)
        assert [line for line in said if "Most cells of column 'colour'" in line and "'rot'" in line] == said
        assert len(said) == notes
