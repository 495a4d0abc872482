"""Trainings in one, two and three processes, which ``torchrun`` starts, or Lightning itself.

Arguments: the folder for what they find, the number of processes, and the names of trainings (all by default).
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("lightning")
from lightning.pytorch import Callback
from tests.lightning.own import OwnModule
from tests.lightning.toy import SCHEMES, adam, data, loader, module, perceptron, state, trainer, with_batch_norm
from torch import Tensor, nn
from torch.utils.data import DataLoader, DistributedSampler, Sampler, TensorDataset

import calibayes as cb
from calibayes.lightning import CalibayesModule

N, BATCH, EPOCHS = 65, 20, 14  # 56 steps; neither two nor three processes can share the last five examples evenly
HELD_OUT = 53  # nor these


def scores(module: CalibayesModule) -> dict[str, Any]:
    """Those of the last validation, but for the p-value, of random pairs, which each process has among its own."""
    return {name: value for name, value in module.scores["val"].to_dict().items() if name != "kce_p_value"}


class Validations(Callback):  # type: ignore[misc]
    """The scores of every validation."""

    def __init__(self) -> None:
        self.found: list[dict[str, Any]] = []

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        if not trainer.sanity_checking:
            self.found.append(scores(pl_module))


class Noisy(torch.optim.SGD):
    """An optimiser that draws noise."""

    def step(self, closure: Any = None) -> Any:
        loss = super().step(closure)
        with torch.no_grad():
            for group in self.param_groups:
                for parameter in group["params"]:
                    parameter.add_(torch.randn_like(parameter), alpha=1e-3)
        return loss


def batches(rank: int, size: int, count: int = N, batch: int = BATCH) -> DataLoader[Any]:
    """This process's share of every batch in order, the last of which may be small."""
    whole = [range(start, min(start + batch, count)) for start in range(0, count, batch)]
    shares = [list(each[rank * len(each) // size : (rank + 1) * len(each) // size]) for each in whole]
    return DataLoader(TensorDataset(*data(count)), batch_sampler=shares)


class Dealt(Sampler[list[int]]):
    """The batches that processes have together when Lightning deals the examples out, one of them twice."""

    def __init__(self, processes: int) -> None:
        self.sampler = self  # whom Lightning tells the epoch
        self.batch = BATCH // processes
        self.shares: list[DistributedSampler[Any]] = [
            DistributedSampler(TensorDataset(*data(N)), processes, rank, shuffle=True, seed=0) for rank in range(processes)
        ]

    def set_epoch(self, epoch: int) -> None:
        for each in self.shares:
            each.set_epoch(epoch)

    def __iter__(self) -> Iterator[list[int]]:
        order: list[list[int]] = [list(each) for each in self.shares]
        for start in range(0, len(order[0]), self.batch):
            yield [number for each in order for number in each[start : start + self.batch]]

    def __len__(self) -> int:
        return len(range(0, len(self.shares[0]), self.batch))


def cases(size: int) -> dict[str, Callable[[int, int], dict[str, Any]]]:
    """Trainings by name, each a function of the process and the number of processes."""
    found: dict[str, Callable[[int, int], dict[str, Any]]] = {}
    for scheme in SCHEMES:
        for samples in (1, 4) if scheme.endswith("bnn") else (1,):
            found[f"{scheme}, R={samples}"] = partial(trained, perceptron, scheme, samples=samples)
    for scheme in ("ca-fnn", "ca-bnn"):
        found[f"{scheme}, batch norm"] = partial(trained, with_batch_norm, scheme)
    for shares in (2, 3):
        if size in (1, shares):
            train = (
                DataLoader(TensorDataset(*data(N)), batch_sampler=Dealt(shares)) if size == 1 else loader(N, BATCH // shares)
            )
            found[f"dealt to {shares} by Lightning"] = partial(trained, perceptron, "ca-bnn", train=train)
    found["noisy optimiser"] = partial(trained, perceptron, "bnn", optimizer=lambda parameters: Noisy(parameters, lr=0.1))
    found["ensemble"] = ensemble
    found["term alone"] = own
    return found


def trained(
    net: Callable[..., nn.Module],
    scheme: str,
    rank: int,
    size: int,
    *,
    train: DataLoader[Any] | None = None,
    samples: int = 2,
    optimizer: Any = adam,
) -> dict[str, Any]:
    here = module(scheme, lambda: net(dropout=0.0), optimizer=optimizer, samples=samples)
    return fitted(here, rank, size, train, scheme == "ca-bnn")


def ensemble(rank: int, size: int) -> dict[str, Any]:
    """A point, and a distribution whose standard deviations have no gradient in the first epochs; averaged."""
    point = module("ca-fnn", lambda: with_batch_norm(dropout=0.0))
    warm = cb.MeanField(with_batch_norm(dropout=0.0), init_std=0.05, epochs_before=4)
    members = cb.Ensemble([point.posterior, warm])
    settings: dict[str, Any] = {"optimizer": adam, "samples": 2, "evaluation_samples": 4, "seed": 3}
    here = CalibayesModule(members, replace(point.objective, beta=0.1), averaging=cb.EMA(0.9), **settings)
    return fitted(here, rank, size)


def fitted(
    here: CalibayesModule, rank: int, size: int, train: DataLoader[Any] | None = None, scored: bool = False
) -> dict[str, Any]:
    if rank:  # a process's own initial values do not matter
        with torch.no_grad():
            next(here.posterior.parameters()).zero_()
    validations, valid = Validations(), loader(HELD_OUT, 10, 1)
    if train is None:
        share: DistributedSampler[Any] = DistributedSampler(valid.dataset, size, rank, shuffle=False)
        valid = loader(HELD_OUT, 10, 1, sampler=share)
    settings = {"check_val_every_n_epoch": EPOCHS // 2, "callbacks": [validations], **devices(size)}
    run = trainer(EPOCHS, use_distributed_sampler=train is not None, **settings)
    run.fit(here, batches(rank, size) if train is None else train, valid)
    found = {"weights": state(here), "steps": run.global_step, "validations": validations.found}
    return {**found, **(evaluated(here, size) if scored else {})}


def evaluated(here: CalibayesModule, size: int) -> dict[str, Any]:
    """Metrics and predictions after training."""
    run = trainer(**devices(size))
    run.validate(here, loader(HELD_OUT, 10, 1), verbose=False)
    predicted = run.predict(here, loader(HELD_OUT, 10, 1))
    assert predicted is not None
    return {
        "logged": {name: float(value) for name, value in run.callback_metrics.items()},
        "scores": scores(here),
        "probs": torch.cat([each["probs"] for each in predicted]),
    }


def own(rank: int, size: int) -> dict[str, Any]:
    """Batches that divide evenly: the mean loss of its own is not meant for processes with different numbers of examples."""
    here, run = OwnModule(lam=30.0), trainer(18, use_distributed_sampler=False, **devices(size))
    run.fit(here, batches(rank, size, count=54, batch=18))
    weights: dict[str, Tensor] = {name: value.detach().clone() for name, value in here.state_dict().items()}
    return {"weights": weights, "steps": run.global_step, "validations": []}


def devices(size: int) -> dict[str, Any]:
    return {"devices": size, "strategy": "ddp"} if size > 1 else {}


if __name__ == "__main__":
    torch.set_num_threads(1)
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    folder, size = Path(sys.argv[1]), int(sys.argv[2])
    rank = int(os.environ.get("LOCAL_RANK", "0"))  # Lightning tells it to the processes that it starts, torchrun to all
    found = {name: train(rank, size) for name, train in cases(size).items() if name in (sys.argv[3:] or cases(size))}
    torch.save(found, folder / f"rank{rank}.pt")
