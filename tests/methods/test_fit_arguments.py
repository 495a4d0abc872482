"""What doors share: networks for members, and whose optimiser is used."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import calibayes as cb
from calibayes.methods.fit_arguments import fit_arguments, member_networks, prediction_passes, prepared_network
from calibayes.networks import MLP
from calibayes.posterior.ensemble import member_seed
from calibayes.randomness import seeded


def linear(seed: int) -> nn.Module:
    with seeded(seed):
        return nn.Linear(4, 3)


def test_members_have_the_networks_of_their_seeds() -> None:
    posterior = cb.build("ensemble", member_networks(linear, 7), members=3).posterior
    assert isinstance(posterior, cb.Ensemble)
    for index, member in enumerate(posterior.members):
        wanted = linear(member_seed(7, index)).weight
        assert torch.equal(member.network().weight, wanted)  # type: ignore[arg-type]
    alone = cb.build("fnn", member_networks(linear, 7)).posterior
    torch.manual_seed(7)
    assert isinstance(alone, cb.Point)
    assert torch.equal(alone.network().weight, nn.Linear(4, 3).weight)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("method", "settings", "own"),
    [
        ("fnn", {}, True),
        ("ensemble", {}, True),
        ("fnn", {"weight_decay": 0.1}, False),
        ("natural-gradient", {}, False),
    ],
)
def test_a_door_keeps_its_optimiser_unless_the_method_needs_another(method: str, settings: dict[str, float], own: bool) -> None:
    plan = cb.build(method, nn.Linear(4, 3), **settings)
    result = fit_arguments(plan, optimizer=torch.optim.SGD, samples=1)
    assert (result["optimizer"] is torch.optim.SGD) == own
    assert result["samples"] == 1


def test_other_needs_of_a_method_win() -> None:
    result = fit_arguments(cb.build("ema", nn.Linear(4, 3)), optimizer=torch.optim.SGD)
    assert result["averaging"] == cb.EMA(0.99)


def test_dropout_is_put_before_the_last_layer_where_a_method_needs_it() -> None:
    net, x = MLP(4, [8, 8], 3), torch.randn(5, 4)
    assert prepared_network("fnn", net) is net
    result = prepared_network("mc-dropout", net)
    assert [name for name, part in result.named_modules() if isinstance(part, nn.Dropout)] == ["layers.4.0"]
    assert torch.equal(result.eval()(x), net(x))
    assert prepared_network("mc-dropout", result) is result
    assert isinstance(prepared_network("mc-dropout", nn.Linear(4, 3)), nn.Sequential)


def test_passes_are_the_networks_that_predict() -> None:
    for method, settings in (("fnn", {}), ("bnn", {}), ("ensemble", {"members": 3}), ("mixture", {"members": 3})):
        posterior = cb.build(method, nn.Linear(4, 3), **settings).posterior
        samples = 7 if posterior.random else None
        kept = cb.predict(posterior, torch.randn(2, 4), samples=samples, keep_samples=True).samples
        assert kept is not None
        assert prediction_passes(posterior, 7) == len(kept)
