"""Train the members of an ensemble separately: one after the other, or in several processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from calibayes.checks import integer
from calibayes.errors import InvalidArgumentError, SweepError
from calibayes.posterior.abstract_posterior import Posterior
from calibayes.posterior.ensemble import member_seed
from calibayes.training.history import History

__all__ = ["fit_members"]

Fit = Callable[..., History]


def fit_members(fit: Fit, ensemble: Posterior, arguments: Mapping[str, Any], workers: int) -> History:
    """Train every member with its own seed and checkpoint folder.

    Args:
        fit: `calibayes.fit`.
        ensemble: what is trained.
        arguments: those of ``fit`` besides the posterior, by name; ``seed`` is the ensemble's.
        workers: how many members are trained at a time, each in its own process.
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
    seed, checkpoint = integer("seed", arguments["seed"]), arguments["checkpoint"]
    if isinstance(checkpoint, str | PathLike) and str(checkpoint):  # anything else is for `fit` to reject
        checkpoint = Path(checkpoint) / f"member-{index + 1}"
    return {**arguments, "seed": member_seed(seed, index), "checkpoint": checkpoint}


def _in_processes(fit: Fit, ensemble: Posterior, calls: list[dict[str, Any]], workers: int) -> list[History]:
    """Members as trials of a sweep: a worker that is killed is started again."""
    import cloudpickle

    from calibayes.sweeps.runner import Runner, StoredResult
    from calibayes.sweeps.sweep_results import done_trial
    from calibayes.sweeps.worker import Job

    members = ensemble.members
    if any(call["on_epoch"] is not None for call in calls):
        raise InvalidArgumentError("`on_epoch` cannot look into other processes. Leave it out, or use `workers=1`.")

    def train(settings: dict[str, Any]) -> dict[str, Any]:
        index = settings["member"]
        history = fit(members[index], **{**calls[index], "group": None, "progress": False})
        return {"state": dict(members[index].state_dict()), "history": history.state()}

    results: dict[int, Any] = {}

    def done(job: Job, kept: StoredResult) -> None:
        trial = done_trial(kept.path, kept.record, job.settings)
        if trial.error is not None:
            raise SweepError(f"Training member {job.settings['member'] + 1} failed: {trial.error}")
        results[job.settings["member"]] = trial.result

    try:
        call = cloudpickle.dumps(train)
    except Exception as error:  # the user's objects may raise anything
        raise InvalidArgumentError(
            f"Members cannot be sent to other processes: {error}. Use `workers=1`, or functions that a module defines."
        ) from error
    jobs = [Job(call, "member", 1, {"member": index}, f"member-{index + 1}") for index in range(len(members))]
    with TemporaryDirectory() as folder, Runner(Path(folder), workers=workers) as runner:
        runner.run(jobs, done)
    for index, member in enumerate(members):
        member.load_state_dict({name: torch.as_tensor(value) for name, value in results[index]["state"].items()})
    return [History.from_state(results[index]["history"]) for index in range(len(members))]
