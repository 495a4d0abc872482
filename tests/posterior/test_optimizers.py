from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from tests.posterior.zoo import mlp

import calibayes as cb
from calibayes.errors import OptimizerError
from calibayes.posterior import NetworkPosterior

OPTIMIZERS: list[type[torch.optim.Optimizer]] = [
    torch.optim.SGD,
    torch.optim.Adam,
    torch.optim.AdamW,
    torch.optim.RMSprop,
    torch.optim.Adagrad,
    torch.optim.NAdam,
    torch.optim.RAdam,
    torch.optim.Adamax,
    torch.optim.Rprop,
    torch.optim.ASGD,
    torch.optim.Adadelta,
]
RATES = {torch.optim.SGD: 0.5, torch.optim.ASGD: 0.5, torch.optim.Adadelta: 5.0}


def data() -> tuple[torch.Tensor, torch.Tensor]:
    """Three classes that a small network can tell apart."""
    y = torch.arange(60) % 3
    return torch.eye(4)[y] * 2 + 0.3 * torch.randn(60, 4), y


@pytest.mark.parametrize("kind", [cb.Point, cb.MeanField])
@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=lambda built: built.__name__)
def test_any_optimizer_trains(kind: Any, optimizer: Callable[..., torch.optim.Optimizer]) -> None:
    x, y = data()
    posterior = kind(mlp())

    def factory(parameters: Any) -> torch.optim.Optimizer:
        return optimizer(parameters, lr=RATES.get(optimizer, 0.02))  # type: ignore[call-overload]

    before = cb.predict(posterior, x, samples=5)
    cb.fit(posterior, (x, y), cb.Objective(lam=0.0, beta=0.01), optimizer=factory, epochs=12, batch_size=20)
    after = cb.predict(posterior, x, samples=5)

    def nll(predictive: cb.Predictive) -> float:
        return float(-predictive.probs[torch.arange(60), y].log().mean())

    assert nll(after) < 0.8 * nll(before)


@pytest.mark.parametrize("posterior", [cb.Point(mlp()), cb.MeanField(mlp())], ids=["point", "mean-field"])
def test_parameters_are_the_vectors_alone(posterior: NetworkPosterior) -> None:
    vectors = list(posterior.parameters())
    assert all(vector.dim() == 1 for vector in vectors)
    assert [vector.numel() for vector in vectors] == [51] * (1 if posterior.kind == "point" else 2)
    grouped = [vector for group in posterior.parameter_groups() for vector in group["params"]]
    assert {id(vector) for vector in grouped} == {id(vector) for vector in vectors}
    assert len(grouped) == len(vectors)


def test_weight_decay_pulls_mu_and_never_rho() -> None:
    """Decoupled decay multiplies μ by 1 − lr·decay each step; ρ goes exactly where it goes without decay."""
    x, y = data()
    ended = []
    for decay in (0.0, 50.0):
        posterior = cb.MeanField(_same_mlp())
        start = posterior.mu.detach().clone()

        def factory(parameters: Any, decay: float = decay) -> torch.optim.Optimizer:
            return torch.optim.AdamW(parameters, lr=0.01, weight_decay=decay)

        cb.fit(posterior, (x, y), cb.Objective(), optimizer=factory, epochs=1, batch_size=60)
        ended.append((posterior.mu.detach(), posterior.rho.detach()))
    (mu, rho), (decayed, same) = ended
    assert torch.equal(rho, same)
    assert torch.allclose(mu - decayed, 0.5 * start, atol=1e-6)


def _same_mlp() -> torch.nn.Module:
    torch.manual_seed(3)
    return mlp()


def forced(groups: Any) -> torch.optim.Optimizer:
    return torch.optim.AdamW([{**group, "weight_decay": 0.25} for group in groups])


def flattened(groups: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD([vector for group in groups for vector in group["params"]], lr=0.1, weight_decay=0.25)


@pytest.mark.parametrize("factory", [forced, flattened])
def test_weight_decay_forced_on_rho_is_refused(factory: Any) -> None:
    with pytest.raises(OptimizerError, match=r"Weight decay 0\.25 on rho.*set weight_decay=0"):
        cb.fit(cb.MeanField(mlp()), data(), cb.Objective(), optimizer=factory, epochs=1)
    cb.fit(cb.Point(mlp()), data(), cb.Objective(), optimizer=factory, epochs=1)
