"""Run any number of trials over processes or a cluster, each once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibayes.checks import non_negative_integer, positive, positive_integer
from calibayes.errors import InvalidArgumentError
from calibayes.sweeps.backends import check_backend
from calibayes.sweeps.mlflow_log import MlflowLog
from calibayes.sweeps.records import Record
from calibayes.sweeps.runner import Runner, StoredResult
from calibayes.sweeps.settings_grid import checked, varying
from calibayes.sweeps.sweep_progress import SweepProgress
from calibayes.sweeps.sweep_results import Sweep, Trial, done_trial
from calibayes.sweeps.trial_identity import TrialFunction, function_and_name
from calibayes.sweeps.worker import Job
from calibayes.terminal import status_console

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["sweep"]

_LONGEST = 120  # bytes of a file's name that a label may have


def sweep(
    trial: TrialFunction | str,
    settings: Iterable[Mapping[str, Any]],
    folder: str | Path,
    *,
    version: int | str = 1,
    label: str | None = None,
    backend: str = "local",
    address: str | None = None,
    workers: int | None = None,
    threads: int | None = None,
    retries: int = 2,
    keep_failures: bool = False,
    check: Callable[[dict[str, Any]], object] | None = None,
    cost: Callable[[dict[str, Any]], float] | None = None,
    mlflow: str | None = None,
    progress: bool | Console = True,
) -> Sweep:
    """Run a function on many settings, on all cores or a cluster, and keep each result in its own file.

    Started again with the same folder, only missing and failed trials run. Sweeps that run at the same time in one folder share
    the work. A trial that raises is recorded with its error, and the others continue; so they do when a worker process is
    killed, and its trials run again.

    Args:
        trial: a function of a dict of settings that returns a dict of numbers, texts, arrays, tensors, lists and dicts, and
            depends on nothing else; or its name ``"module:function"``.
        settings: one dict for each trial, of numbers, texts, lists and dicts; `calibayes.grid` makes them.
        folder: the folder for results; created if necessary.
        version: raise it when the function changes its meaning, so that old results are not used.
        label: the beginning of the files' names; it may contain settings, as in ``"{scheme}-seed{seed}"``.
        backend: ``"local"`` for processes of this machine, ``"ray"`` or ``"dask"`` for those of a cluster.
        address: the address of the cluster; without one, Ray and Dask start one on this machine.
        workers: the number of trials to run in parallel, by default one per core. A single local worker is this process.
        threads: the number of threads per trial; by default cores divided by workers.
        retries: how often to retry a trial whose process was killed.
        keep_failures: do not retry trials that failed before.
        check: called with each trial's settings before any trial runs; it raises if they are wrong.
        cost: roughly how long a trial with these settings takes, in any unit, for a better estimate of the time left.
        mlflow: the name of an experiment of MLflow that each trial is logged to; see `docs/how-to/sweeps.md`.
        progress: show progress on standard error; or the console to show it on.

    Examples:
        >>> import tempfile
        >>> def parabola(settings):
        ...     return {"y": settings["x"] ** 2}
        >>> trials = calibayes.sweep(parabola, calibayes.grid(x=[1, 2, 3]), tempfile.mkdtemp(), workers=1, progress=False)
        >>> [(trial.settings["x"], trial.result["y"]) for trial in trials]
        [(1, 1), (2, 4), (3, 9)]
    """
    check_backend(backend)
    non_negative_integer("retries", retries)
    for name, value in (("workers", workers), ("threads", threads)):
        if value is not None:
            positive_integer(name, value)
    function, trial_name = function_and_name(trial)
    every = checked(settings)
    if check is not None:
        for each in every:
            check(each)
    call = _pickled(function, trial_name)
    jobs = [Job(call, trial_name, version, each, _label(label, trial_name, each)) for each in every]
    unique = list({job.key: job for job in jobs}.values())
    costs = {job.key: 1.0 if cost is None else positive("cost", cost(job.settings)) for job in unique}
    shown = SweepProgress((status_console() if progress else None) if isinstance(progress, bool) else progress)
    names = varying(every)
    trials: dict[str, Trial] = {}
    log: MlflowLog | None = None

    def done(job: Job, stored: StoredResult) -> None:
        record = stored.record
        trials[job.key] = done_trial(stored.path, record, job.settings)
        if log is not None:
            log.log(trials[job.key])
        shown.advance(costs[job.key], _note(job, names, record), keep=record.error is not None)

    with (
        shown.over(sum(costs.values()), len(unique)),
        Runner(
            Path(folder), backend=backend, address=address, workers=workers, threads=threads, retries=retries, note=shown.note
        ) as runner,
    ):
        log = None if mlflow is None else MlflowLog(mlflow, runner.store.folder, shown.note)
        known, missing = runner.take_stock(unique, keep_failures=keep_failures)
        for job in unique:
            if job.key in known:
                trials[job.key] = done_trial(*known[job.key], job.settings)
                shown.skip(costs[job.key], counted=True)
        if known:
            shown.note(f"From before: {len(known)} of {len(unique)} trials.")
        if log is not None:
            for kept in trials.values():
                log.log(kept)
        runner.run(missing, done)
    return Sweep(tuple(trials[job.key] for job in jobs), kept=len(known))


def _label(label: str | None, trial: str, settings: dict[str, Any]) -> str:
    """The beginning of a file's name, made of characters that file names may have."""
    if label is None:
        words = trial.rpartition(":")[2].rpartition(".")[2]
    else:
        try:
            words = label.format(**settings)
        except (KeyError, IndexError, ValueError, AttributeError, TypeError) as error:
            raise InvalidArgumentError(
                f"Expected the label {label!r} to name settings, like '{{scheme}}-seed{{seed}}', "
                f"but {error} is not one of {', '.join(settings)}."
            ) from error
    plain = re.sub(r"[^\w.+=-]+", "_", words).strip("._")
    return plain.encode()[:_LONGEST].decode(errors="ignore") or "trial"


def _pickled(function: TrialFunction, name: str) -> bytes:
    import cloudpickle

    try:
        pickled: bytes = cloudpickle.dumps(function)
    except Exception as error:  # any, since the objects in it decide
        raise InvalidArgumentError(
            f"Cannot send the trial {name!r} to workers: {error}. Make what it needs inside the function."
        ) from error
    return pickled


def _note(job: Job, names: list[str], record: Record) -> str:
    what = ", ".join(f"{name}={job.settings[name]}" for name in names if name in job.settings) or job.label
    return f"{what}: {f'{record.seconds:.1f} s' if record.error is None else f'failed, {record.error}'}"
