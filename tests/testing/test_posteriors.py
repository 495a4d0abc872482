"""The library's own posteriors, and one of somebody else, pass all checks."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.testing import outsider
from tests.testing.outsider import DoubleExponential
from torch import nn

import calibayes as cb
from calibayes.errors import InvalidArgumentError

Factory = Callable[[nn.Module], cb.Posterior]

FACTORIES: dict[str, Factory] = {
    "point": cb.Point,
    "distilled": cb.Distilled,
    "wide mean field around the initial weights, with a prior for each part": lambda net: cb.MeanField(
        net, init_std={"*weight": 0.2, "*": 0.1}, prior_std={"*bias": 1.0, "*": 0.5}, prior_mean="initial"
    ),
    "mean field of the weights alone": lambda net: cb.MeanField(net, where=lambda name, _: name.endswith("weight")),
    "mean field of the last layer": lambda net: cb.MeanField(net, where=_last_layer(net), init_std=0.1),
    "outsider with settings": lambda net: DoubleExponential(net, scale=0.1, prior_scale=0.5),
}


def _last_layer(net: nn.Module) -> str:
    *_, (name, _) = (pair for pair in net.named_modules() if isinstance(pair[1], nn.Linear))
    return f"{name}.*"


def mixture(net: nn.Module) -> cb.Ensemble:
    return cb.Ensemble([cb.MeanField(net, init_std=0.1), cb.Point(net), DoubleExponential(net, scale=0.1)])


def deep_ensemble(net: nn.Module) -> cb.Ensemble:
    return cb.Ensemble([cb.Point(net), cb.Point(net)])


@pytest.mark.slow
@pytest.mark.parametrize("name", FACTORIES)
def test_posteriors_pass_all_checks(name: str) -> None:
    cb.testing.check_posterior(FACTORIES[name])


def warm_start(net: nn.Module) -> cb.Posterior:
    return cb.MeanField(net, epochs_before=1)


def swag(net: nn.Module) -> cb.Posterior:
    return cb.SWAG(net, start_epoch=1, every="step", rank=3)


@pytest.mark.slow
@pytest.mark.parametrize("factory", [mixture, deep_ensemble, warm_start, swag])
def test_ensembles_and_those_that_change_during_training_pass(factory: Factory) -> None:
    cb.testing.check_posterior(factory)


def test_laplace_passes() -> None:
    # Rounding may choose other eigenvectors for the same matrix, which the state holds.
    cb.testing.check_posterior(cb.LastLayerLaplace, skip=("samples_at_once_and_in_turn",))


@pytest.mark.parametrize("factory", [cb.Point, cb.MCDropout])
def test_they_pass_on_networks_with_dropout(factory: Factory) -> None:
    cb.testing.check_posterior(factory, networks=cb.testing.DROPOUT_NETWORKS)


def test_networks_of_ones_own() -> None:
    def net() -> nn.Module:
        return nn.Sequential(nn.Embedding(7, 4), nn.Flatten(), nn.Linear(12, 5))

    words = torch.randint(7, (15, 3))
    cb.testing.check_posterior(cb.MeanField, networks={"words": net}, inputs=words, classes=5)
    with pytest.raises(InvalidArgumentError, match="'words'"):
        cb.testing.check_posterior(cb.MeanField, networks={"words": net})
    with pytest.raises(InvalidArgumentError, match="`networks`"):
        cb.testing.check_posterior(cb.MeanField, inputs=words)


def test_the_outsiders_posterior_is_short() -> None:
    lines = Path(outsider.__file__).read_text().splitlines()
    assert len(lines) <= 80
    assert not any("import" in line and "calibayes" in line and line != "import calibayes as cb" for line in lines)


def test_the_guide_shows_the_outsiders_posterior() -> None:
    code = Path(outsider.__file__).read_text()
    guide = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text()
    assert f"```python\n{code[code.index('import math') :]}```" in guide


def test_the_outsiders_posterior_learns_what_it_should() -> None:
    """Without data the posterior becomes the prior."""
    net = nn.Linear(2, 3)
    posterior = DoubleExponential(net, scale=0.02, prior_scale=0.3)
    data = torch.zeros(8, 2), torch.arange(8) % 3
    objective = cb.Objective(lam=0.0, beta=8e4)
    cb.fit(posterior, data, objective, optimizer=lambda p: torch.optim.Adam(p, lr=0.05), epochs=300, batch_size=8)
    assert float(posterior.kl().detach()) < 0.05
    assert torch.allclose(posterior.groups[0].std(), torch.full((9,), 0.3 * 2**0.5), rtol=0.1)  # type: ignore[arg-type]


def test_a_mean_field_passes_quickly_and_the_callers_generator_is_left_alone() -> None:
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    start = time.process_time()
    cb.testing.check_posterior(cb.MeanField)
    assert time.process_time() - start < 20
    assert torch.equal(torch.rand(2), expected)


@pytest.mark.lightning
@pytest.mark.parametrize("factory", [cb.Point, cb.MeanField, DoubleExponential])
def test_under_lightning(factory: Factory) -> None:
    pytest.importorskip("lightning")
    cb.testing.check_under_lightning(factory)


@pytest.mark.transformers
@pytest.mark.parametrize("factory", [cb.Point, cb.MeanField, DoubleExponential])
def test_under_transformers(factory: Factory) -> None:
    pytest.importorskip("transformers")
    cb.testing.check_under_transformers(factory)


@pytest.mark.processes
@pytest.mark.parametrize("factory", [cb.MeanField, "tests.testing.outsider:DoubleExponential"])
def test_in_two_processes(factory: Factory | str) -> None:
    cb.testing.check_with_processes(factory)


@pytest.mark.processes
def test_in_two_processes_a_factory_that_cannot_be_imported() -> None:
    cb.testing.check_with_processes(lambda net: cb.MeanField(net, init_std=0.1), {"linear": _linear()})


@pytest.mark.processes
def test_processes_that_draw_apart_are_found() -> None:
    with pytest.raises(AssertionError, match=r"(?s)ApartNoise fails the check 'processes'"):
        cb.testing.check_with_processes("tests.testing.broken:ApartNoise", {"linear": _linear()})


def _linear() -> cb.testing.NetworkCase:
    return cb.testing.NetworkCase(lambda: nn.Linear(4, 3), torch.randn(14, 4))
