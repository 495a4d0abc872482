"""What worker processes do: train one network, and let one predict the test examples."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.optim.lr_scheduler import CosineAnnealingLR

from calibayes.data import Splits
from calibayes.data.overlap import check_apart
from calibayes.metrics import Scores, evaluate
from calibayes.objective import Objective
from calibayes.posterior import MeanField, Point
from calibayes.predictive import predict, samples_for
from calibayes.recipes.compare.settings import Run, Settings
from calibayes.recipes.compare.task import Task
from calibayes.recipes.schemes import build, is_bayesian
from calibayes.training import fit

__all__ = ["OPTIMIZER", "Tested", "Trained", "cost_of_test", "cost_of_training", "load", "scored", "test", "train"]

OPTIMIZER = "Adam, learning rate to zero along a cosine"
_BATCH = 128  # of predictions: what fits into a core's cache

Probs = NDArray[np.float32]


@dataclass(frozen=True)
class Trained:
    """A trained network's weights, and what it says about the validation examples."""

    run: Run
    probs: Probs
    weights: dict[str, Tensor]
    seconds: float
    scores: Scores


@dataclass(frozen=True)
class Tested:
    """What a trained network says about the test examples, and its scores there."""

    run: Run
    probs: Probs
    seconds: float
    scores: Scores


@lru_cache(maxsize=1)
def load(task: Task, settings: Settings) -> Splits:
    """The task's data, the same for every run; parts that share examples are refused."""
    splits = task.load(settings.train, settings.validation, settings.test)
    for first, second in combinations(("train", "validation", "test"), 2):
        check_apart(getattr(splits, first), getattr(splits, second), first, second)
    return splits


def scored(probs: Probs, targets: Tensor) -> Scores:
    """Every score of a network's probabilities."""
    return evaluate(torch.from_numpy(probs), targets, intervals=False)


def train(task: Task, settings: Settings, run: Run) -> dict[str, Any]:
    """Train one network, and let it predict the validation examples; the test examples are not looked at."""
    begin = time.process_time()
    splits = load(task, settings)
    posterior, objective = _untrained(task, settings, run)
    steps = settings.epochs * -(-len(splits.train[1]) // settings.batch_size)
    history = fit(
        posterior,
        splits.train,
        objective,
        optimizer=lambda parameters: torch.optim.Adam(parameters, lr=settings.learning_rate),
        scheduler=lambda optimizer: CosineAnnealingLR(optimizer, steps),
        scheduler_interval="step",
        epochs=settings.epochs,
        batch_size=settings.batch_size,
        samples=settings.samples,
        seed=run.seed,
        device="cpu",
        group=None,
        progress=False,
    )
    if history.stopped == "interrupted":
        raise KeyboardInterrupt
    probs = _probs(settings, run, posterior, splits.validation[0])
    return {"probs": probs, "weights": posterior.state_dict(), "seconds": time.process_time() - begin}


def test(task: Task, settings: Settings, run: Run, weights: dict[str, Tensor]) -> dict[str, Any]:
    """Let a trained network predict the test examples."""
    begin = time.process_time()
    posterior, _ = _untrained(task, settings, run)
    posterior.load_state_dict(weights)
    probs = _probs(settings, run, posterior, load(task, settings).test[0])
    return {"probs": probs, "seconds": time.process_time() - begin}


def cost_of_training(settings: Settings, scheme: str) -> float:
    """Roughly how long `train` takes, in examples that pass forward through the network."""
    samples = settings.predictive_samples if is_bayesian(scheme) else 1
    return 4.0 * settings.train * settings.epochs * settings.samples + samples * settings.validation


def cost_of_test(settings: Settings, scheme: str) -> float:
    """Roughly how long `test` takes, in the same unit."""
    return float(settings.test * (settings.predictive_samples if is_bayesian(scheme) else 1))


def _untrained(task: Task, settings: Settings, run: Run) -> tuple[Point | MeanField, Objective]:
    """The run's posterior and objective; the same seed gives all schemes the same initial weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(run.seed)
        net = task.network()
    return build(run.scheme, net, lam=run.lam, beta=run.beta, prior_std=settings.prior_std, init_std=settings.init_std)


def _probs(settings: Settings, run: Run, posterior: Point | MeanField, images: Tensor) -> Probs:
    samples = samples_for(posterior, settings.predictive_samples)
    found = predict(posterior, images, samples=samples, batch_size=_BATCH, seed=run.seed)
    probs: Probs = found.probs.float().numpy()
    return probs
