from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.posterior.zoo import CASES, FrozenBackbone, Tied, mlp, normalised
from torch import Tensor, nn

import calibayes as cb
from calibayes.errors import EmptySelectionError, InvalidArgumentError


def roles(posterior: cb.Point | cb.MeanField) -> dict[str, str]:
    return {choice.name: choice.role for choice in posterior.choices}


@pytest.mark.parametrize(
    ("where", "bayesian"),
    [
        (None, ["0.weight", "0.bias", "2.weight", "2.bias"]),
        ("2.*", ["2.weight", "2.bias"]),
        (["0.weight", "*.bias"], ["0.weight", "0.bias", "2.bias"]),
        (["*.weight", "2.weight"], ["0.weight", "2.weight"]),
        (lambda name, weight: weight.dim() == 1 and name.startswith("0"), ["0.bias"]),
    ],
)
def test_where(where: Any, bayesian: list[str]) -> None:
    net = mlp()
    posterior = cb.MeanField(net, where=where)
    assert [name for name, role in roles(posterior).items() if role == "bayesian"] == bayesian
    assert posterior.num_bayesian == sum(net.get_parameter(name).numel() for name in bayesian)
    first, second = posterior.sample(2).values(), posterior.mean().values()
    spread = {name: bool((a[0] != a[1]).any()) for name, a in zip(posterior.mean(), first, strict=True)}
    assert {name for name, varies in spread.items() if varies} == set(bayesian)
    assert all(torch.equal(a[0], b) for a, b, varies in zip(first, second, spread.values(), strict=True) if not varies)


def test_normalisation_layers_are_points_unless_chosen() -> None:
    class Renamed(nn.BatchNorm1d):
        pass

    net = nn.Sequential(normalised(), Renamed(3), nn.RMSNorm(3))
    norms = ["0.1.weight", "0.1.bias", "0.2.weight", "0.2.bias", "0.6.weight", "0.6.bias", "1.weight", "1.bias", "2.weight"]
    assert [name for name, role in roles(cb.MeanField(net)).items() if role == "point"] == norms
    assert roles(cb.MeanField(net, where="0.6.*"))["0.6.weight"] == "bayesian"


def test_frozen_parameters_are_frozen_whatever_is_chosen() -> None:
    posterior = cb.MeanField(FrozenBackbone(), where=lambda name, _: True)
    assert {name for name, role in roles(posterior).items() if role == "frozen"} == {
        name for name in roles(posterior) if name.startswith("backbone")
    }
    assert posterior.num_bayesian == 6 * 3 + 3


@pytest.mark.parametrize("kind", [cb.Point, cb.MeanField])
def test_a_frozen_backbone_keeps_its_bits(kind: Any) -> None:
    net, case = FrozenBackbone(), CASES["frozen backbone"]
    net.backbone[1].get_buffer("running_mean").add_(0.1)
    posterior = kind(net)
    cb.fit(posterior, case.data(), cb.Objective(), epochs=3, batch_size=4, samples=3)
    trained = posterior.network()
    assert not any(p.requires_grad for p in trained.backbone.parameters())
    for name, tensor in net.backbone.state_dict().items():
        assert torch.equal(trained.backbone.state_dict()[name], tensor), name
    assert not torch.equal(trained.head.weight, net.head.weight)


def test_tied_weights_count_once_and_stay_tied() -> None:
    net = Tied()
    posterior = cb.MeanField(net)
    assert posterior.num_bayesian == 16 + 4 + 4 + 12 + 3
    sample = posterior.sample(2)
    for name in ("second.weight", "again.weight"):
        assert torch.equal(sample["first.weight"], sample[name])
    cb.fit(posterior, CASES["tied"].data(), cb.Objective(), epochs=1)
    trained = posterior.network()
    assert isinstance(trained, Tied)
    assert trained.first.weight is trained.second.weight
    assert trained.again is trained.second
    assert trained.same_norm is trained.norm


def test_a_pattern_for_any_name_of_a_tied_weight_chooses_it() -> None:
    assert cb.MeanField(Tied(), where="again.weight").num_bayesian == 16


def test_audit_has_a_row_for_every_parameter(capsys: pytest.CaptureFixture[str]) -> None:
    net = nn.ModuleDict({"tied": Tied(), "frozen": FrozenBackbone()})
    posterior = cb.MeanField(net, where=["tied.*", "frozen.head.weight"])
    posterior.audit()
    lines = capsys.readouterr().out.splitlines()
    rows = {line.split()[0]: line for line in lines[2:-1]}
    assert rows.keys() == dict(net.named_parameters()).keys()
    for name, expected in {
        "tied.first.weight": ["4×4", "16", "bayesian", "matches 'tied.*'; tied with tied.second.weight, tied.again.weight"],
        "frozen.head.weight": ["3×6", "18", "bayesian", "matches 'frozen.head.weight'"],
        "frozen.head.bias": ["3", "3", "point", "not chosen by `where`"],
        "frozen.backbone.0.weight": ["6×4", "24", "frozen", "requires_grad is False"],
    }.items():
        assert rows[name].split(maxsplit=4) == [name, *expected]
    numbers = {role: sum(c.shape.numel() for c in posterior.choices if c.role == role) for role in ("point", "frozen")}
    assert lines[-1] == f"{posterior.num_bayesian} Bayesian, {numbers['point']} point, {numbers['frozen']} frozen weights"


def test_audit_of_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    cb.MeanField(normalised()).audit()
    cb.Point(normalised()).audit()
    first, second = capsys.readouterr().out.split("frozen weights")[:2]
    assert "normalisation layer (BatchNorm2d)" in first
    assert "normalisation layer (LayerNorm)" in first
    assert "bayesian" not in second


def nothing(_: str, __: Tensor) -> bool:
    return False


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("3.*", r"`where` pattern '3\.\*' matches no trainable parameter of 0.weight, 0.bias, 2.weight, 2.bias"),
        (["0.*", "out.weight"], "pattern 'out.weight' matches no trainable parameter"),
        ([], r"No parameter is Bayesian with `where=\[\]`.*use `Point`"),
        (nothing, "No parameter is Bayesian.*the network has 0.weight"),
    ],
)
def test_an_empty_selection_is_explained(where: Any, message: str) -> None:
    with pytest.raises(EmptySelectionError, match=message):
        cb.MeanField(mlp(), where=where)


@pytest.mark.parametrize("kind", [cb.Point, cb.MeanField])
@pytest.mark.parametrize("net", [mlp().requires_grad_(False), nn.ReLU()])
def test_nothing_to_train(kind: Any, net: nn.Module) -> None:
    with pytest.raises(EmptySelectionError, match=r"no trainable parameter\. Did you freeze everything"):
        kind(net)


def test_normalisation_alone_has_nothing_bayesian() -> None:
    with pytest.raises(EmptySelectionError, match="No parameter is Bayesian with `where=None`; the network has weight, bias"):
        cb.MeanField(nn.LayerNorm(3))


@pytest.mark.parametrize("where", [3, ["0.*", 1], {"0.*": 1}])
def test_a_selection_of_another_type_is_quoted(where: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"`where` to be a glob pattern, a list of them, or a function.*but got"):
        cb.MeanField(mlp(), where=where)
