"""Small networks, data and Trainers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("lightning")
from lightning.pytorch import Trainer
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import calibayes as cb
from calibayes.lightning import CalibayesModule

MARKS = [
    pytest.mark.lightning,
    # Of Lightning's own making, and its advice on workers, loggers and the length of an epoch.
    pytest.mark.filterwarnings("ignore:.*LeafSpec.* is deprecated"),
    pytest.mark.filterwarnings("ignore::lightning.pytorch.utilities.warnings.PossibleUserWarning"),
]
SCHEMES = {"fnn": (0.0, 0.0), "ca-fnn": (30.0, 0.0), "bnn": (0.0, 0.1), "ca-bnn": (30.0, 0.1)}
N, CLASSES = 63, 3


def data(count: int = N, seed: int = 0, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 6, generator=generator, dtype=torch.float64)
    y = (x[:, :CLASSES] + torch.randn(count, CLASSES, generator=generator, dtype=torch.float64)).argmax(1)
    return x.to(dtype), y


def loader(count: int = N, batch_size: int = 20, seed: int = 0, **settings: Any) -> DataLoader[Any]:
    return DataLoader(TensorDataset(*data(count, seed)), batch_size=batch_size, **settings)


def perceptron(dropout: float = 0.1) -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Dropout(dropout), nn.Linear(16, CLASSES)).double()


def with_batch_norm(dropout: float = 0.1) -> nn.Module:
    """Without a bias before the norm, whose gradient is rounding alone, which Adam would make whole steps of."""
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Linear(6, 8, bias=False), nn.BatchNorm1d(8, eps=0.1), nn.ReLU(), nn.Dropout(dropout), nn.Linear(8, CLASSES)
    ).double()


def posterior_and_objective(scheme: str, net: nn.Module) -> tuple[cb.Point | cb.MeanField, cb.Objective]:
    lam, beta = SCHEMES[scheme]
    # Scores as sharp as by default blow rounding errors up.
    objective = cb.Objective(lam=lam, beta=beta, calibration=cb.WMMCE(tau_r=0.1, tau_c=0.1))
    return cb.MeanField(net, init_std=0.05) if beta else cb.Point(net), objective


def adam(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.Adam(parameters, lr=0.01)


def module(
    scheme: str = "ca-bnn", net: Callable[[], nn.Module] = perceptron, objective: cb.Objective | None = None, **settings: Any
) -> CalibayesModule:
    posterior, usual = posterior_and_objective(scheme, net())
    chosen = {"optimizer": adam, "samples": 2, "evaluation_samples": 4, "seed": 3, **settings}
    return CalibayesModule(posterior, usual if objective is None else objective, **chosen)


def loaded(path: Path, scheme: str, net: Callable[[], nn.Module]) -> CalibayesModule:
    posterior, objective = posterior_and_objective(scheme, net())
    module: CalibayesModule = CalibayesModule.load_from_checkpoint(
        path, posterior=posterior, objective=objective, seed=3, weights_only=True
    )
    return module


def trainer(epochs: int = 2, **settings: Any) -> Trainer:
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
    return Trainer(max_epochs=epochs, **{"accelerator": "cpu", "devices": 1, **quiet, **settings})


def state(module: CalibayesModule) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in module.posterior.state_dict().items()}


def fitted(
    scheme: str = "ca-bnn", net: Any = perceptron, train: Any = None, objective: cb.Objective | None = None, **settings: Any
) -> tuple[Any, cb.History]:
    """The posterior that `calibayes.fit` trains with the settings of `module`, and its history."""
    posterior, usual = posterior_and_objective(scheme, net())
    chosen = {"optimizer": adam, "epochs": 2, "samples": 2, "seed": 3, "sample_chunk": 1, **settings}
    return posterior, cb.fit(posterior, train or loader(), usual if objective is None else objective, **chosen)


def assert_same(module: CalibayesModule, posterior: cb.Posterior, tolerance: float = 1e-10) -> None:
    found, expected = state(module), posterior.state_dict()
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert torch.allclose(found[name].double(), value.double(), rtol=tolerance, atol=tolerance), name
