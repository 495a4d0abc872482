"""Any number of trials over processes or a cluster, each done once, whatever happens in between."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibayes.checks import non_negative_integer, positive, positive_integer
from calibayes.errors import InvalidArgumentError
from calibayes.sweeps.backends import BACKENDS
from calibayes.sweeps.identity import Function, function_and_name
from calibayes.sweeps.mlflow_log import MlflowLog
from calibayes.sweeps.records import Record
from calibayes.sweeps.runner import Runner, StoredResult
from calibayes.sweeps.settings_grid import checked, varying
from calibayes.sweeps.sweep_progress import SweepProgress
from calibayes.sweeps.sweep_results import Sweep, Trial, done_trial
from calibayes.sweeps.worker import Job

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["sweep"]

_LONGEST = 120  # bytes of a file's name that a label may have


def sweep(
    trial: Function | str,
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
    """Run a function on many settings, on all cores or a cluster, and keep each result in a file of its own.

    Started again with the same folder, only what is missing runs, and what failed. Sweeps that run at the same time in one
    folder share the work. A trial that raises is recorded with its error, and the others go on; so do they when a worker
    process is killed, and what was under way runs again.

    Args:
        trial: a function of a dict of settings that returns a dict of numbers, texts, arrays, tensors, lists and dicts, and
            depends on nothing else; or its name ``"module:function"``.
        settings: one dict for each trial, of numbers, texts, lists and dicts; `calibayes.grid` makes them.
        folder: where the results go; it is made if need be.
        version: what to raise when the function has come to mean something else, so that old results are not taken for new.
        label: the beginning of the files' names, for people; it may hold settings, as in ``"{scheme}-seed{seed}"``.
        backend: ``"local"`` for processes of this machine, ``"ray"`` or ``"dask"`` for those of a cluster.
        address: that of the cluster; without one, Ray and Dask start one on this machine.
        workers: how many trials at a time; by default one per core. With one local worker, trials run in this process.
        threads: how many threads each trial may use; by default the cores are shared out among the workers.
        retries: how many times a trial is run again after its process was killed.
        keep_failures: whether trials that failed before are left as they are, instead of being tried again.
        check: called with each trial's settings before any trial runs; it raises if they are wrong.
        cost: roughly how long a trial with these settings takes, in any unit; it makes the time left more exact.
        mlflow: the name of an experiment of MLflow that each trial is logged to; see `docs/how-to/sweeps.md`.
        progress: whether to show on standard error how far it is; or where to show it.

    Examples:
        >>> import tempfile
        >>> def parabola(settings):
        ...     return {"y": settings["x"] ** 2}
        >>> found = calibayes.sweep(parabola, calibayes.grid(x=[1, 2, 3]), tempfile.mkdtemp(), workers=1, progress=False)
        >>> [(trial.settings["x"], trial.result["y"]) for trial in found]
        [(1, 1), (2, 4), (3, 9)]
    """
    if backend not in BACKENDS:
        raise InvalidArgumentError(f"Expected `backend` to be one of {', '.join(map(repr, BACKENDS))}, but got {backend!r}.")
    non_negative_integer("retries", retries)
    for name, value in (("workers", workers), ("threads", threads)):
        if value is not None:
            positive_integer(name, value)
    function, known_as = function_and_name(trial)
    every = checked(settings)
    if check is not None:
        for each in every:
            check(each)
    call = _pickled(function, known_as)
    jobs = [Job(call, known_as, version, each, _label(label, known_as, each)) for each in every]
    unique = list({job.key: job for job in jobs}.values())
    costs = {job.key: 1.0 if cost is None else positive("cost", cost(job.settings)) for job in unique}
    shown = SweepProgress(_console(progress))
    names = varying(every)
    found: dict[str, Trial] = {}
    log: MlflowLog | None = None

    def done(job: Job, kept: StoredResult) -> None:
        record = kept.record
        found[job.key] = done_trial(kept.path, record, job.settings)
        if log is not None:
            log.log(found[job.key])
        shown.advance(costs[job.key], _note(job, names, record), keep=record.error is not None)

    with (
        shown.over(sum(costs.values()), len(unique)),
        Runner(
            Path(folder),
            backend=backend,
            address=address,
            workers=workers,
            threads=threads,
            retries=retries,
            note=shown.note,
        ) as runner,
    ):
        log = None if mlflow is None else MlflowLog(mlflow, runner.store.folder, shown.note)
        there, missing = runner.take_stock(unique, keep_failures=keep_failures)
        for job in unique:
            if job.key in there:
                found[job.key] = done_trial(there[job.key].path, there[job.key].record, job.settings)
                shown.skip(costs[job.key], counted=True)
        if there:
            shown.note(f"From before: {len(there)} of {len(unique)} trials.")
        if log is not None:
            for known in found.values():
                log.log(known)
        runner.run(missing, done)
    return Sweep(tuple(found[job.key] for job in jobs), kept=len(there))


def _label(label: str | None, trial: str, settings: dict[str, Any]) -> str:
    """The beginning of a file's name, of letters that file names may have."""
    if label is None:
        words = trial.rpartition(":")[2].rpartition(".")[2]
    else:
        try:
            words = label.format(**settings)
        except (KeyError, IndexError, ValueError, AttributeError, TypeError) as error:
            raise InvalidArgumentError(
                f"Expected the label {label!r} to name settings, like '{{scheme}}-seed{{seed}}', "
                f"but {error} is none of {', '.join(settings)}."
            ) from error
    plain = re.sub(r"[^\w.+=-]+", "_", words).strip("._")
    return plain.encode()[:_LONGEST].decode(errors="ignore") or "trial"


def _pickled(function: Function, name: str) -> bytes:
    """The function as workers get it."""
    import cloudpickle

    try:
        pickled: bytes = cloudpickle.dumps(function)
    except Exception as error:  # whatever the objects say that it holds
        raise InvalidArgumentError(
            f"Cannot send the trial {name!r} to workers: {error}. Make what it needs inside the function."
        ) from error
    return pickled


def _note(job: Job, names: list[str], record: Record) -> str:
    what = ", ".join(f"{name}={job.settings[name]}" for name in names if name in job.settings) or job.label
    return f"{what}: {f'{record.seconds:.1f} s' if record.error is None else f'failed, {record.error}'}"


def _console(progress: bool | Console) -> Console | None:
    from rich.console import Console

    if isinstance(progress, bool):
        return Console(stderr=True, highlight=False) if progress else None
    return progress
