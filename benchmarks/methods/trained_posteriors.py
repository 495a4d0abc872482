"""Train what a recipe asks for; trained networks lie in a folder for the methods that build on them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR

import calibayes as cb
from benchmarks.methods.contenders import contender_named
from benchmarks.methods.task_data import TaskData, data_of
from benchmarks.methods.tasks import Task, task_named
from calibayes.data.augment import Augmented
from calibayes.errors import CalibayesError
from calibayes.methods import method_named
from calibayes.methods.learner import Examples
from calibayes.objective import CrossEntropy, Focal
from calibayes.posterior import Posterior
from calibayes.posterior.ensemble import member_seed
from calibayes.randomness import seeded

__all__ = ["ROOT", "Recipe", "epochs_of", "trained"]

ROOT = Path(__file__).resolve().parents[2]
"""The repository; folders of trained networks are relative to it."""

_BASE = ("learning_rate", "weight_decay", "ema")  # settings of the base that methods have, too
_NOT_OF_METHODS = ("gamma", "smoothing", "input_dropout")
_SWAG_RANK = 20
_STARTED_RATE = 0.5  # of the base's learning rate, for trainings that start from a trained point


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a posterior is made; everything in it is a plain value.

    Attributes:
        task: the name of the task.
        method: the name of the contender.
        seed: the seed of the training; with ``member``, that of its initial weights, order and noise.
        member: its number in an ensemble.
        base: settings of the base.
        tried: settings of the method.
    """

    task: str
    method: str
    seed: int = 0
    member: int = 0
    base: Mapping[str, Any] = field(default_factory=dict)
    tried: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """A name for files."""
        told = json.dumps(asdict(self), sort_keys=True)
        return f"{self.method}-{self.seed}-{self.member}-{hashlib.sha256(told.encode()).hexdigest()[:16]}"

    @property
    def start(self) -> str:
        """How it begins: as its contender does, but where dropout only stays on, from the base's own network."""
        return "point" if self.method == "mc-dropout" and not self.tried else contender_named(self.method).start

    def starts_from(self) -> tuple[Recipe, ...]:
        """The recipes of the posteriors that this one is made from."""
        start = self.start
        if start in ("scratch", "learner"):
            return ()
        lam = self.tried.get("lam", 0.0)
        point = replace(self, method="ca-fnn" if lam else "fnn", tried={"lam": lam} if lam else {})
        if start == "point":
            return (point,)
        members = range(task_named(self.task).members)
        one = replace(self, method="ca-warm-mean-field" if lam else "warm-mean-field") if "mixture" in self.method else point
        return tuple(replace(one, member=member) for member in members)


def trained(recipe: Recipe, folder: Path, *, keep: bool = False) -> Posterior:
    """The posterior of a recipe, trained unless it lies in the folder already; with ``keep`` it is put there."""
    task, data = task_named(recipe.task), data_of(recipe.task, recipe.seed)
    path = ROOT / folder / f"{recipe.key}.safetensors"
    if path.exists():
        return cb.load(path, _network(recipe, data))
    posterior = _made(recipe, task, data, [trained(each, folder, keep=True) for each in recipe.starts_from()])
    if keep and recipe.start != "learner":  # its network is its own
        path.parent.mkdir(parents=True, exist_ok=True)
        cb.save(posterior, path)
    return posterior


def _made(recipe: Recipe, task: Task, data: TaskData, parts: list[Any]) -> Posterior:
    if recipe.start == "learner":
        return _learnt(recipe, data)
    if recipe.start == "members":
        return cb.Ensemble([cb.MCDropout.from_point(each) for each in parts] if "dropout" in recipe.method else parts)
    return _from_point(recipe, task, data, parts[0]) if recipe.start == "point" else _from_scratch(recipe, task, data)


def _network(recipe: Recipe, data: TaskData) -> nn.Module:
    """A network whose initial weights follow from seed and member, the same for all methods."""
    with seeded(member_seed(recipe.seed, recipe.member)):
        return data.network(float(recipe.tried.get("input_dropout", recipe.base.get("input_dropout", 0.0))))


def _learnt(recipe: Recipe, data: TaskData) -> Posterior:
    method = method_named(recipe.method)
    if data.first_layer is None or method.learner is None:
        raise CalibayesError(f"{method.title} cannot learn {recipe.task}.")
    learner = method.learner(data.first_layer, method.configured(**recipe.tried))
    if learner is None:
        raise CalibayesError(f"{method.title} cannot learn {recipe.task}.")
    parts = (Examples(*data.splits.train), Examples(*data.splits.validation))
    return learner(*parts, len(data.splits.classes), recipe.seed)


def _from_scratch(recipe: Recipe, task: Task, data: TaskData) -> Posterior:
    own = {name: value for name, value in recipe.tried.items() if name not in _NOT_OF_METHODS}
    shared = {name: recipe.base[name] for name in _BASE if name in recipe.base}
    loss = _loss(recipe.tried)
    name = {"ema": "fnn", "ca-natural-gradient": "natural-gradient"}.get(recipe.method, recipe.method)
    settings = {**shared, **own, **({} if loss is None else {"loss": loss})}
    posterior, objective, fit = cb.build(name, _network(recipe, data), **settings)
    epochs = epochs_of(recipe, task, data)
    _fit(recipe, task, data, posterior, objective, fit, epochs, cosine=recipe.base["schedule"] == "cosine")
    return posterior


def _loss(tried: Mapping[str, Any]) -> Any:
    """The loss that plain settings ask for, or ``None`` for the usual one."""
    if "gamma" in tried:
        return Focal(schedule="flsd") if tried["gamma"] == "flsd" else Focal(gamma=tried["gamma"])
    return CrossEntropy(label_smoothing=tried["smoothing"]) if "smoothing" in tried else None


def _from_point(recipe: Recipe, task: Task, data: TaskData, point: Any) -> Posterior:
    base, tried, epochs = recipe.base, recipe.tried, max(1, epochs_of(recipe, task, data) // 2)
    decay = base.get("weight_decay", 0.0)
    if recipe.method == "mc-dropout":
        return cb.MCDropout.from_point(point)
    if "laplace" in recipe.method:
        precision = tried["prior_precision"]
        validation = data.splits.validation if precision == "validation" else None
        return cb.LastLayerLaplace.from_point(point, data.splits.train, precision, validation=validation)
    if recipe.method == "swag":
        every = max(1, min(10, epochs * _steps_an_epoch(task, data) // _SWAG_RANK))
        posterior: Posterior = cb.SWAG.from_point(point, start_epoch=1, every=every, rank=_SWAG_RANK)
        rate = tried["swag_rate"]
        fit: dict[str, Any] = {"optimizer": lambda p: torch.optim.AdamW(p, lr=rate, weight_decay=decay, fused=True)}
        _fit(recipe, task, data, posterior, cb.Objective(lam=0.0, beta=0.0), fit, epochs, cosine=False)
        return posterior
    rate = base["learning_rate"] * _STARTED_RATE
    posterior = cb.MeanField.from_point(point, prior_std=tried["prior_std"], init_std=tried["init_std"])
    averaging = None if base.get("ema") is None else cb.EMA(base["ema"])
    fit = {"optimizer": lambda p: torch.optim.AdamW(p, lr=rate, weight_decay=decay, fused=True), "averaging": averaging}
    objective = cb.Objective(lam=tried.get("lam", 0.0), beta=tried["beta"])
    _fit(recipe, task, data, posterior, objective, fit, epochs, cosine=True)
    return posterior


def epochs_of(recipe: Recipe, task: Task, data: TaskData) -> int:
    """Passes over the training examples: what the base says, or as many as its number of steps takes."""
    return int(recipe.base.get("epochs") or -(-recipe.base["steps"] // _steps_an_epoch(task, data)))


def _steps_an_epoch(task: Task, data: TaskData) -> int:
    return -(-len(data.splits.train[1]) // task.batch_size)


def _fit(
    recipe: Recipe,
    task: Task,
    data: TaskData,
    posterior: Any,
    objective: Any,
    fit: Mapping[str, Any],
    epochs: int,
    *,
    cosine: bool,
) -> None:
    train = data.splits.train
    steps = epochs * _steps_an_epoch(task, data)
    history = cb.fit(
        posterior,
        Augmented(train) if data.augment else train,
        objective,
        scheduler=(lambda made: CosineAnnealingLR(made, steps)) if cosine else None,
        scheduler_interval="step",
        epochs=epochs,
        batch_size=task.batch_size,
        seed=member_seed(recipe.seed, recipe.member),
        precision=task.precision,
        device="cpu",
        group=None,
        progress=False,
        **fit,
    )
    if history.stopped == "interrupted":
        raise KeyboardInterrupt
