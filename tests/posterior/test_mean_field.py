from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from tests.posterior.zoo import CASES, Tied, mlp, normalised
from torch import Tensor, nn
from torch.distributions import Normal, kl_divergence

import calibayes as cb
from calibayes.errors import InvalidArgumentError
from calibayes.posterior.gaussian_group import GaussianGroup
from calibayes.predictive import samples_for

PRIORS = {"0.*": 0.2, "*.weight": 0.05, "*": 1.5}


def spread_out(posterior: cb.MeanField) -> cb.MeanField:
    """Every weight gets a mean and a standard deviation of its own."""
    with torch.no_grad():
        for group in posterior.groups:
            for vector in group.parameters():
                vector.add_(torch.randn_like(vector) * 0.3)
    return posterior


def reference_kl(posterior: cb.MeanField, prior_std: dict[str, float], prior_mean: dict[str, Tensor] | None = None) -> Tensor:
    """Weight by weight with torch.distributions; ``prior_std`` by full name."""
    terms = []
    for group in posterior.groups:
        if isinstance(group, GaussianGroup):
            means, widths = group.layout.views(group.mu), group.layout.views(group.rho.exp())
            for names in group.layout.names:
                name = names[0]
                centre = torch.zeros_like(means[name]) if prior_mean is None else prior_mean[name]
                terms.append(kl_divergence(Normal(means[name], widths[name]), Normal(centre, prior_std[name])).sum())
    return torch.stack(terms).sum()


SETTINGS: dict[str, dict[str, Any]] = {
    "one prior": {"prior_std": 0.05},
    "groups": {"prior_std": PRIORS},
    "part": {"prior_std": 0.3, "where": "2.*"},
    "initial": {"prior_std": PRIORS, "prior_mean": "initial"},
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS.keys())
def test_kl_and_its_gradient_are_those_of_torch_distributions(settings: dict[str, Any]) -> None:
    net = mlp().double()
    centres = {name: p.detach().clone() for name, p in net.named_parameters()} if "prior_mean" in settings else None
    posterior = spread_out(cb.MeanField(net, **settings))
    widths = {"0.weight": 0.2, "0.bias": 0.2, "2.weight": 0.05, "2.bias": 1.5}
    if not isinstance(settings["prior_std"], dict):
        widths = dict.fromkeys(widths, settings["prior_std"])
    result, expected = posterior.kl(), reference_kl(posterior, widths, centres)
    assert torch.allclose(result, expected, rtol=1e-12, atol=0)
    gaussian = [p for group in posterior.groups if isinstance(group, GaussianGroup) for p in group.parameters()]
    for one, other in zip(torch.autograd.grad(3 * result, gaussian), torch.autograd.grad(3 * expected, gaussian), strict=True):
        assert torch.allclose(one, other, rtol=1e-12, atol=1e-12)


def test_kl_counts_tied_weights_once() -> None:
    posterior = spread_out(cb.MeanField(Tied().double(), prior_std=0.1))
    widths = {choice.name: 0.1 for choice in posterior.choices}
    assert torch.allclose(posterior.kl(), reference_kl(posterior, widths), rtol=1e-12)


def test_kl_is_zero_at_the_prior_and_for_a_point() -> None:
    net = mlp().double()
    assert abs(float(cb.MeanField(net, prior_std=0.2, init_std=0.2, prior_mean="initial").kl().detach())) < 1e-12
    assert float(cb.Point(net).kl()) == 0
    assert not cb.Point(net).kl().requires_grad


def test_prior_mean_from_a_state_dict() -> None:
    net, other = mlp().double(), mlp().double()
    posterior = cb.MeanField(net, prior_mean=other.state_dict())
    widths = dict.fromkeys(other.state_dict(), 0.05)
    assert torch.allclose(posterior.kl(), reference_kl(posterior, widths, dict(other.state_dict())), rtol=1e-12)
    assert posterior.kl().dtype == torch.float64
    assert torch.allclose(posterior.to(torch.float32).kl().double(), reference_kl(posterior, widths, dict(other.state_dict())))


def test_prior_std_by_pattern_gives_a_pair_of_vectors_each() -> None:
    posterior = cb.MeanField(mlp(), prior_std=PRIORS)
    names = [group["name"] for group in posterior.parameter_groups()]
    assert names == [f"{pattern}.{vector}" for pattern in PRIORS for vector in ("mu", "rho")]
    assert [group.prior_std for group in posterior.groups] == list(PRIORS.values())
    assert [group.mu.numel() for group in posterior.groups] == [4 * 6 + 6, 6 * 3, 3]  # type: ignore[operator]
    assert posterior.mu.shape == posterior.rho.shape == (51,)


def test_groups_have_their_own_learning_rates() -> None:
    """Under plain SGD a group with learning rate zero stays, and one with twice the rate goes twice as far."""
    case, starts = CASES["mlp"], {}
    data = case.data()
    moved = {}
    for rate in (0.01, 0.02):

        def factory(groups: list[dict[str, Any]], rate: float = rate) -> torch.optim.Optimizer:
            rates = {"0.*.mu": 0.0, "*.weight.mu": rate}
            return torch.optim.SGD([{**group, "lr": rates.get(group["name"], 0.01)} for group in groups])

        torch.manual_seed(1)
        posterior = cb.MeanField(mlp(), prior_std=PRIORS)
        starts = {name: value.detach().clone() for name, value in posterior.mean().items()}
        cb.fit(posterior, data, cb.Objective(), optimizer=factory, epochs=1)
        moved[rate] = {name: value - starts[name] for name, value in posterior.mean().items()}
    assert not bool(moved[0.01]["0.weight"].any())
    assert torch.allclose(moved[0.02]["2.weight"], 2 * moved[0.01]["2.weight"], atol=1e-6)
    assert torch.equal(moved[0.02]["2.bias"], moved[0.01]["2.bias"])


@pytest.mark.parametrize("prior_std", [0.05, PRIORS], ids=["one group", "groups"])
def test_init_std_by_pattern(prior_std: Any) -> None:
    posterior = cb.MeanField(mlp(), prior_std=prior_std, init_std={"0.bias": 0.5, "*.weight": 0.02, "*": 0.1})
    result = {}
    for group in posterior.groups:
        assert isinstance(group, GaussianGroup)
        result.update({name: view.unique().tolist() for name, view in group.layout.views(group.scale()).items()})
    assert result == {
        name: [pytest.approx(std, rel=1e-6)]
        for name, std in {"0.weight": 0.02, "0.bias": 0.5, "2.weight": 0.02, "2.bias": 0.1}.items()
    }


def test_from_point_starts_at_the_trained_network() -> None:
    case = CASES["batch, group, layer norm and dropout"]
    point = cb.Point(normalised())
    cb.fit(point, case.data(), cb.Objective(), epochs=2, batch_size=4)
    posterior = cb.MeanField.from_point(point, init_std=1e-3, prior_mean="initial", where="0.*")
    inputs = case.inputs()
    assert torch.equal(cb.predict(posterior, inputs, samples="mean").probs, cb.predict(point, inputs).probs)
    assert posterior.num_bayesian == 4 * 2 * 9 + 4
    per_weight = math.log(0.05 / 1e-3) + 0.5 * (1e-3 / 0.05) ** 2 - 0.5
    assert float(posterior.kl().detach()) == pytest.approx(posterior.num_bayesian * per_weight, rel=1e-5)


def test_no_width_and_no_prior_is_a_point() -> None:
    case = CASES["batch, group, layer norm and dropout"]
    data = case.data()
    for net in (mlp(), normalised()):
        inputs = data if isinstance(net[0], nn.Conv2d) else CASES["mlp"].data()  # type: ignore[index]
        point, narrow = cb.Point(net), cb.MeanField(net, init_std=1e-12)
        for posterior in (point, narrow):
            cb.fit(posterior, inputs, cb.Objective(beta=0.0), epochs=3, batch_size=4, optimizer=sgd)
        one, other = (cb.predict(posterior, inputs[0], samples=samples_for(posterior, 4)) for posterior in (point, narrow))
        assert torch.allclose(one.probs, other.probs, atol=1e-6)
        assert torch.allclose(other.epistemic, torch.zeros(()), atol=1e-6)


def sgd(groups: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(groups, lr=0.1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"prior_std": 0.0}, "`prior_std` to be a positive finite number, but got 0.0"),
        ({"init_std": -0.1}, "`init_std` to be a positive finite number, but got -0.1"),
        ({"init_std": math.inf}, "`init_std` .* but got inf"),
        ({"prior_std": True}, "`prior_std` .* but got True"),
        ({"prior_std": {"0.*": 0.1, "*": math.nan}}, r"`prior_std\['\*'\]` .* but got nan"),
        ({"init_std": {"0.*": "wide", "*": 0.1}}, r"`init_std\['0\.\*'\]` .* but got 'wide'"),
        ({"prior_std": {"0.*": 0.1}}, r"`prior_std` has no pattern for '2.weight', only \['0\.\*'\]. Add a last pattern '\*'"),
        ({"init_std": {}}, r"`init_std` has no pattern for '0.weight', only \[\]"),
        ({"prior_std": {"fc.*": 0.1, "*": 1.0}}, r"`prior_std` pattern 'fc\.\*' is the first match of no Bayesian weight"),
        ({"init_std": {"*": 0.1, "0.*": 1.0}}, r"`init_std` pattern '0\.\*' is the first match of no Bayesian weight"),
        ({"prior_mean": "zero"}, "`prior_mean` to be None, 'initial' or a state dict, but got 'zero'"),
        ({"prior_mean": {"0.weight": torch.zeros(6, 4)}}, "`prior_mean` has no value for '0.bias'; it has .'0.weight'"),
        (
            {"prior_mean": {"2.bias": torch.zeros(4)}, "where": "2.bias"},
            r"`prior_mean\['2.bias'\]` has shape \[4\].* has \[3\]",
        ),
    ],
)
def test_bad_settings_are_quoted(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        cb.MeanField(mlp(), **settings)
