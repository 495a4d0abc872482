"""Save a training run to its checkpoint folder, and resume it: also in the middle of an epoch, to the same bits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calibayes.errors import CheckpointError
from calibayes.training.history import History

if TYPE_CHECKING:
    from calibayes.training.training_run import TrainingRun

__all__ = ["resume", "save_run"]


def resume(run: TrainingRun) -> None:
    """Go to where the newest checkpoint is, if there is one: the next batch of its epoch is the next to be trained on."""
    processes, folder = run.stepper.processes, run.folder
    state = None if folder is None else processes.from_first(folder.newest)
    if state is None:
        return
    done = state["place"][0]
    if done > run.epochs:
        raise CheckpointError(
            f"The checkpoint has {done} epochs behind it, more than `epochs={run.epochs}`. Use another folder, or more epochs."
        )
    try:
        _load(run, state)
    except (RuntimeError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"The checkpoint does not fit this run: {error}") from error


def save_run(run: TrainingRun) -> None:
    """Write all that `resume` needs, in the first process."""
    if run.folder is None or not run.stepper.processes.first:
        return
    average = run.hooks.average
    state = {
        "posterior": dict(run.stepper.posterior.state_dict()),
        "optimizer": run.stepper.optimizer.state_dict(),
        "scheduler": None if run.scheduler is None else run.scheduler.state_dict(),
        "scaler": run.stepper.scaler.state_dict(),
        "history": run.history.state(),
        "best": None if run.best is None else run.best.state(),
        "place": [run.epoch, run.batch, run.step, run.first_step],
        "average": None if average is None else average.state(),
        "ending": run.ending,
        "spent": run.spent,
    }
    run.folder.write(run.step, state)


def _load(run: TrainingRun, state: dict[str, Any]) -> None:
    run.stepper.posterior.load_state_dict(state["posterior"])
    run.stepper.optimizer.load_state_dict(state["optimizer"])
    run.stepper.scaler.load_state_dict(state["scaler"])
    if run.scheduler is not None:
        run.scheduler.load_state_dict(state["scheduler"])
    if run.best is not None and state["best"] is not None:
        run.best.load(state["best"])
    run.history = History.from_state(state["history"])
    run.epoch, run.batch, run.step, run.first_step = state["place"]
    if run.hooks.average is not None:
        run.hooks.average.load(state["average"])
    early = "early" if state.get("stopping_early") else None  # version 0.1 had no "ending"
    run.ending, run.spent = state.get("ending", early), state["spent"]
