"""The work of a worker: lock a trial, run it unless its result exists, and store the result."""

from __future__ import annotations

import copy
import os
import pickle
import socket
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import torch

from calibayes.errors import InvalidArgumentError
from calibayes.sweeps.records import DamagedError, Failure, Record, Store, StoredResult, signature, storable
from calibayes.sweeps.results_folder import machine, versions
from calibayes.sweeps.trial_identity import result_key
from calibayes.sweeps.trial_locks import lock_path, trial_lock
from calibayes.sweeps.worker_process import serve, serves

__all__ = ["Job", "Outcome", "WorkerContext", "keep", "new_record", "now", "perform", "stored_result"]


@dataclass(frozen=True)
class Job:
    """One trial as it is sent to a worker."""

    call: bytes  # the pickled function; unpickled once the trial is locked, since that imports its module
    trial: str  # the function's name
    version: int | str  # the version of the function
    settings: dict[str, Any]  # the settings it is called with
    label: str  # the beginning of the file's name
    failed: tuple[int, int] | None = None  # the signature of the file of an earlier failure, which does not count as a result

    @property
    def key(self) -> str:
        """The key of the result in the names of files."""
        return result_key(self.trial, self.version, self.settings)


@dataclass(frozen=True)
class WorkerContext:
    """The sweep that a worker works for."""

    folder: Path  # for the results
    sweep: str  # a unique name for this sweep
    pid: int  # the process that started it
    threads: int | None  # threads per trial; None leaves the number as it is
    local: bool  # True if workers are processes of this machine, which end with the one that started them


@dataclass(frozen=True)
class Outcome:
    """The outcome of a trial."""

    key: str  # of the trial
    # It ran; its result existed; another sweep is running it; its process was killed.
    what: Literal["done", "known", "busy", "died"]
    record: Record | None = None  # for a worker that cannot see the folder, and so could not write it


def perform(job: Job, context: WorkerContext, wait: bool) -> Outcome:
    """Run a trial and store its result, unless it exists, or another process is running it and we do not ``wait``."""
    with _prepared_process(context):
        if not lock_path(context.folder, context.sweep).exists():
            # A machine that cannot see the folder: the process that started the sweep writes the result.
            return Outcome(job.key, "done", _run(job, context))
        store = Store(context.folder)
        with trial_lock(lock_path(context.folder, job.key), context.sweep, wait=wait) as ours:
            if not ours:
                return Outcome(job.key, "busy")
            if stored_result(store, job) is not None:
                return Outcome(job.key, "known")
            keep(store, job, _run(job, context))
            return Outcome(job.key, "done")


def keep(store: Store, job: Job, record: Record) -> None:
    """Write a record; a result that no file can hold becomes a failure that says so."""
    try:
        store.write(job.label, record)
    except InvalidArgumentError:  # the folder cannot be written to
        raise
    except (ValueError, TypeError, RuntimeError) as raised:
        store.write(job.label, replace(record, result=None, error=_failure(raised)))


def new_record(
    job: Job, result: dict[str, Any] | None, error: Failure | None, started: str, seconds: float, threads: int | None
) -> Record:
    """The record of a trial that has just ended."""
    on = machine(host=socket.gethostname(), threads=threads)
    return Record(job.trial, job.version, job.settings, result, error, started, seconds, versions(), on)


def now() -> str:
    """The current time as a text."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _run(job: Job, context: WorkerContext) -> Record:
    started, begin = now(), time.monotonic()
    result, error = None, None
    try:
        function = pickle.loads(job.call)
        returned = function(copy.deepcopy(job.settings))
        if not isinstance(returned, Mapping):
            raise TypeError(f"Expected the trial to return a dict, but got {returned!r} ({type(returned).__name__}).")
        result = storable(returned)
    except BaseException as raised:  # sys.exit() in a trial ends the trial, not its worker
        if isinstance(raised, KeyboardInterrupt) and not serves(context.pid):
            raise
        error = _failure(raised)
    return new_record(job, result, error, started, time.monotonic() - begin, context.threads)


def _failure(raised: BaseException) -> Failure:
    try:
        message = str(raised)
    except Exception:  # a user's error class may have a broken __str__
        message = "an error that cannot be shown"
    return Failure(type(raised).__name__, message, traceback.format_exc())


def stored_result(store: Store, job: Job, damaged: Callable[[DamagedError], None] = lambda error: None) -> StoredResult | None:
    """The job's result, unless it is missing, damaged, or the failure that the sweep found when it started."""
    path = store.find(job.key, job.label)
    try:
        record = None if path is None else store.read(path)
    except DamagedError as error:
        damaged(error)
        return None
    if path is None or record is None or (record.error is not None and job.failed == signature(path)):
        return None
    return StoredResult(path, record)


@contextmanager
def _prepared_process(context: WorkerContext) -> Iterator[None]:
    """Set the number of threads; a worker process leaves Ctrl-C to the process that started it."""
    before = torch.get_num_threads()
    if context.threads is not None:
        torch.set_num_threads(context.threads)
    if os.getpid() != context.pid and context.local:
        serve(context.pid)
    try:
        yield
    finally:
        torch.set_num_threads(before)
