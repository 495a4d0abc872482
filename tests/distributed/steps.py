"""Steps of loops of one's own, under ``torchrun``: the objective in DistributedDataParallel, and what `fit` refuses."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from tests.distributed.trainings import data, perceptron
from tests.objective.own_terms import Spread
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

import calibayes as cb
from calibayes.errors import CalibayesError

SIZES = {1: (20,), 2: (13, 7), 3: (4, 9, 7)}  # no two processes alike


def gradients(held_out: bool) -> dict[str, Any]:
    """The gradient of one step on twenty examples, and the terms."""
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.manual_seed(0)
    net: Any = perceptron().double()
    run = DistributedDataParallel(net) if size > 1 else net
    own = [part[rank] for part in (each.split(SIZES[size]) for each in data(0, 20))]
    other = [part[rank] for part in (each.split(SIZES[size][::-1]) for each in data(1, 20))]
    objective = cb.Objective(lam=20.0, beta=0.0, calibration=cb.WMMCE(tau_r=0.1, tau_c=0.1))
    logits = run(torch.cat([own[0], other[0]]))
    mine, theirs = logits.split([len(own[1]), len(other[1])])
    terms = objective(
        mine,
        own[1],
        torch.zeros(()),
        dataset_size=100,
        held_out=(theirs, other[1]) if held_out else None,
        group="auto" if size > 1 else None,
    )
    terms.total.backward()
    grads: list[Tensor] = [parameter.grad.clone() for parameter in net.parameters()]
    return {"gradients": grads, "terms": [float(value.detach()) for value in terms]}


def own_terms() -> dict[str, Any]:
    """The gradient of one step on twenty examples with terms of one's own and of the predictive of two samples."""
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.manual_seed(0)
    net: Any = perceptron().double()
    run = DistributedDataParallel(net) if size > 1 else net
    own = [part[rank] for part in (each.split(SIZES[size]) for each in data(0, 20))]
    outside = data(1, 20)[0].split(SIZES[size][::-1])[rank]
    smooth = cb.Calibration(cb.WMMCE(tau_r=0.1, tau_c=0.1), lam=20.0, of="predictive")
    terms = (smooth, Spread(), cb.ConfidenceMinimization(of="predictive"))
    logits = run(torch.cat([own[0], outside]))
    samples = torch.stack([logits, 3 * logits.sin()])
    mine, theirs = samples.split([len(own[1]), len(outside)], dim=1)
    objective = cb.Objective(loss=cb.Focal(), terms=terms)
    group: Any = "auto" if size > 1 else None
    found = objective(mine, own[1], torch.zeros(()), dataset_size=100, out_of_domain=theirs, group=group)
    found.total.backward()
    grads: list[Tensor] = [parameter.grad.clone() for parameter in net.parameters()]
    return {"gradients": grads, "terms": [float(value.detach()) for value in found]}


def in_a_part() -> list[Tensor]:
    """The weights that the last two processes train together, while a first one of three trains by itself."""
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    group = None
    if size > 1:
        part = list(range(size - 2, size))
        made = dist.new_group(part)
        group = made if rank in part else None
    torch.manual_seed(0)
    posterior = cb.MeanField(perceptron().double(), init_std=0.05)
    objective = cb.Objective(lam=20.0, beta=0.1, calibration=cb.WMMCE(tau_r=0.1, tau_c=0.1))
    cb.fit(posterior, data(0, 50), objective, epochs=3, batch_size=20, samples=2, group=group)
    return [parameter.detach().clone() for parameter in posterior.parameters()]


def streamed() -> dict[str, float]:
    """The metrics of predictions of which each process has seen a part, and the last one, of three, nothing."""
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    x, y = data(0, 600)
    probs = (2 * x[:, :3]).softmax(-1)
    stream = cb.metrics.Stream()
    for part, labels in zip(probs.split(50), y.split(50), strict=True):
        if rank == int(part[0, 0] * 1000) % min(size, 2):
            stream.update(part, labels)
    whole = cb.metrics.evaluate(probs, y, intervals=False)
    found = stream.together().scores(replicates=100)
    names = ("accuracy", "ece", "nll", "brier", "mce", "ece_classwise", "overconfidence")
    assert found.n == 600
    return {name: getattr(found, name) - getattr(whole, name) for name in names}


def interrupted() -> tuple[str, int]:
    """Ctrl-C in the last process, between epochs: how training ended, and after how many steps."""
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])

    def press(_: Any, epoch: int) -> None:
        if rank == size - 1 and epoch == 2:
            os.kill(os.getpid(), signal.SIGINT)

    posterior = cb.Point(perceptron().double())
    history = cb.fit(posterior, data(0, 40), cb.Objective(lam=0.0), batch_size=10, epochs=5, on_epoch=press)
    return history.stopped, len(history.steps)


class OwnForward(nn.BatchNorm1d):
    """A batch norm that is none."""

    def forward(self, x: Tensor) -> Tensor:
        return 10 + super().forward(x)


class Skipping(nn.Module):
    """A network that runs other batch norms in some processes than in others."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.BatchNorm1d(6), nn.BatchNorm1d(6)])
        self.head = nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.norms[int(os.environ["RANK"]) % 2](x))
        return logits


class Drifting(torch.optim.SGD):
    """An optimiser whose steps are its process's own."""

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        super().step(closure)
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.data += float(os.environ["RANK"])


def refused() -> dict[str, str]:
    """Messages of `fit` for processes with different data or settings, or a network that cannot be shared."""
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    x, y = data(0, 40)
    whole = TensorDataset(x, y)
    sampler: Any = DistributedSampler(whole, num_replicas=size, rank=rank) if size > 1 else None
    normed = nn.Sequential(nn.Linear(6, 4), OwnForward(4), nn.Linear(4, 3)).double()
    lone = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.Linear(4, 3)).double()
    cases: dict[str, dict[str, Any]] = {
        "data": {"train": data(rank, 40)},
        "settings": {"epochs": 1 + rank},
        "checkpoint": {"checkpoint": Path(sys.argv[1]) / "run" if rank == 0 else None},
        "validation": {"validation": whole if rank == 0 else None},
        "sampler": {"train": DataLoader(whole, batch_size=10, sampler=sampler)},
        "own order": {
            "train": DataLoader(
                whole, batch_size=10, sampler=torch.randperm(40, generator=torch.Generator().manual_seed(rank)).tolist()
            )
        },
        "own forward": {"net": normed},
        "one example": {"net": lone, "train": (x[:1], y[:1])},
        "skipping": {"net": Skipping().double()},
        "drift": {"optimizer": lambda parameters: Drifting(parameters, lr=0.1)},
    }
    found = {}
    for name, settings in cases.items():
        given = {"net": perceptron().double(), "train": (x, y), "epochs": 1, **settings}
        try:
            cb.fit(cb.Point(given.pop("net")), given.pop("train"), cb.Objective(lam=0.0), batch_size=20, **given)
            found[name] = ""
        except CalibayesError as error:
            found[name] = f"{type(error).__name__}: {error}"
    return found


if __name__ == "__main__":
    torch.set_num_threads(1)
    if int(os.environ["WORLD_SIZE"]) > 1:
        dist.init_process_group("gloo")
    found: dict[str, Any] = {
        "batch": gradients(False),
        "held-out": gradients(True),
        "own terms": own_terms(),
        "in a part": in_a_part(),
        "refused": refused(),
        "streamed": streamed(),
        "interrupted": interrupted(),
    }
    torch.save(found, Path(sys.argv[1]) / f"rank{os.environ['RANK']}.pt")
    if dist.is_initialized():
        dist.destroy_process_group()
