"""Exported files against `calibayes.predict`, for every posterior, in both formats."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal
from zipfile import ZipFile

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import calibayes as cb
from calibayes.acting.guarantee_request import CostTable

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")
pytestmark = pytest.mark.onnx

X = torch.randn(40, 4, generator=torch.Generator().manual_seed(1))
Y = X[:, :3].argmax(-1)
NEW = torch.randn(33, 4, generator=torch.Generator().manual_seed(2))


def net(seed: int = 0, width: int = 8) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Dropout(0.3), nn.Linear(width, 3))


def swag() -> cb.Posterior:
    posterior = cb.SWAG(net(), start_epoch=1)
    cb.fit(posterior, (X, Y), cb.Objective(), epochs=4, batch_size=20)
    return posterior


def laplace() -> cb.Posterior:
    return cb.LastLayerLaplace.from_point(net(), (X, Y))


POSTERIORS: dict[str, Callable[[], cb.Posterior]] = {
    "point": lambda: cb.Point(net()),
    "mean-field": lambda: cb.MeanField(net(), init_std=0.3),
    "last layer": lambda: cb.MeanField(net(), init_std=0.3, where="3.*"),
    "swag": swag,
    "dropout": lambda: cb.MCDropout(net()),
    "distilled": lambda: cb.Distilled(net()),
    "laplace": laplace,
    "ensemble of points": lambda: cb.Ensemble([cb.Point(net(seed)) for seed in range(3)]),
    "ensemble of mean fields": lambda: cb.Ensemble([cb.MeanField(net(seed), init_std=0.3) for seed in range(3)]),
    "ensemble of last layers": lambda: cb.Ensemble([cb.MeanField(net(seed), where="3.*", init_std=0.3) for seed in range(2)]),
    "mixed ensemble": lambda: cb.Ensemble([cb.MCDropout(net(0)), cb.Point(net(1)), cb.Point(net(2)), cb.Point(net(3, 5))]),
}
QUICK = ("mean-field", "mixed ensemble")


def in_onnxruntime(path: Path, *inputs: Tensor) -> dict[str, Any]:
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    given = {each.name: tensor.numpy() for each, tensor in zip(session.get_inputs(), inputs, strict=True)}
    names = [each.name for each in session.get_outputs()]
    return dict(zip(names, session.run(None, given), strict=True))


def assert_agrees(found: dict[str, Any], predictive: cb.Predictive) -> None:
    for name in ("probs", "confidence", "epistemic", "aleatoric"):
        np.testing.assert_allclose(np.asarray(found[name]), getattr(predictive, name).detach().numpy(), atol=1e-5, err_msg=name)
    np.testing.assert_array_equal(np.asarray(found["decision"]), predictive.decision.numpy())


@pytest.mark.parametrize("kind", [kind if kind in QUICK else pytest.param(kind, marks=pytest.mark.slow) for kind in POSTERIORS])
def test_every_posterior(kind: str, tmp_path: Path) -> None:
    posterior = POSTERIORS[kind]()
    exported = cb.export(posterior, tmp_path / "model.onnx", X, samples=6, seed=3)
    random = any(member.random for member in posterior.members)
    expected = cb.predict(posterior, NEW, samples=6 if random else None, seed=3)
    assert exported.largest_difference <= 1e-5
    for rows in (1, 7, 33):
        found = in_onnxruntime(exported.path, NEW[:rows])
        of_rows = cb.predict(posterior, NEW[:rows], samples=6 if random else None, seed=3)
        assert_agrees(found, of_rows)
        np.testing.assert_allclose(found["probs"], expected.probs[:rows].numpy(), atol=1e-5)
    assert not found["abstain"].any()


@pytest.mark.parametrize("kind", ["mixed ensemble", pytest.param("mean-field", marks=pytest.mark.slow)])
def test_torch_export(kind: str, tmp_path: Path) -> None:
    posterior = POSTERIORS[kind]()
    exported = cb.export(posterior, tmp_path / "model.pt2", X, samples=6)
    files = {"calibayes": "", "card": ""}
    module = torch.export.load(exported.path, extra_files=files).module()
    assert_agrees({name: value.numpy() for name, value in module(NEW).items()}, cb.predict(posterior, NEW, samples=6))
    assert_agrees({name: value.numpy() for name, value in module(NEW[:1]).items()}, cb.predict(posterior, NEW[:1], samples=6))
    assert '"classes"' in files["calibayes"]
    with ZipFile(exported.path) as archive:
        assert not [name for name in archive.namelist() if b"calibayes/exporting" in archive.read(name)]  # no paths


def test_laplace_without_samples(tmp_path: Path) -> None:
    posterior = laplace()
    exported = cb.export(posterior, tmp_path / "model.onnx", X, samples="closed-form")
    assert_agrees(in_onnxruntime(exported.path, NEW), cb.predict(posterior, NEW, samples="closed-form"))


def test_samples_are_stacked_and_the_backbone_is_stored_once(tmp_path: Path) -> None:
    big = nn.Sequential(nn.Linear(4, 300), nn.Tanh(), nn.Linear(300, 300), nn.Tanh(), nn.Linear(300, 3))
    last = cb.MeanField(big, init_std=0.1, where="4.*")
    sizes, nodes = {}, {}
    for samples in (2, 12):
        path = cb.export(last, tmp_path / f"{samples}.onnx", X, samples=samples).path
        sizes[samples], nodes[samples] = path.stat().st_size, len(onnx.load(path).graph.node)
    head = 4 * (300 * 3 + 3)
    assert abs(nodes[2] - nodes[12]) < 5  # small constants are folded
    assert abs(sizes[12] - sizes[2] - 10 * head) < 4_000
    products = [node for node in onnx.load(path).graph.node if node.op_type in ("MatMul", "Gemm")]
    shapes = [tuple(each.dims) for each in onnx.load(path).graph.initializer]
    assert len(products) == 3
    assert shapes.count((300, 300)) == 1


@pytest.mark.parametrize("score", ["raps", *(pytest.param(name, marks=pytest.mark.slow) for name in ("aps", "lac"))])
def test_scaling_threshold_and_sets(score: Literal["aps", "raps", "lac"], tmp_path: Path) -> None:
    posterior = cb.Ensemble([cb.Point(net(seed)) for seed in range(3)])
    probs = cb.predict(posterior, X).probs
    scaling = cb.posthoc.TemperatureScaling.of(0.2, classes=3)
    scaled = scaling.transform(probs)
    threshold = cb.acting.Threshold(float(scaled.amax(-1).median()), 0.9, 0.9, 40, 20, 0)
    sets = cb.acting.PredictionSets.fit(scaled, Y, coverage=0.8, score=score)
    exported = cb.export(posterior, tmp_path / "model.onnx", X, posthoc=scaling, threshold=threshold, sets=sets)
    found = in_onnxruntime(exported.path, NEW)
    expected = scaling.transform(cb.predict(posterior, NEW).probs)
    np.testing.assert_allclose(found["probs"], expected.numpy(), atol=1e-5)
    np.testing.assert_array_equal(found["abstain"], ~threshold.answers(expected.amax(-1)).numpy())
    inside = sets.predict(expected).numpy()
    gap = (sets.score.of_classes(expected.double()) - sets.thresholds).abs().numpy()
    assert (found["set"] >= inside).all()  # rows that tie with the threshold stay in
    np.testing.assert_array_equal(found["set"][gap > 2e-6], inside[gap > 2e-6])
    assert 0 < found["abstain"].sum() < len(NEW)
    assert found["set"].sum(1).min() >= 1


def constant(logits: Tensor) -> cb.Posterior:
    """The same prediction for every row."""

    class Constant(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.logits = nn.Parameter(logits)

        def forward(self, x: Tensor) -> Tensor:
            return self.logits + 0 * x[:, :1]

    return cb.Point(Constant())


def test_rows_without_probabilities_are_never_decided(tmp_path: Path) -> None:
    posterior = cb.Point(net())
    probs = cb.predict(posterior, X).probs
    missing = torch.cat([NEW[:1], torch.full_like(NEW[:1], torch.nan)])
    costs = CostTable(("a", "b"), ((0.0, 1.0, 2.0), (3.0, 0.0, 0.0)), 3.0)  # abstaining costs most
    rules: list[dict[str, Any]] = [
        {"threshold": 0.01},
        {"sets": cb.acting.PredictionSets.fit(probs, Y, coverage=0.5)},
        {"sets": cb.acting.PredictionSets.fit(probs, Y, coverage=0.5, score="aps")},
        {"costs": costs},
    ]
    for rule in rules:
        found = in_onnxruntime(cb.export(posterior, tmp_path / "model.onnx", X, **rule).path, missing)
        assert found["abstain"].tolist() == [False, True]
        if "sets" in rule:
            assert found["set"][1].all()


@pytest.mark.parametrize("kind", [".pt2", pytest.param(".onnx", marks=pytest.mark.slow)])
@pytest.mark.parametrize("score", ["aps", "raps", "top-k"])
def test_equally_probable_classes_keep_their_order_in_sets(
    score: Literal["aps", "raps", "top-k"], kind: str, tmp_path: Path
) -> None:
    # Some classes are equally probable, and the last ones, at zero in float32, impossible.
    posterior = constant(torch.tensor([1.0] * 3 + [0.0] * 3 + [-200.0] * 14))
    probs = cb.predict(posterior, X).probs
    for label in (1, 11):
        sets = cb.acting.PredictionSets.fit(probs, torch.full((len(X),), label), coverage=0.5, score=score)
        path = cb.export(posterior, tmp_path / f"model{kind}", X, sets=sets).path
        found = in_onnxruntime(path, X)["set"] if kind == ".onnx" else torch.export.load(path).module()(X)["set"].numpy()
        if score != "aps":  # there the score of all impossible classes is 1
            assert found[0].tolist() == [place <= label for place in range(20)]


def test_numbers_keep_all_of_their_digits(tmp_path: Path) -> None:
    posterior = constant(-0.001 * torch.arange(1000.0))
    sets = cb.acting.PredictionSets.fit(cb.predict(posterior, X).probs, torch.full((len(X),), 900), coverage=0.5, score="raps")
    found = in_onnxruntime(cb.export(posterior, tmp_path / "model.onnx", X, sets=sets).path, X)["set"]
    assert found[0].tolist() == [place <= 900 for place in range(1000)]  # the penalty of rank 900 is 90

    for place in range(1, 100):  # find a confidence that is just above a threshold, but below it in float32
        posterior = constant(torch.tensor([0.01 * place, 0.0]))
        confidence = float(cb.predict(posterior, X, dtype=torch.float64).confidence[0])
        threshold = confidence - 1e-10
        if float(np.float32(threshold)) > confidence + 1e-10:
            break
    assert float(np.float32(threshold)) > confidence
    found = in_onnxruntime(cb.export(posterior, tmp_path / "model.onnx", X, threshold=threshold).path, X)
    assert not found["abstain"].any()


@pytest.mark.parametrize(
    "scaling",
    [
        cb.posthoc.PlattScaling(),
        cb.posthoc.QuadraticScaling(),
        cb.posthoc.VectorScaling(),
        cb.posthoc.StructuredMatrixScaling(),
        cb.posthoc.IsotonicScaling(),
        cb.posthoc.VennAbersScaling(),
        cb.posthoc.AutoScaling(),
        cb.posthoc.NoScaling(),
    ],
    ids=lambda each: type(each).__name__,
)
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::calibayes.posthoc.PosthocWarning")
def test_every_scaling(scaling: cb.posthoc.Scaling, tmp_path: Path) -> None:
    two = nn.Linear(4, 2)
    posterior = cb.Point(two)
    probs = cb.predict(posterior, X).probs.double()
    scaling.fit(probs, (X[:, 0] + X[:, 1] > 0).long())
    exported = cb.export(posterior, tmp_path / "model.pt2", NEW, posthoc=scaling)
    found = torch.export.load(exported.path).module()(NEW)
    expected = scaling.transform(cb.predict(posterior, NEW, dtype=torch.float64).probs)
    np.testing.assert_allclose(found["probs"].numpy(), expected.numpy(), atol=1e-5)


class Setting(nn.Module):
    """A network with settings that no list of its layers shows."""

    def __init__(self, seed: int, function: Callable[[Tensor], Tensor], factor: float) -> None:
        super().__init__()
        self.layer = net(seed)
        self.function, self._factor = function, factor

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.layer(self.function(x)) * self._factor
        return logits


@pytest.mark.parametrize(("second", "stacks"), [((torch.tanh, 1.0), 1), ((torch.relu, 1.0), 2), ((torch.tanh, 3.0), 2)])
def test_members_with_other_settings_are_not_stacked(second: tuple[Any, float], stacks: int, tmp_path: Path) -> None:
    posterior = cb.Ensemble([cb.Point(Setting(0, torch.tanh, 1.0)), cb.Point(Setting(1, *second))])
    path = cb.export(posterior, tmp_path / "model.onnx", X).path
    assert_agrees(in_onnxruntime(path, NEW), cb.predict(posterior, NEW))
    assert len([node for node in onnx.load(path).graph.node if node.op_type in ("MatMul", "Gemm")]) == 2 * stacks
