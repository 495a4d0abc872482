"""Train a ResNet-18 on CIFAR-10, as the start of fine-tuning."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch.optim.lr_scheduler import OneCycleLR

from calibayes.atomic_file import atomic_file
from calibayes.data.augment import Augmented
from calibayes.data.data_folder import data_folder
from calibayes.errors import InvalidArgumentError
from calibayes.metrics import accuracy, ece, nll
from calibayes.objective import Objective
from calibayes.posterior import Point
from calibayes.predictive import predict
from calibayes.randomness import seeded
from calibayes.sweeps.results_folder import machine, prepare, versions, write_json
from calibayes.training import fit
from reproduction.cifar10_training import cifar10_parts, normalized_network

__all__ = ["PRETRAININGS", "Pretraining", "pretrain"]


@dataclass(frozen=True, kw_only=True)
class Pretraining:
    """The settings of SGD with Nesterov momentum, and a learning rate that rises and falls once."""

    network: str = "resnet18"  # or resnet18-3x3
    epochs: int = 12  # passes over all training images
    batch_size: int = 128  # images a step
    learning_rate: float = 0.1  # the highest
    weight_decay: float = 5e-4  # of the weights
    seed: int = 0  # of initial weights, order and augmentation
    train: int | None = None  # training images; all by default
    test: int | None = None  # validation and test images, each; all by default


PRETRAININGS = {
    "tiny": Pretraining(epochs=1, train=256, test=200),
    "cpu": Pretraining(),
    "paper": Pretraining(network="resnet18-3x3", epochs=50),
}


def pretrain(settings: Pretraining, folder: Path | None = None, *, progress: bool | None = None) -> tuple[Path, dict[str, Any]]:
    """Train a network on CIFAR-10, and write its weights where `CIFAR10Training` looks for them; started again, continue.

    The ``folder`` is that of data sets, by default ``CALIBAYES_DATA`` or the user's cache. Returns the path of the weights, and
    their record: settings, scores on test images, time, versions and machine.
    """
    # Weights from a part of the images are not for the experiments, so they go to another folder.
    name = settings.network if settings.train is None else f"{settings.network}-from-{settings.train}"
    place = (data_folder() if folder is None else folder) / name
    path = place / f"{settings.network}-cifar10.safetensors"
    if path.exists():
        raise InvalidArgumentError(f"The weights in {str(path)!r} exist already. Remove them to train others.")
    prepare(place)
    begin = time.monotonic()
    splits = cifar10_parts(settings.train, settings.test)
    with seeded(settings.seed):
        posterior = Point(normalized_network(settings.network, None))
    steps = settings.epochs * -(-len(splits.train[1]) // settings.batch_size)
    history = fit(
        posterior,
        Augmented(splits.train),
        Objective(lam=0.0),
        optimizer=lambda groups: torch.optim.SGD(
            groups, lr=settings.learning_rate, momentum=0.9, nesterov=True, weight_decay=settings.weight_decay
        ),
        scheduler=lambda optimizer: OneCycleLR(optimizer, settings.learning_rate, total_steps=steps),
        scheduler_interval="step",
        epochs=settings.epochs,
        batch_size=settings.batch_size,
        validation=splits.validation,
        seed=settings.seed,
        checkpoint=place / "checkpoint",
        group=None,
        progress=progress,
    )
    if history.stopped == "interrupted":
        raise KeyboardInterrupt
    x, y = splits.test
    probs = predict(posterior, x, dtype=torch.float64).probs.cpu()
    record = {
        "file": path.name,
        "settings": asdict(settings),
        "test": {metric.__name__: metric(probs, y) for metric in (accuracy, ece, nll)},
        "epochs": history.epochs,
        "training_seconds": sum(history.seconds),
        "seconds": time.monotonic() - begin,
        "versions": versions(),
        "machine": machine(threads=torch.get_num_threads()),
    }
    weights = {name[2:]: value for name, value in posterior.network().state_dict().items() if name.startswith("1.")}
    with atomic_file(path) as unfinished:
        save_file({name: value.cpu().contiguous() for name, value in weights.items()}, unfinished)
    write_json(path.with_suffix(".json"), record, indent=1)
    return path, record
