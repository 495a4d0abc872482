"""Methods by name: each builds something that `fit` can train, and anyone can register one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import calibayes as cb
from calibayes.errors import InvalidArgumentError, UnsupportedNetworkError
from calibayes.methods import Method, MethodSettings, Plan, method_named, register_method, registry


def data() -> tuple[Tensor, Tensor]:
    x = torch.randn(80, 4)
    return x, x[:, :3].argmax(-1)


def net() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 3))


@pytest.fixture
def registered() -> Iterator[dict[str, Any]]:
    """The registry, which is left as it was."""
    before = dict(registry._REGISTERED)
    yield registry._REGISTERED
    registry._REGISTERED.clear()
    registry._REGISTERED.update(before)


@pytest.mark.parametrize("method", cb.NETWORK_METHODS)
def test_every_method_learns(method: str) -> None:
    x, y = data()
    prior = {"prior_std": 0.5} if method_named(method).has("prior_std") else {}  # the paper's is too narrow for 80 examples
    rate = {"natural_rate": 0.1} if method_named(method).has("natural_rate") else {}  # there are 48 steps
    posterior, objective, settings = cb.build(method, net(), learning_rate=0.02, **prior, **rate)
    cb.fit(posterior, (x, y), objective, epochs=12, batch_size=20, **settings)
    predictive = cb.predict(posterior, x)
    torch.testing.assert_close(predictive.probs.sum(-1), torch.ones(80))
    assert cb.metrics.accuracy(predictive.probs, y) > 0.5, method


def test_the_papers_schemes_are_methods() -> None:
    assert set(cb.SCHEMES) <= set(cb.NETWORK_METHODS)
    for scheme in cb.SCHEMES:
        posterior, objective, _ = cb.build(scheme, net())
        assert posterior.kind == ("mean-field" if scheme.endswith("bnn") else "point")
        (term,) = objective.terms
        assert (term.weight(0, 1) > 0) == scheme.startswith("ca-")


@pytest.mark.parametrize("method", cb.NETWORK_METHODS)
def test_every_method_takes_the_calibration_term_and_the_regularised_settings(method: str) -> None:
    settings = {"lam": 3.0, "weight_decay": 0.1, **({} if method == "swag" else {"ema": 0.9})}
    posterior, objective, fit = cb.build(method, net(), **settings)
    assert objective.terms[0].weight(0, 1) == 3.0
    cb.fit(posterior, data(), objective, epochs=4, batch_size=20, **fit)


def test_decay_is_on_the_means_alone() -> None:
    posterior, _, fit = cb.build("bnn", net(), weight_decay=0.1)
    groups = fit["optimizer"](posterior.parameter_groups()).param_groups
    assert {group["name"].rpartition(".")[2]: group["weight_decay"] for group in groups} == {"mu": 0.1, "rho": 0.0}


def test_members_have_their_own_initial_weights_and_the_same_seed_gives_them_again() -> None:
    built = net()
    (one, _, _), (other, _, _) = (cb.build("ensemble", built, members=3) for _ in range(2))
    first, second, _ = (member.mean()["0.weight"] for member in one.members)
    assert torch.equal(first, built[0].weight)  # type: ignore[index]
    assert not torch.equal(first, second)
    for mine, theirs in zip(one.parameters(), other.parameters(), strict=True):
        assert torch.equal(mine, theirs)
    alike, _, _ = cb.build("ensemble", built, members=2, reinitialize=False)
    assert torch.equal(alike.members[1].mean()["0.weight"], first)


def test_a_function_makes_the_networks() -> None:
    posterior, _, _ = cb.build("mixture", net, members=2)
    assert not torch.equal(*(member.mean()["0.weight"] for member in posterior.members))


def test_members_that_cannot_be_initialised_are_refused() -> None:
    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(4, 3))

        def forward(self, x: Tensor) -> Tensor:
            return x @ self.weight

    with pytest.raises(UnsupportedNetworkError, match="Pass a function that makes the network"):
        cb.build("ensemble", Own())
    assert len(cb.build("ensemble", Own, members=2).posterior.members) == 2


def test_unknown_names_are_refused_with_the_closest() -> None:
    with pytest.raises(InvalidArgumentError, match="Did you mean 'ensemble'"):
        cb.build("ensembel", net())
    with pytest.raises(InvalidArgumentError, match="Did you mean 'members'"):
        cb.build("ensemble", net(), member=3)
    with pytest.raises(InvalidArgumentError, match="function that makes one, but got str"):
        cb.build("fnn", "net")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="averages the weights itself"):
        cb.build("swag", net(), ema=0.9)


@dataclass(frozen=True, kw_only=True)
class DoubledSettings(MethodSettings):
    factor: float = 2.0


def doubled(net: Any, settings: DoubledSettings) -> Plan:
    return Plan(cb.Point(net), settings.objective(), settings.fit())


DOUBLED: Method[DoubledSettings] = Method("doubled", "doubled", "A method of somebody else.", DoubledSettings, doubled)


def test_anyone_can_register_a_method(registered: dict[str, Any]) -> None:
    register_method(DOUBLED)
    register_method(DOUBLED)  # a cell of a notebook that is run again
    assert "doubled" in cb.METHODS
    assert method_named("doubled").setting_names()[-1] == "factor"
    posterior, objective, settings = cb.build("doubled", net(), factor=3.0)
    cb.fit(posterior, data(), objective, epochs=1, **settings)
    with pytest.raises(InvalidArgumentError, match="registered already"):
        register_method(Method("doubled", "another", "Another.", MethodSettings, doubled))
    with pytest.raises(InvalidArgumentError, match="Expected a Method"):
        register_method("doubled")  # type: ignore[arg-type]


def test_other_packages_register_by_an_entry_point(registered: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    entry = metadata.EntryPoint("doubled", f"{__name__}:DOUBLED", registry.GROUP)
    monkeypatch.setattr(metadata.EntryPoint, "load", lambda self: DOUBLED)
    monkeypatch.setattr(registry, "entry_points", lambda group: [entry] if group == registry.GROUP else [])
    monkeypatch.setattr(registry, "_loaded_plugins", False)
    assert "doubled" in cb.METHODS
