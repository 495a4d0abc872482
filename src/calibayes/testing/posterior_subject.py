"""A kind of posterior on one network, which the checks make, train and use."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from calibayes.calibration import WMMCE
from calibayes.objective import Objective
from calibayes.posterior.abstract_posterior import Posterior
from calibayes.predictive import Predictive, predict
from calibayes.randomness import seeded
from calibayes.testing.comparisons import expect
from calibayes.testing.network_cases import NetworkCase
from calibayes.training.fit import fit
from calibayes.training.history import History

__all__ = ["Factory", "PosteriorSubject", "sgd", "soft_objective", "title_of"]

Factory = Callable[[nn.Module], Posterior]


def sgd(parameters: Any) -> torch.optim.Optimizer:
    """SGD, whose steps are proportional to gradients: Adam would turn rounding errors into whole steps."""
    return torch.optim.SGD(parameters, lr=0.05)


def title_of(thing: Any) -> str:
    """Return the name of a factory or a loss in messages."""
    return str(getattr(thing, "__qualname__", None) or getattr(thing, "__name__", None) or repr(thing))


def soft_objective() -> Objective:
    """The paper's objective, with softer scores than by default, which would amplify rounding errors."""
    return Objective(lam=2.0, beta=0.5, calibration=WMMCE(tau_r=0.1, tau_c=0.1))


@dataclass(frozen=True)
class PosteriorSubject:
    """The posterior, network and data that the checks are called with."""

    factory: Factory
    case: NetworkCase
    training: Mapping[str, Any] | None = field(default_factory=dict)  # arguments of `fit`; ``None`` if it cannot train it

    @property
    def title(self) -> str:
        """The class of the posterior, or the name of a factory that fails."""
        try:
            return type(self.posterior()).__name__
        except Exception:
            return title_of(self.factory)

    def posterior(self, *, seed: int = 1, double: bool = False) -> Posterior:
        """An untrained posterior; the same seed gives the same one."""
        net = self.case.network(seed=seed, double=double)
        with seeded(seed):
            posterior = self.factory(net)
        kind = type(posterior).__name__
        expect(isinstance(posterior, Posterior), f"the factory returned {kind}, which is not a calibayes.Posterior")
        return posterior

    def trained(self, *, double: bool = False) -> Posterior:
        """A posterior after two epochs, in evaluation mode."""
        posterior = self.posterior(double=double)
        if self.training is not None:
            self.fit(posterior, double=double)
        return posterior.eval()

    def fit(self, posterior: Posterior, *, double: bool = False, train: Any = None, **settings: Any) -> History:
        """Train for two epochs of several steps, unless the settings say otherwise."""
        usual = {"epochs": 2, "batch_size": 8, "samples": 2, "seed": 3, "group": None, "device": "cpu", "progress": False}
        chosen = {"objective": soft_objective(), **usual, **(self.training or {}), **settings}
        data = self.case.data(double=double) if train is None else train
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The samples run one after the other")
            return fit(posterior, data, chosen.pop("objective"), **chosen)

    def predict(self, posterior: Posterior, x: Any = None, **settings: Any) -> Predictive:
        """Four samples, or one of a posterior that is not random, on the case's inputs."""
        double = next(posterior.parameters()).dtype == torch.float64
        inputs = self.case.data(double=double)[0] if x is None else x
        samples = 4 if posterior.random else None
        return predict(posterior, inputs, **{"samples": samples, "seed": 7, **settings})
