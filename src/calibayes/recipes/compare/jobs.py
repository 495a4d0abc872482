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

from calibayes.data import Splits
from calibayes.data.overlap import check_apart
from calibayes.methods import Plan
from calibayes.methods.fit_arguments import prediction_passes
from calibayes.metrics import Scores, evaluate
from calibayes.posterior.abstract_posterior import Posterior
from calibayes.predictive import predict, samples_for
from calibayes.recipes.compare.comparison_settings import MethodRun, Settings
from calibayes.recipes.compare.comparison_task import Task
from calibayes.recipes.fitting import fit_plan, plan_from_seed

__all__ = ["OPTIMIZER", "Effort", "effort", "load", "scored", "test", "train"]

OPTIMIZER = "Adam, learning rate to zero along a cosine"
_BATCH = 128  # of predictions: what fits into a core's cache

Probs = NDArray[np.float32]


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


def train(task: Task, settings: Settings, run: MethodRun) -> dict[str, Any]:
    """Train one network, and let it predict the validation examples; the test examples are not looked at."""
    begin = time.process_time()
    splits = load(task, settings)
    plan = _untrained(task, settings, run)
    named = {name: getattr(settings, name) for name in ("learning_rate", "epochs", "batch_size", "samples")}
    fit_plan(plan, splits.train, seed=run.seed, device="cpu", **named)
    probs = _probs(settings, run, plan.posterior, splits.validation[0])
    return {"probs": probs, "weights": plan.posterior.state_dict(), "seconds": time.process_time() - begin}


def test(task: Task, settings: Settings, run: MethodRun, weights: dict[str, Tensor]) -> dict[str, Any]:
    """Let a trained network predict the test examples."""
    begin = time.process_time()
    posterior = _untrained(task, settings, run).posterior
    posterior.load_state_dict(weights)
    probs = _probs(settings, run, posterior, load(task, settings).test[0])
    return {"probs": probs, "seconds": time.process_time() - begin}


@dataclass(frozen=True)
class Effort:
    """What it takes to train a method and to let it predict."""

    members: int  # networks that are trained
    random: bool  # whether a prediction averages over samples of the weights
    training: float  # roughly how long `train` takes, in examples that pass forward through the network
    test: float  # roughly how long `test` takes, in the same unit


@lru_cache(maxsize=64)
def effort(task: Task, settings: Settings, method: str) -> Effort:
    """The effort of one training and one test of a method."""
    run = next(each for each in settings.candidates() if each.scheme == method)
    posterior = _untrained(task, settings, run).posterior
    passes, members = prediction_passes(posterior, settings.predictive_samples), len(posterior.members)
    steps = 4.0 * settings.train * settings.epochs * settings.samples * members
    random = any(member.random for member in posterior.members)
    return Effort(members, random, steps + passes * settings.validation, float(passes * settings.test))


def _untrained(task: Task, settings: Settings, run: MethodRun) -> Plan:
    """The run's posterior and objective; the same seed gives all methods the same initial weights."""
    return plan_from_seed(run.scheme, task.network, run.seed, **settings.of_method(run))


def _probs(settings: Settings, run: MethodRun, posterior: Posterior, images: Tensor) -> Probs:
    samples = samples_for(posterior, settings.predictive_samples)
    found = predict(posterior, images, samples=samples, batch_size=_BATCH, seed=run.seed)
    probs: Probs = found.probs.float().numpy()
    return probs
