from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.posterior.zoo import SeveralInputs, normalised
from torch import nn

import calibayes as cb
from calibayes.errors import DataError
from calibayes.predictive import samples_for

kinds = pytest.mark.parametrize("kind", [cb.Point, cb.MeanField])


def modes(net: nn.Module) -> list[bool]:
    return [part.training for part in net.modules()]


@kinds
def test_parts_keep_the_modes_they_were_given_in(kind: Any) -> None:
    net = normalised()
    net[1].eval()  # type: ignore[index]
    posterior = kind(net)
    assert modes(posterior.network()) == modes(net)
    cb.predict(posterior, torch.randn(3, 2, 3, 3), samples=samples_for(posterior, 2))
    assert modes(posterior.network()) == modes(net)
    assert modes(posterior.eval().network()) == modes(net.eval())
    net.train()
    net[1].eval()  # type: ignore[index]
    assert modes(posterior.train().network()) == modes(net)


class Wrapped(nn.Module):
    """A network that was loaded in evaluation mode, and a new head."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Dropout(0.5)).eval()
        self.quiet = nn.Dropout(0.5).eval()
        self.head = nn.Linear(6, 3)


@kinds
def test_a_loaded_network_with_a_new_head_is_trained_with_its_dropout(kind: Any) -> None:
    network = kind(Wrapped()).train().network()
    norm = network.loaded[1]
    assert [part for part in network.modules() if not part.training] == [norm, network.quiet]


@kinds
@pytest.mark.parametrize("trained", [False, True])
def test_adapters_put_into_a_frozen_network_bring_its_dropout_with_them(kind: Any, trained: bool) -> None:
    """As in peft: the innermost parts are new and trained, what is around them is as it was loaded."""
    net = Wrapped()
    net.loaded.requires_grad_(False)
    if trained:
        net.loaded[0].add_module("adapter", nn.Linear(2, 2))
    network = kind(net).train().network()
    loaded = [part for part in network.loaded.modules() if not part.training]
    assert loaded == ([network.loaded[1]] if trained else list(network.loaded.modules()))


@kinds
def test_modes_come_back_after_an_error(kind: Any) -> None:
    posterior = kind(normalised()).train()
    with pytest.raises(DataError, match="does not fit inputs of shape"):
        cb.predict(posterior, torch.randn(3, 1, 3, 3))
    assert posterior.training
    assert all(modes(posterior.network()))


@kinds
def test_forward_takes_what_the_network_takes(kind: Any) -> None:
    net = SeveralInputs()
    posterior, a, b = kind(net), torch.randn(5, 4), torch.randn(5, 2)
    for result in (posterior(a, b), posterior(a, b=b), posterior(b=b, a=a)):
        assert torch.equal(result, net(a, b))


@kinds
def test_weights_given_to_a_posterior_are_copies(kind: Any) -> None:
    """Neither side sees what the other does to its weights, even where there is one weight alone."""
    net = nn.Linear(4, 3, bias=False)
    before = net.weight.detach().clone()
    posterior = kind(net)
    with torch.no_grad():
        next(posterior.parameters()).zero_()
        assert torch.equal(net.weight, before)
        built = posterior.network()
        built.weight.fill_(1.0)
        assert not bool(posterior.mean()["weight"].any())


@kinds
def test_a_mode_that_is_set_rather_than_called_for_is_heard(kind: Any) -> None:
    """As Lightning does after validation: it gives every module the `training` back that it had."""
    posterior, x = kind(nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.5))), torch.randn(20, 4)
    before = {name: part.training for name, part in posterior.named_modules()}
    posterior.eval()
    quiet = posterior(x)
    assert not bool((quiet == 0).any())
    for name, part in posterior.named_modules():
        part.training = before[name]
    assert bool((posterior(x) == 0).any())
    posterior.training = False
    assert torch.equal(posterior(x), quiet)


def test_parts_in_evaluation_mode_stay_so_in_a_posterior_from_a_point() -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    net[1].eval()
    data = torch.randn(20, 3), torch.arange(20) % 2
    point = cb.Point(net)
    cb.fit(point, data, cb.Objective(), epochs=1)
    further = cb.MeanField.from_point(point)
    cb.fit(further, data, cb.Objective(), epochs=1)
    assert torch.equal(further.buffer_values()["1.running_mean"], torch.zeros(4))
