"""Models of files as exported files, for every network."""

from __future__ import annotations

import csv
import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.exporting.models import NETWORKS, model_of, random_network, random_trees
from tests.files.made import rows, write_csv

from calibayes.errors import DataError, ExportError, InvalidArgumentError
from calibayes.exporting import export_model
from calibayes.exporting.graph_files import runner
from calibayes.exporting.int8 import quantized
from calibayes.exporting.reader import Classifier
from calibayes.exporting.rows_to_check import generated_rows
from calibayes.files import Model, predict_file
from calibayes.files.training import train
from calibayes.networks.boosted_trees import BoostedTrees
from calibayes.tables import TableOptions

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")
pytestmark = pytest.mark.onnx

QUICK = ("table-network", "text-network", "small-cnn")


@pytest.mark.parametrize("name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in NETWORKS])
def test_every_network(name: str, tmp_path: Path) -> None:
    model = model_of([random_network(name, seed) for seed in range(2)], NETWORKS[name][0])
    done = export_model(model, tmp_path / "model.onnx")  # raises where it does not agree
    assert done.rows >= 32
    assert done.largest_difference <= 1e-5
    graph = onnx.load(done.path).graph
    sizes = [[size.dim_param for size in each.type.tensor_type.shape.dim] for each in (*graph.input, *graph.output)]
    assert all(names[0] == "n" and not any(names[1:]) for names in sizes)


def test_trees_of_different_sizes_are_stacked_beside_networks(tmp_path: Path) -> None:
    networks = [
        random_trees(0),
        random_trees(1, trees=9, depth=2),
        random_network("table-mlp", 0),
        random_network("table-mlp", 1),
    ]
    done = export_model(model_of(networks, NETWORKS["table-mlp"][0]), tmp_path / "model.onnx")
    assert done.largest_difference <= 1e-5
    assert isinstance(networks[0], BoostedTrees)
    shapes = [tuple(each.dims) for each in onnx.load(done.path).graph.initializer]
    assert b"calibayes/exporting" not in done.path.read_bytes()  # no paths of this machine
    assert 2 * 9 * 15 in [int(np.prod(shape)) for shape in shapes]  # the nodes of all trees of both members in one tensor


@pytest.fixture(scope="module")
def guaranteed(tmp_path_factory: pytest.TempPathFactory) -> Model:
    path = write_csv(tmp_path_factory.mktemp("data") / "data.csv", rows(400))
    settings: dict[str, Any] = {"scheme": "bnn", "epochs": 4, "hidden": [8], "folds": 2, "predictive_samples": 4}
    return train(path, target="kind", sets=0.9, certify="accuracy=0.9,certainty=0.8", **settings).model


def test_the_file_says_what_predict_says(guaranteed: Model, tmp_path: Path) -> None:
    data = write_csv(tmp_path / "new.csv", rows(150, seed=7))
    done = export_model(guaranteed, tmp_path / "model.onnx", check=data)
    assert done.outputs == ("probs", "decision", "abstain", "set", "outsider", "confidence", "epistemic", "aleatoric")
    predict_file(guaranteed, data, tmp_path / "out.csv")
    with data.open() as given, (tmp_path / "out.csv").open() as predicted:
        answers = Classifier(done.path).predict(list(csv.DictReader(given)))
        expected = list(csv.DictReader(predicted))
    assert {each["abstain"] for each in answers} == {True, False}
    for answer, row in zip(answers, expected, strict=True):
        assert (answer["decision"] or "") == row["decision"]
        assert str(answer["abstain"]).lower() == row["abstain"]
        assert "|".join(answer["set"]) == row["set"]
        for name in ("confidence", "epistemic", "aleatoric", "outsider"):
            assert answer[name] == pytest.approx(float(row[name]), abs=2e-5)
        for name in guaranteed.classes:
            assert answer["probs"][name] == pytest.approx(float(row[f"p_{name}"]), abs=2e-5)


def test_rows_that_are_the_same_have_the_same_place_among_known_ones(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    cells = np.stack([generator.choice(list(letters), 240) for letters in ("pqr", "st", "uv")], 1)
    kinds = np.where((cells[:, 0] == "p") + generator.random(240) > 0.7, "yes", "no")
    data = write_csv(
        tmp_path / "data.csv", [[*row, kind] for row, kind in zip(cells, kinds, strict=True)], ("a", "b", "c", "kind")
    )
    model = train(data, target="kind", scheme="fnn", epochs=3, folds=2, sets=0.9).model
    done = export_model(model, tmp_path / "model.onnx", check=data)
    predict_file(model, data, tmp_path / "out.csv")
    expected = [float(row["outsider"]) for row in _records(tmp_path / "out.csv")]
    assert [each["outsider"] for each in Classifier(done.path).predict(_records(data))] == pytest.approx(expected, abs=1e-5)


def test_cells_that_cannot_be_read_are_named(guaranteed: Model, tmp_path: Path) -> None:
    data = write_csv(tmp_path / "new.csv", rows(20, seed=7))
    name = next(column.name for column in guaranteed.coding.columns if column.kind == "number")  # type: ignore[union-attr]
    records = _records(data)
    records[4][name] = "abc"
    with data.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(records[0]))
        writer.writeheader()
        writer.writerows(records)
    with pytest.raises(DataError, match=f"line 6, column {name!r}"):
        export_model(guaranteed, tmp_path / "model.onnx", check=data)


def test_the_card_has_data_scores_reliability_and_settings(guaranteed: Model, tmp_path: Path) -> None:
    data = write_csv(tmp_path / "new.csv", rows(60, seed=8))
    done = export_model(guaranteed, tmp_path / "model.onnx", check=data)
    card = done.card.read_text()
    for heading in ("Data", "Method", "Scores", "Reliability", "Where it abstains", "The file", "To repeat it"):
        assert f"\n## {heading}\n" in card
    assert "Trained on 320 examples" in card
    assert "95 % interval" in card
    assert "accuracy of 90 % with certainty 80 %" in card
    assert 'certify = "accuracy=0.9,certainty=0.8"' in card
    properties = {each.key: each.value for each in onnx.load(done.path).metadata_props}
    assert properties["card"] == card
    abstained = sum(each["abstain"] for each in Classifier(done.path).predict(_records(data)))
    assert f"Of the rows given at export, it abstains on {abstained} of 60 ({abstained / 60:.1%}".replace("%", " %") in card


def test_the_card_says_if_every_row_is_left_without_a_decision(guaranteed: Model, tmp_path: Path) -> None:
    data = write_csv(tmp_path / "new.csv", rows(60, seed=8))
    card = export_model(guaranteed, tmp_path / "model.onnx", check=data, certify="accuracy=0.9999").card.read_text()
    assert "No threshold can be certified for an accuracy of 99.99 %" in card
    assert "\nSo it abstains on every row.\n" in card
    assert "it abstains on 60 of 60 (100.0 %)" in card


def test_the_settings_of_the_card_are_toml(tmp_path: Path) -> None:
    settings = {"target": "kind 🐝", "epochs": 3, "method_settings": {"note": "🐝"}}
    about = {"examples": 1, "settings": settings}
    model = model_of([random_network("table-linear", 0)], NETWORKS["table-linear"][0], about=about)
    (block,) = re.findall(r"```toml\n(.*?)```", export_model(model, tmp_path / "model.pt2").card.read_text(), flags=re.DOTALL)
    assert tomllib.loads(block) == settings


def test_8_bit_weights_are_measured(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "data.csv", rows(300))
    model = train(path, target="kind", scheme="fnn", epochs=4, hidden=[64, 64], folds=2).model
    done = export_model(model, tmp_path / "model.onnx", check=path, int8=True, int8_tolerance=0.05)
    assert done.int8 is not None
    weights = onnx.load(done.path).graph.initializer
    integers = sum(int(np.prod(each.dims)) for each in weights if each.data_type == onnx.TensorProto.INT8)
    every = sum(int(parameter.numel()) for parameter in model.posterior.parameters())
    assert integers > 0.8 * every
    assert done.int8.bytes_after < 0.6 * done.int8.bytes_before
    assert done.path.stat().st_size < done.int8.bytes_before
    probs = [each["probs"]["large"] for each in Classifier(done.path).predict(_records(path))]
    exact = model.calibrated_probs(model.predict({name: [row[name] for row in _records(path)] for name in _records(path)[0]}))
    gap = np.abs(np.array(probs) - exact[:, model.classes.index("large")].numpy()).max()
    assert 0 < gap < 0.1
    assert "8-bit" in done.card.read_text()


def test_8_bit_weights_are_refused_where_they_cost_too_much(tmp_path: Path) -> None:
    model = model_of([random_network("table-mlp", 0)], NETWORKS["table-mlp"][0])
    path = export_model(model, tmp_path / "model.onnx").path
    rows = generated_rows(model, TableOptions())
    kept, effect = quantized(path.read_bytes(), [rows.tensor], torch.zeros(len(rows.tensor), dtype=torch.int64), 1.0)
    before, after = (runner(each, ".onnx")([rows.tensor])["probs"] for each in (path.read_bytes(), kept))
    unlucky = (after - before).argmin(-1)  # the class that loses most
    with pytest.raises(ExportError, match=r"cost more than the 0 that is allowed: NLL \d.*ECE.*accuracy"):
        quantized(path.read_bytes(), [rows.tensor], unlucky, 0.0)
    assert effect.rows == len(rows.tensor)


def test_trees_have_no_weights_to_make_smaller(tmp_path: Path) -> None:
    model = model_of([random_trees(0), random_trees(1)], NETWORKS["table-mlp"][0])
    path = export_model(model, tmp_path / "model.onnx").path
    rows = generated_rows(model, TableOptions())
    with pytest.raises(ExportError, match="matrices and convolutions"):
        quantized(path.read_bytes(), [rows.tensor], torch.zeros(len(rows.tensor), dtype=torch.int64), 1.0)


def test_8_bit_weights_need_labelled_rows(tmp_path: Path) -> None:
    model = model_of([random_network("table-mlp", 0)], NETWORKS["table-mlp"][0])
    with pytest.raises(InvalidArgumentError, match="labelled rows"):
        export_model(model, tmp_path / "model.onnx", int8=True)


def _records(path: Path) -> list[dict[str, str]]:
    with path.open() as stream:
        return list(csv.DictReader(stream))
