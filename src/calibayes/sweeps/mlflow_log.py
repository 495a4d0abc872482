"""Log trials to MLflow: parameters, numbers, epochs and errors, each trial once."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from calibayes.errors import InvalidArgumentError
from calibayes.extras import require_package
from calibayes.sweeps.sweep_results import Trial, single_values

__all__ = ["MlflowLog"]

_KEY = "calibayes.key"
_AT_ONCE = {"metrics": 1000, "params": 100, "tags": 100}  # entries per request
_LONGEST = 6000  # characters of a parameter


class MlflowLog:
    """An experiment of MLflow that trials are logged to.

    It is stored on the server that ``MLFLOW_TRACKING_URI`` names, or without that variable in files, in ``mlruns`` in the
    folder of the sweep. A finished trial, known by its key, is not logged again. ``note`` is called when MLflow can no longer
    be reached, which does not stop the sweep.
    """

    def __init__(self, experiment: str, folder: Path, note: Callable[[str], None]) -> None:
        mlflow = require_package("mlflow", "Logging to MLflow")
        self._entities = require_package("mlflow.entities", "Logging to MLflow", extra="mlflow")
        self._note, self._silent = note, False
        self._errors = (mlflow.exceptions.MlflowException, OSError)
        self.uri = os.environ.get("MLFLOW_TRACKING_URI") or (folder.absolute() / "mlruns").as_uri()
        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")  # newer versions need it to keep files
        try:
            with _quiet():
                self._client = mlflow.MlflowClient(self.uri)
                known = self._client.get_experiment_by_name(experiment)
                self._experiment = self._client.create_experiment(experiment) if known is None else known.experiment_id
                self._known = set(self._finished())
        except self._errors as error:
            raise InvalidArgumentError(
                f"Cannot log to the experiment {experiment!r} of MLflow at {self.uri!r}: {error}. Is MLFLOW_TRACKING_URI right?"
            ) from error

    def log(self, trial: Trial) -> None:
        """Log a trial, unless that was done before."""
        if trial.record.key in self._known:
            return
        try:
            with _quiet():
                self._log(trial)
        except self._errors as error:
            if not self._silent:
                self._note(f"MLflow at {self.uri} rejects a trial, which is still stored in its file: {error}")
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
            for start in range(0, len(entries), size := _AT_ONCE[kind]):
                self._client.log_batch(run.info.run_id, **{kind: entries[start : start + size]})
        self._client.set_terminated(run.info.run_id, "FINISHED" if record.error is None else "FAILED", end)

    def _finished(self) -> Iterator[str]:
        """The keys of the finished trials."""
        page = None
        while True:
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


def _quiet() -> warnings.catch_warnings[None]:
    """Silence MLflow's warnings about keeping files."""
    return warnings.catch_warnings(action="ignore", category=FutureWarning)
