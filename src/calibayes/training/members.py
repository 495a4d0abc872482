"""Train the members of an ensemble, each on its own: one after the other, or in several processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from calibayes.errors import InvalidArgumentError, SweepError
from calibayes.posterior.base import Posterior
from calibayes.posterior.ensemble import member_seed
from calibayes.training.history import History

__all__ = ["fit_members"]

Fit = Callable[..., History]


def fit_members(fit: Fit, ensemble: Posterior, arguments: Mapping[str, Any], workers: int) -> History:
    """Train every member with a seed, and a folder for checkpoints, of its own.

    Args:
        fit: `calibayes.fit`.
        ensemble: what is trained.
        arguments: those of ``fit`` besides the posterior, by name; ``seed`` is the ensemble's.
        workers: how many members are trained at a time, in processes of their own.
    """
    calls = [_arguments(arguments, index) for index in range(len(ensemble.members))]
    if workers > 1:
        histories = _in_processes(fit, ensemble, calls, workers)
    else:
        histories = []
        for member, call in zip(ensemble.members, calls, strict=True):
            histories.append(fit(member, **call))
            if histories[-1].stopped == "interrupted":
                break
    ensemble.eval()
    return History.of_members(histories)


def _arguments(arguments: Mapping[str, Any], index: int) -> dict[str, Any]:
    checkpoint = arguments["checkpoint"]
    folder = None if checkpoint is None else Path(checkpoint) / f"member-{index + 1}"
    return {**arguments, "seed": member_seed(arguments["seed"], index), "checkpoint": folder}


def _in_processes(fit: Fit, ensemble: Posterior, calls: list[dict[str, Any]], workers: int) -> list[History]:
    """Members as trials of a sweep: a worker that is killed is started again, and what is done is not done twice."""
    from calibayes.sweeps import sweep

    members = ensemble.members
    for call in calls:
        if call["on_epoch"] is not None:
            raise InvalidArgumentError("`on_epoch` cannot look into other processes. Leave it out, or use `workers=1`.")

    def train(settings: dict[str, Any]) -> dict[str, Any]:
        index = settings["member"]
        history = fit(members[index], **{**calls[index], "group": None, "progress": False})
        return {"state": dict(members[index].state_dict()), "history": history.state()}

    with TemporaryDirectory() as folder:
        trials = sweep(
            train, [{"member": index} for index in range(len(members))], folder, label="member", workers=workers, progress=False
        )
        found = []
        for member, trial in zip(members, trials, strict=True):
            if trial.error is not None:
                raise SweepError(f"Training member {trial.settings['member'] + 1} failed: {trial.error}")
            result = trial.result or {}
            member.load_state_dict({name: torch.as_tensor(value) for name, value in result["state"].items()})
            found.append(History.from_state(result["history"]))
        return found
