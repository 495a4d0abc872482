"""The fingerprint of a run, which a checkpoint must match to belong to it."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from typing import Any

import torch

from calibayes.data.augment import AugmentedSource
from calibayes.data.input_structure import tensors_in
from calibayes.data.sources import Source, TensorSource
from calibayes.objective import CrossEntropy, Objective, Term
from calibayes.posterior.network_posterior import NetworkPosterior
from calibayes.schedules import Schedule, value_at
from calibayes.training.step import StepSettings
from calibayes.training.weight_checks import checksum

__all__ = ["fingerprint", "sampled"]

_STEPS = (0, 1, 2, 5, 10, 30, 100, 300, 1_000, 10_000, 100_000)
_ROWS = 64
_DESCRIBED = ("kind", "parameters", "buffers", "roles")  # parts of a posterior's configuration that are described apart


def fingerprint(
    posterior: NetworkPosterior,
    source: Source,
    objective: Objective,
    optimizer: torch.optim.Optimizer,
    settings: StepSettings,
    **others: object,
) -> dict[str, Any]:
    """A description of a run that is the same in every process. Epochs are not in it: a finished run may be prolonged."""
    hyperparameters = [
        {k: _plain(v) for k, v in group.items() if k not in ("params", "initial_lr")} for group in optimizer.param_groups
    ]
    config = posterior.config()
    about = {name: _plain(value) for name, value in config.items() if name not in _DESCRIBED}
    return {
        "posterior": posterior.kind,
        "parameters": {choice.name: [choice.role, *choice.shape] for choice in posterior.choices},
        "examples": source.size,
        "batches": source.steps(),
        "data": sampled(source),
        "network": zlib.crc32(posterior.architecture().encode()),
        "buffers": {name: list(value.shape) for name, value in posterior.buffer_values().items()},
        "prior_mean": False,
        **about,
        "optimizer": [type(optimizer).__name__, hyperparameters],
        **_objective(objective),
        "settings": {name: _plain(value) for name, value in vars(settings).items()},
        **{name: _plain(value) for name, value in others.items()},
    }


def _objective(objective: Objective) -> dict[str, Any]:
    """The loss and its terms; cross-entropy and the short form as version 0.1 wrote them, so that its runs can be resumed."""
    described: dict[str, Any] = {"beta": _schedule(objective.beta, "beta")}
    if objective.loss != CrossEntropy():
        described["loss"] = _plain(objective.loss)
    if objective.is_short:
        lam = _schedule(objective.lam, "lam")  # type: ignore[arg-type]
        return {**described, "lam": lam, "calibration": _plain(objective.calibration), "lam_scale": objective.lam_scale}
    return {**described, "terms": [_term(term) for term in objective.terms]}


def _term(term: Term) -> list[Any]:
    return [term.name, term.on, term.of, _plain(term), *_schedule(lambda step: term.weight(step, 1), term.name)]


def _schedule(schedule: Schedule, name: str) -> Sequence[float | None]:
    """The values of a function at some steps, ``None`` where it has none: its name would not tell two lambdas apart."""
    if not callable(schedule):
        return [value_at(schedule, 0, name)]
    values: list[float | None] = []
    for step in _STEPS:
        try:
            values.append(value_at(schedule, step, name))
        except Exception:  # a user's function may raise anything beyond its last step
            values.append(None)
    return values


def sampled(source: Source | None) -> int | None:
    """A checksum of some rows and all labels of data in memory, and of their augmentation."""
    if not isinstance(source, TensorSource):
        return None
    index = torch.linspace(0, source.size - 1, min(_ROWS, source.size)).long()
    weights = [] if source.weights is None else [source.weights]
    total = checksum([source.targets, *weights, *tensors_in(source.take(index).inputs)])
    if isinstance(source, AugmentedSource):
        total = zlib.crc32(repr((source.padding, source.flip)).encode(), total)
    return total


def _plain(value: Any) -> Any:
    """JSON's own types as they are; anything else by its repr, without memory addresses."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))
