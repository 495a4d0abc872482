"""What the demo's worker processes do: train one network, and score one on the test images."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.optim.lr_scheduler import CosineAnnealingLR

from calibayes.data import fashion_mnist
from calibayes.errors import InvalidArgumentError
from calibayes.metrics import Scores, evaluate
from calibayes.networks import SmallCNN
from calibayes.objective import Objective
from calibayes.posterior import MeanField, Point
from calibayes.predictive import predict
from calibayes.recipes.demo.settings import Run, Settings
from calibayes.recipes.schemes import build, is_bayesian
from calibayes.training import fit

__all__ = ["Tested", "Trained", "cost_of_test", "cost_of_training", "load", "test", "train"]

Pair = tuple[Tensor, Tensor]
_SPLIT_SEED = 0
_BATCH = 128  # of predictions: what fits into a core's cache


@dataclass(frozen=True)
class Trained:
    """A trained network as plain arrays, which pass between processes, and its scores on the validation images."""

    run: Run
    validation: Scores
    weights: dict[str, NDArray[np.float32]]


@dataclass(frozen=True)
class Tested:
    """What a trained network says about the test images, and its scores there."""

    run: Run
    scores: Scores
    probs: NDArray[np.float32]


@lru_cache(maxsize=1)
def load(settings: Settings) -> tuple[Pair, Pair, Pair]:
    """Training, validation and test images, the same for every run."""
    splits = fashion_mnist(settings.train, settings.validation, seed=_SPLIT_SEED)
    x, y = splits.test
    if settings.test > len(x):
        raise InvalidArgumentError(
            f"Expected `test` to be at most {len(x)}, the images that are left, but got {settings.test}."
        )
    train, validation, test = (
        # Convolutions on a CPU take half the time in this layout.
        (images.to(memory_format=torch.channels_last), labels)
        for images, labels in (splits.train, splits.validation, (x[: settings.test], y[: settings.test]))
    )
    return train, validation, test


def train(settings: Settings, run: Run) -> Trained:
    """Train one network; the test images are not looked at."""
    images, validation, _ = load(settings)
    posterior, objective = _untrained(settings, run)
    steps = settings.epochs * -(-settings.train // settings.batch_size)
    history = fit(
        posterior,
        images,
        objective,
        optimizer=lambda parameters: torch.optim.Adam(parameters, lr=settings.learning_rate),
        scheduler=lambda optimizer: CosineAnnealingLR(optimizer, steps),
        scheduler_interval="step",
        epochs=settings.epochs,
        batch_size=settings.batch_size,
        samples=settings.samples,
        seed=run.seed,
        device="cpu",
        progress=False,
    )
    if history.stopped == "interrupted":
        raise KeyboardInterrupt
    scores = evaluate(_probs(settings, run, posterior, validation[0]), validation[1])
    return Trained(run, scores, {name: value.numpy() for name, value in posterior.state_dict().items()})


def test(settings: Settings, trained: Trained) -> Tested:
    """Score a trained network on the test images."""
    images, labels = load(settings)[2]
    posterior, _ = _untrained(settings, trained.run)
    posterior.load_state_dict({name: torch.from_numpy(value) for name, value in trained.weights.items()})
    probs = _probs(settings, trained.run, posterior, images)
    return Tested(trained.run, evaluate(probs, labels), probs.numpy())


def cost_of_training(settings: Settings, scheme: str) -> float:
    """Roughly how long `train` takes, in images that pass forward through the network."""
    samples = settings.predictive_samples if is_bayesian(scheme) else 1
    return 4.0 * settings.train * settings.epochs * settings.samples + samples * settings.validation


def cost_of_test(settings: Settings, scheme: str) -> float:
    """Roughly how long `test` takes, in the same unit."""
    return float(settings.test * (settings.predictive_samples if is_bayesian(scheme) else 1))


def _untrained(settings: Settings, run: Run) -> tuple[Point | MeanField, Objective]:
    """The run's posterior and objective; the same seed gives all schemes the same initial weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(run.seed)
        net = SmallCNN()
    return build(run.scheme, net, lam=run.lam, beta=run.beta, prior_std=settings.prior_std, init_std=settings.init_std)


def _probs(settings: Settings, run: Run, posterior: Point | MeanField, images: Tensor) -> Tensor:
    return predict(posterior, images, samples=settings.predictive_samples, batch_size=_BATCH, seed=run.seed).probs
