"""What `calibayes.export` takes and refuses: inputs of several names, and errors that say why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.exporting.test_export_posterior import NEW, X, Y, assert_agrees, in_onnxruntime, net
from torch import Tensor, nn

import calibayes as cb
from calibayes.errors import DataError, ExportError, InvalidArgumentError

for package in ("onnx", "onnxscript", "onnxruntime"):
    pytest.importorskip(package)
pytestmark = pytest.mark.onnx


def test_several_inputs_by_name(tmp_path: Path) -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(4, 3), nn.Linear(2, 3)

        def forward(self, a: Tensor, b: Tensor) -> Tensor:
            logits: Tensor = self.first(a) + self.second(b)
            return logits

    posterior = cb.MeanField(Two(), init_std=0.3)
    inputs = {"a": X, "b": X[:, :2].contiguous()}
    path = cb.export(posterior, tmp_path / "model.onnx", inputs, samples=4).path
    found = in_onnxruntime(path, inputs["a"], inputs["b"])
    assert_agrees(found, cb.predict(posterior, inputs, samples=4))


def test_scores_of_inputs_in_another_order(tmp_path: Path) -> None:
    class Difference(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 3)

        def forward(self, a: Tensor, b: Tensor) -> Tensor:
            logits: Tensor = self.layer(a - 2 * b)
            return logits

    posterior, other = cb.Point(Difference()), X.flip(0).contiguous()
    decision = cb.predict(posterior, {"a": X, "b": other}).decision
    exported = cb.export(posterior, tmp_path / "m.pt2", {"a": X, "b": other}, validation=({"b": other, "a": X}, decision))
    assert "| accuracy | 1.0000 |" in exported.card.read_text()
    with pytest.raises(InvalidArgumentError, match=r"names \['a', 'b'\], but got \['a'\]"):
        cb.export(posterior, tmp_path / "m.pt2", {"a": X, "b": other}, validation=({"a": X}, decision))


def test_inputs_with_a_gradient(tmp_path: Path) -> None:
    path = cb.export(cb.Point(net()), tmp_path / "model.onnx", X.clone().requires_grad_()).path
    assert_agrees(in_onnxruntime(path, NEW), cb.predict(cb.Point(net()), NEW))


class FixedRows(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.layer(x).reshape(len(x), 3)
        return logits


class FortyRows(FixedRows):
    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.layer(x).reshape(40, 3)
        return logits


class ByValue(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.layer(x) if float(x.sum()) > 0 else self.layer(-x)
        return logits


@pytest.mark.parametrize(
    ("network", "hint"), [(FixedRows(), "x.shape"), (FortyRows(), "not the first"), (ByValue(), "torch.where")]
)
def test_what_cannot_be_exported_says_why(
    network: nn.Module, hint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ExportError, match=hint):
        cb.export(cb.Point(network), tmp_path / "model.onnx", X)
    assert not list(tmp_path.iterdir())
    assert capsys.readouterr() == ("", "")


def test_inputs_that_do_not_fit_the_network_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"does not fit inputs of shape \[\d+, 2\]"):
        cb.export(cb.Point(net()), tmp_path / "model.onnx", X[:, :2])


def test_refusals(tmp_path: Path) -> None:
    posterior = cb.Point(net())
    with pytest.raises(InvalidArgumentError, match=r"\.onnx or \.pt2"):
        cb.export(posterior, tmp_path / "model.txt", X)
    with pytest.raises(InvalidArgumentError, match="labelled rows"):
        cb.export(posterior, tmp_path / "model.onnx", X, int8=True)
    with pytest.raises(InvalidArgumentError, match="class_names"):
        cb.export(posterior, tmp_path / "model.onnx", X, class_names=["a"])
    for last, message in (("a", "'a' is there more than once"), ("\ud800", "half a character")):
        with pytest.raises(InvalidArgumentError, match=message):
            cb.export(posterior, tmp_path / "model.onnx", X, class_names=["a", "b", last])
    with pytest.raises(ExportError, match="does not agree"):
        cb.export(posterior, tmp_path / "model.onnx", 1e3 * X, tolerance=1e-12)
    two = torch.full((40, 2), 0.5)
    threshold = cb.acting.certify_class_thresholds(two, Y.clamp_max(1))
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"threshold": threshold}, "`threshold` is for 2"),
        ({"sets": cb.acting.PredictionSets.fit(two, Y.clamp_max(1), by_class=True)}, "`sets` is for 2"),
        ({"threshold": "0.9"}, "`threshold` to be certified"),
        ({"posthoc": 1.3}, "`posthoc` to be a fitted scaling"),
    ]
    for settings, message in wrong:
        with pytest.raises(InvalidArgumentError, match=message):
            cb.export(posterior, tmp_path / "model.onnx", X, **settings)
    with pytest.raises(cb.posthoc.NotFittedError, match="VectorScaling"):
        cb.export(posterior, tmp_path / "model.onnx", X, posthoc=cb.posthoc.VectorScaling())
    with pytest.raises(InvalidArgumentError, match="other than those of the outputs, but got 'probs'"):
        cb.export(posterior, tmp_path / "model.onnx", {"probs": X})
    groups = cb.acting.conformal_sets(cb.predict(posterior, X).probs, Y, 0.5, per="group", groups=["a", "b"] * 20)
    with pytest.raises(ExportError, match="groups"):
        cb.export(posterior, tmp_path / "model.onnx", X, sets=groups)
    assert not list(tmp_path.iterdir())
