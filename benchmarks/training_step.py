"""(a) A training step of each scheme, over the plain PyTorch step of the same network."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import calibayes as cb
from benchmarks.timing import Timing, interleaved
from calibayes.data.sources import Batch
from calibayes.networks import MLP, TextCNN, resnet20
from calibayes.posterior import NetworkPosterior
from calibayes.training.micro_batches import TrainingPosition
from calibayes.training.step import Stepper, StepSettings

__all__ = ["BATCH", "DATASET_SIZE", "NETWORKS", "adam", "measure", "our_step", "pairs", "plain_step"]

BATCH = 128
DATASET_SIZE = 10_000


def adam(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.Adam(parameters, lr=1e-4, fused=True)


def mlp() -> tuple[nn.Module, Tensor, int]:
    return MLP(64, [256, 256], 10), torch.randn(BATCH, 64), 10


def text_cnn() -> tuple[nn.Module, Tensor, int]:
    return TextCNN(torch.randn(20_000, 100), classes=20), torch.randint(20_000, (BATCH, 256)), 20


def cifar_resnet() -> tuple[nn.Module, Tensor, int]:
    return resnet20(), torch.randn(BATCH, 3, 32, 32), 10


NETWORKS: dict[str, tuple[Callable[[], tuple[nn.Module, Tensor, int]], int]] = {
    "MLP 64-256-256-10": (mlp, 61),
    "20 Newsgroups CNN (256 tokens)": (text_cnn, 21),
    "ResNet-20 (32×32)": (cifar_resnet, 13),
}


def measure(name: str) -> dict[str, Timing]:
    """Plain, Point and MeanField steps with and without the calibration term."""
    make, repeats = NETWORKS[name]
    torch.manual_seed(0)
    net, x, classes = make()
    y = torch.randint(classes, (BATCH,))
    runs = {"plain PyTorch": plain_step(net, x, y)}
    for samples, kinds in ((1, ("point", "mean-field")), (8, ("mean-field",))):
        for kind in kinds:
            for lam in (0.0, 10.0):
                label = f"{'Point' if kind == 'point' else f'MeanField R={samples}'}{' + WMMCE' if lam else ''}"
                posterior: NetworkPosterior = cb.Point(net) if kind == "point" else cb.MeanField(net)
                runs[label] = our_step(posterior, x, y, samples, lam)
    return interleaved(runs, repeats=repeats)


def pairs(timings: dict[str, Timing]) -> Iterator[tuple[str, float]]:
    """What the goals are about: the calibration term's share of a step, and R=8 over R=1."""
    for kind in ("Point", "MeanField R=1"):
        yield f"calibration term, share of a {kind} step", timings[f"{kind} + WMMCE"].over(timings[kind]) - 1
    yield "R=8 over R=1", timings["MeanField R=8"].over(timings["MeanField R=1"])


def plain_step(net: nn.Module, x: Tensor, y: Tensor) -> Callable[[], object]:
    """Of a copy of the network, in PyTorch alone."""
    net = copy.deepcopy(net).train()
    optimizer = adam([p for p in net.parameters() if p.requires_grad])

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimizer.step()

    return step


def our_step(
    posterior: NetworkPosterior,
    x: Tensor,
    y: Tensor,
    samples: int,
    lam: float,
    *,
    optimizer: Any = None,
    after_step: Callable[[], object] | None = None,
) -> Callable[[], object]:
    """A training step, as `fit` takes it.

    Args:
        posterior: what is trained.
        x: inputs of the batch.
        y: its labels.
        samples: of the weights.
        lam: weight of the calibration term.
        optimizer: settings that are bound to a posterior, such as `calibayes.NaturalGradient`; fused Adam by default.
        after_step: called after every step.
    """
    objective = cb.Objective(lam=lam)
    made = adam(posterior.parameter_groups()) if optimizer is None else optimizer.bind(posterior, objective, DATASET_SIZE)
    stepper = Stepper(posterior.train(), objective, made, DATASET_SIZE, StepSettings(samples=samples))
    steps = count()

    def step() -> None:
        number = next(steps)
        stepper.step(Batch(x, y, len(y)), None, TrainingPosition(0, number, number))
        if after_step is not None:
            after_step()

    return step
