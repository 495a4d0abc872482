"""Trials in MLflow: parameters, numbers, epochs and errors, each trial once."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

from calibayes.errors import InvalidArgumentError
from calibayes.extras import require_package
from calibayes.sweeps.sweep_results import Trial, single_values

__all__ = ["MlflowLog"]

_KEY = "calibayes.key"
_AT_ONCE = {"metrics": 1000, "params": 100, "tags": 100}  # what one request may hold
_LONGEST = 6000  # of the text of a parameter


class MlflowLog:
    """An experiment of MLflow that trials are logged to.

    It is kept by the server that ``MLFLOW_TRACKING_URI`` names, or without that variable in files: in ``mlruns`` in the
    folder of the sweep. A trial is known by its key: one that is there as finished is not logged again.

    Args:
        experiment: its name; it is made if need be.
        folder: the folder of the sweep.
        note: told when MLflow cannot be reached any more, which does not stop the sweep.
    """

    def __init__(self, experiment: str, folder: Path, note: Callable[[str], None]) -> None:
        mlflow = require_package("mlflow", "Logging to MLflow")
        self._entities = require_package("mlflow.entities", "Logging to MLflow", extra="mlflow")
        self._note, self._silent = note, False
        self._errors = (mlflow.exceptions.MlflowException, OSError)
        self.uri = os.environ.get("MLFLOW_TRACKING_URI") or (folder.absolute() / "mlruns").as_uri()
        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")  # without it, newer ones refuse to keep files
        try:
            with _quiet():
                self._client = mlflow.MlflowClient(self.uri)
                found = self._client.get_experiment_by_name(experiment)
                self._experiment = self._client.create_experiment(experiment) if found is None else found.experiment_id
                self._known = set(self._finished())
        except self._errors as error:
            raise InvalidArgumentError(
                f"Cannot log to the experiment {experiment!r} of MLflow at {self.uri!r}: {error}. Is MLFLOW_TRACKING_URI right?"
            ) from error

    def log(self, trial: Trial) -> None:
        """Log a trial, unless it is there."""
        if trial.record.key in self._known:
            return
        try:
            with _quiet():
                self._log(trial)
        except self._errors as error:
            if not self._silent:
                self._note(f"MLflow at {self.uri} does not take a trial, which is kept in its file all the same: {error}")
            self._silent = True
        else:
            self._known.add(trial.record.key)

    def _log(self, trial: Trial) -> None:
        record = trial.record
        begin = int(datetime.fromisoformat(record.started).timestamp() * 1000)
        end = begin + int(record.seconds * 1000)
        tags = {_KEY: record.key, "trial": record.trial, "version": record.version, **record.versions, **record.machine}
        run = self._client.create_run(self._experiment, start_time=begin, run_name=trial.path.stem, tags={_KEY: record.key})
        if record.error is not None:
            tags |= {"error": str(record.error), "traceback": record.error.traceback}
        result = trial.result or {}
        metrics = [
            self._entities.Metric(name, float(value), end, step)
            for step, values in _steps({**result, "seconds": record.seconds})
            for name, value in single_values(values).items()
            if isinstance(value, int | float)
        ]
        batches = {
            "metrics": metrics,
            "params": [self._entities.Param(name, str(value)[:_LONGEST]) for name, value in record.settings.items()],
            "tags": [self._entities.RunTag(name, str(value)) for name, value in tags.items()],
        }
        for kind, entries in batches.items():
            for part in _parts(entries, _AT_ONCE[kind]):
                self._client.log_batch(run.info.run_id, **{kind: part})
        self._client.set_terminated(run.info.run_id, "FINISHED" if record.error is None else "FAILED", end)

    def _finished(self) -> Iterator[str]:
        """The keys of the trials that are there."""
        page = None
        for _ in count():
            runs = self._client.search_runs([self._experiment], "attributes.status = 'FINISHED'", page_token=page)
            yield from (run.data.tags[_KEY] for run in runs if _KEY in run.data.tags)
            if (page := runs.token) is None:
                return


def _steps(result: Mapping[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The numbers of a result, at step 0, and those of each epoch, if it has a list of epochs."""
    epochs = result.get("epochs")
    yield 0, {name: value for name, value in result.items() if name != "epochs"}
    for place, epoch in enumerate(epochs if isinstance(epochs, list) else [], 1):
        if isinstance(epoch, dict):
            step = epoch.get("epoch", place)
            numbers = {f"epoch.{name}": value for name, value in epoch.items() if name != "epoch"}
            yield step if isinstance(step, int) else place, numbers


def _parts(entries: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    return (entries[place : place + size] for place in range(0, len(entries), size))


def _quiet() -> warnings.catch_warnings[None]:
    """MLflow warns that it would rather keep files elsewhere."""
    return warnings.catch_warnings(action="ignore", category=FutureWarning)
