"""Trainings in one process, and in two that ``torchrun`` starts; the folder for what they find is the only argument."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("lightning")
from tests.lightning.own import OwnModule
from tests.lightning.toy import SCHEMES, N, adam, data, loader, module, perceptron, state, trainer, with_batch_norm
from torch import Tensor, nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from calibayes.lightning import CalibayesModule

BATCH = 20


class Noisy(torch.optim.SGD):
    """An optimiser that draws noise."""

    def step(self, closure: Any = None) -> Any:
        loss = super().step(closure)
        with torch.no_grad():
            for group in self.param_groups:
                for parameter in group["params"]:
                    parameter.add_(torch.randn_like(parameter), alpha=1e-3)
        return loss


def batches(rank: int, size: int, count: int = N) -> DataLoader[Any]:
    """This process's share of every batch of twenty in order; of three at the end, which they share unevenly."""
    whole = [range(start, min(start + BATCH, count)) for start in range(0, count, BATCH)]
    shares = [list(each[rank * len(each) // size : (rank + 1) * len(each) // size]) for each in whole]
    return DataLoader(TensorDataset(*data()), batch_sampler=shares)


def dealt() -> DataLoader[Any]:
    """The batches that two processes have together when Lightning deals the examples out, one of them twice."""
    whole: TensorDataset = TensorDataset(*data())
    order: list[list[int]] = [
        list(DistributedSampler(whole, num_replicas=2, rank=rank, shuffle=True, seed=0)) for rank in (0, 1)
    ]
    half = BATCH // 2
    joined = [order[0][k : k + half] + order[1][k : k + half] for k in range(0, len(order[0]), half)]
    return DataLoader(whole, batch_sampler=joined)


def cases() -> dict[str, Callable[[int, int], dict[str, Any]]]:
    """Trainings by name, each a function of the process and the number of processes."""
    found: dict[str, Callable[[int, int], dict[str, Any]]] = {}
    for scheme in SCHEMES:
        found[scheme] = lambda rank, size, scheme=scheme: trained(rank, size, perceptron, scheme)  # type: ignore[misc]
    for scheme in ("ca-fnn", "ca-bnn"):
        found[f"{scheme}, batch norm"] = lambda rank, size, scheme=scheme: trained(rank, size, with_batch_norm, scheme)  # type: ignore[misc]
    found["dealt by Lightning"] = lambda rank, size: trained(
        rank, size, perceptron, "ca-bnn", train=dealt() if size == 1 else loader(batch_size=BATCH // 2), epochs=1
    )
    found["noisy optimiser"] = lambda rank, size: trained(
        rank, size, perceptron, "bnn", optimizer=lambda parameters: Noisy(parameters, lr=0.1)
    )
    found["term alone"] = own
    return found


def trained(
    rank: int,
    size: int,
    net: Callable[..., nn.Module],
    scheme: str,
    train: DataLoader[Any] | None = None,
    epochs: int = 2,
    optimizer: Any = adam,
) -> dict[str, Any]:
    here = module(scheme, lambda: net(dropout=0.0), optimizer=optimizer)
    if rank:  # a process's own initial values do not matter
        with torch.no_grad():
            next(here.posterior.parameters()).zero_()
    run = trainer(epochs, use_distributed_sampler=train is not None, **devices(size))
    run.fit(here, batches(rank, size) if train is None else train, None)
    return {"weights": state(here), **(evaluated(here, size) if scheme == "ca-bnn" else {})}


def evaluated(here: CalibayesModule, size: int) -> dict[str, Any]:
    """Metrics and predictions of 51 examples, which two processes cannot share evenly."""
    run = trainer(**devices(size))
    run.validate(here, loader(51, 10, 1), verbose=False)
    predicted = run.predict(here, loader(51, 10, 1))
    assert predicted is not None
    return {
        "logged": {name: float(value) for name, value in run.callback_metrics.items()},
        "scores": here.scores["val"].to_dict(),
        "probs": torch.cat([each["probs"] for each in predicted]),
    }


def own(rank: int, size: int) -> dict[str, Any]:
    """Batches of twenty alone: the mean loss of its own is not meant for processes with different numbers of examples."""
    here = OwnModule(lam=30.0)
    trainer(2, use_distributed_sampler=False, **devices(size)).fit(here, batches(rank, size, count=60))
    weights: dict[str, Tensor] = {name: value.detach().clone() for name, value in here.state_dict().items()}
    return {"weights": weights}


def devices(size: int) -> dict[str, Any]:
    return {"devices": size, "strategy": "ddp"} if size > 1 else {}


if __name__ == "__main__":
    torch.set_num_threads(1)
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.save({name: train(rank, size) for name, train in cases().items()}, Path(sys.argv[1]) / f"rank{rank}.pt")
