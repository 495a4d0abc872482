"""One training, or one prediction of what is trained already; what they make lies in a folder for those that build on it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.optim.lr_scheduler import CosineAnnealingLR

import calibayes as cb
from benchmarks.methods.contenders import loss_of
from benchmarks.methods.tasks import Task, task_named
from calibayes.posterior import Posterior
from calibayes.posterior.ensemble import member_seed
from calibayes.predictive import samples_for
from calibayes.randomness import seeded

__all__ = ["POSTERIORS", "posterior_file", "trial"]

POSTERIORS = "posteriors"
_BATCH = 250
_BASE = ("learning_rate", "weight_decay", "ema")
_STARTED_RATE = 0.5  # of the base's learning rate, for trainings that start from a trained point
_WARM = {"beta": 0.1, "prior_std": 0.1, "init_std": 0.03}  # of natural gradients from a trained point


def trial(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Train or build a posterior, keep it in the folder, and predict validation and, if wanted, test examples.

    Settings: ``task``, ``base`` (a name), ``base_settings``, ``method``, ``tried`` (the method's own settings), ``seed``,
    ``member``, ``folder``, ``keep`` (the name under which the posterior is kept, if at all) and ``test``.
    """
    task = task_named(settings["task"])
    begin, wall = time.process_time(), time.time()
    posterior = _trained(task, settings)
    trained = time.process_time() - begin
    splits = task.splits()
    samples = task.samples if len(posterior.members) == 1 else 5 * len(posterior.members)
    begin = time.process_time()
    parts = {"validation": splits.validation, **({"test": splits.test} if settings["test"] else {})}
    found = {name: _predicted(posterior, x, samples, settings["seed"]) for name, (x, _) in parts.items()}
    predicted = (time.process_time() - begin) / sum(len(y) for _, y in parts.values())
    if settings["keep"]:
        cb.save(posterior, posterior_file(settings["folder"], settings["keep"]))
    return {
        **found,
        "training_seconds": trained,
        "prediction_seconds_per_example": predicted,
        "passes": samples if posterior.random and len(posterior.members) == 1 else _passes(posterior, samples),
        "wall_seconds": time.time() - wall,
    }


def posterior_file(folder: str, name: str) -> Path:
    """Where a posterior is kept."""
    place = Path(folder) / POSTERIORS
    place.mkdir(parents=True, exist_ok=True)
    return place / f"{name}.safetensors"


def _passes(posterior: Posterior, samples: int) -> int:
    each = -(-samples // len(posterior.members))
    return sum(each if member.random else 1 for member in posterior.members)


def _predicted(posterior: Posterior, x: Any, samples: int, seed: int) -> np.ndarray[Any, Any]:
    wanted = samples_for(posterior, samples)
    return cb.predict(posterior, x, samples=wanted, batch_size=_BATCH, seed=seed, dtype=torch.float64).probs.numpy()


def _trained(task: Task, settings: Mapping[str, Any]) -> Posterior:
    method, base, tried = settings["method"], dict(settings["base_settings"]), dict(settings["tried"])
    drop = tried.pop("input_dropout", base.get("input_dropout", 0.0))
    seed = member_seed(settings["seed"], settings["member"])
    with seeded(seed):
        net = task.network(drop)
    if settings["start"] == "scratch":
        return _from_scratch(task, method, base, tried, net, seed)
    folder, points = settings["folder"], settings["points"]
    kept = [cb.load(posterior_file(folder, name), net) for name in points]
    if method == "dropout-ensemble":
        return cb.Ensemble([cb.MCDropout.from_point(each) for each in kept])
    if settings["start"] == "members":
        return cb.Ensemble(kept)
    return _from_point(task, method, base, tried, kept[0], seed)


def _from_scratch(task: Task, method: str, base: dict[str, Any], tried: dict[str, Any], net: Any, seed: int) -> Posterior:
    loss = loss_of(tried)
    own = {name: value for name, value in tried.items() if name not in ("gamma", "smoothing")}
    shared = {name: base[name] for name in _BASE if name in base}
    name = "fnn" if method in ("ema",) else method
    settings = {**shared, **own, **({} if loss is None else {"loss": loss})}
    posterior, objective, fit = cb.build(name, net, **settings)
    _fit(task, posterior, objective, fit, _epochs(task, base), seed, cosine=base["schedule"] == "cosine")
    return posterior


def _from_point(task: Task, method: str, base: dict[str, Any], tried: dict[str, Any], point: Any, seed: int) -> Posterior:
    splits, epochs = task.splits(), max(1, _epochs(task, base) // 2)
    if method == "laplace":
        precision = tried["prior_precision"]
        validation = splits.validation if precision == "validation" else None
        return cb.LastLayerLaplace.from_point(point, splits.train, precision, validation=validation)
    rate = base["learning_rate"] * _STARTED_RATE
    averaging = None if base.get("ema") is None else cb.EMA(base["ema"])
    if method == "swag":
        posterior: Posterior = cb.SWAG.from_point(point, start_epoch=1, every=10, rank=20)
        rate, decay = tried["swag_rate"], base.get("weight_decay", 0.0)
        fit: dict[str, Any] = {"optimizer": lambda p: torch.optim.AdamW(p, lr=rate, weight_decay=decay, fused=True)}
        _fit(task, posterior, cb.Objective(lam=0.0, beta=0.0), fit, epochs, seed, cosine=False)
        return posterior
    warm = {**_WARM, **{name: value for name, value in tried.items() if name in _WARM}}
    posterior = cb.MeanField.from_point(point, prior_std=warm["prior_std"], init_std=warm["init_std"])
    optimizer: Any = lambda p: torch.optim.Adam(p, lr=rate, fused=True)  # noqa: E731
    if method == "warm-natural-gradient":
        optimizer = cb.NaturalGradient(lr=tried["natural_rate"])
    fit = {"optimizer": optimizer, "averaging": averaging}
    _fit(task, posterior, cb.Objective(lam=0.0, beta=warm["beta"]), fit, epochs, seed, cosine=True)
    return posterior


def _epochs(task: Task, base: Mapping[str, Any]) -> int:
    return int(base.get("epochs", task.epochs))


def _fit(task: Task, posterior: Any, objective: Any, fit: Mapping[str, Any], epochs: int, seed: int, *, cosine: bool) -> None:
    train = task.splits().train
    steps = epochs * -(-len(train[1]) // task.batch_size)
    history = cb.fit(
        posterior,
        train,
        objective,
        scheduler=(lambda made: CosineAnnealingLR(made, steps)) if cosine else None,
        scheduler_interval="step",
        epochs=epochs,
        batch_size=task.batch_size,
        seed=seed,
        device="cpu",
        group=None,
        progress=False,
        **fit,
    )
    if history.stopped == "interrupted":
        raise KeyboardInterrupt
