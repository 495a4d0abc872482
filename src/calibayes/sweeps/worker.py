"""The work of a worker: lock a trial, run it unless its result exists, and store the result."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import socket
import threading
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import torch

from calibayes.errors import InvalidArgumentError
from calibayes.sweeps.identity import key
from calibayes.sweeps.records import DamagedError, Failure, Record, Store, signature, storable
from calibayes.sweeps.results_folder import machine, versions
from calibayes.sweeps.trial_locks import lock_path, trial_lock

__all__ = ["Job", "Outcome", "WorkerContext", "keep", "new_record", "now", "perform"]


@dataclass(frozen=True)
class Job:
    """One trial as it travels to a worker.

    Attributes:
        call: the pickled function; it is unpickled after the trial is claimed, since that imports its module.
        trial: the function's name.
        version: the version of what it means.
        settings: what it is called with.
        label: the beginning of the file's name.
        failed: the signature of the file of an earlier failure, which is not taken for a result; ``None`` if there is none.
    """

    call: bytes
    trial: str
    version: int | str
    settings: dict[str, Any]
    label: str
    failed: tuple[int, int] | None = None

    @property
    def key(self) -> str:
        """The name of the result in files' names."""
        return key({"trial": self.trial, "version": self.version, "settings": self.settings})


@dataclass(frozen=True)
class WorkerContext:
    """The sweep that a worker works for.

    Attributes:
        folder: where the results are.
        sweep: a name for this sweep, unlike any other's.
        pid: the process that started it.
        threads: how many threads a trial may use; ``None`` leaves it as it is.
        local: whether workers are processes of this machine that should end with the one that started them.
    """

    folder: Path
    sweep: str
    pid: int
    threads: int | None
    local: bool


@dataclass(frozen=True)
class Outcome:
    """The outcome of a trial.

    Attributes:
        key: which it was.
        what: ``"done"`` if it ran, ``"known"`` if its result was there, ``"busy"`` if another sweep is running it,
            ``"died"`` if its process ended before its time.
        record: the record, if the worker does not see the folder and could not write it down.
    """

    key: str
    what: Literal["done", "known", "busy", "died"]
    record: Record | None = None


def perform(job: Job, context: WorkerContext, wait: bool) -> Outcome:
    """Run a trial and keep its result, unless it is there, or is being made by another process and we do not ``wait``."""
    with _settled(context):
        if not lock_path(context.folder, context.sweep).exists():
            # A machine that does not see the folder: whoever started the sweep writes the result down.
            return Outcome(job.key, "done", _run(job, context))
        store = Store(context.folder)
        with trial_lock(lock_path(context.folder, job.key), context.sweep, wait=wait) as ours:
            if not ours:
                return Outcome(job.key, "busy")
            if _is_known(store, job):
                return Outcome(job.key, "known")
            keep(store, job, _run(job, context))
            return Outcome(job.key, "done")


def keep(store: Store, job: Job, record: Record) -> None:
    """Write a record down; a result that no file can hold is kept as a failure that says so."""
    try:
        store.write(job.label, record)
    except InvalidArgumentError:  # the folder's fault
        raise
    except (ValueError, TypeError, RuntimeError) as raised:
        store.write(job.label, replace(record, result=None, error=_failure(raised)))


def new_record(
    job: Job,
    *,
    result: dict[str, Any] | None = None,
    error: Failure | None = None,
    started: str,
    seconds: float,
    threads: int | None,
) -> Record:
    """The record of a trial that ended here and now."""
    return Record(
        trial=job.trial,
        version=job.version,
        settings=job.settings,
        result=result,
        error=error,
        started=started,
        seconds=seconds,
        versions=versions(),
        machine=machine(host=socket.gethostname(), threads=threads),
    )


def now() -> str:
    """The time, for the record."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _run(job: Job, context: WorkerContext) -> Record:
    started, begin = now(), time.monotonic()
    result, error = None, None
    try:
        function = pickle.loads(job.call)
        found = function(copy.deepcopy(job.settings))
        if not isinstance(found, Mapping):
            raise TypeError(f"Expected the trial to return a dict, but got {found!r} ({type(found).__name__}).")
        result = storable(found)
    except BaseException as raised:  # sys.exit() in a trial ends the trial, not its worker
        if isinstance(raised, KeyboardInterrupt) and context.pid not in _serving:
            raise
        error = _failure(raised)
    seconds = time.monotonic() - begin
    return new_record(job, result=result, error=error, started=started, seconds=seconds, threads=context.threads)


def _failure(raised: BaseException) -> Failure:
    try:
        message = str(raised)
    except Exception:  # an error of the user's own may not know how to say itself
        message = "an error that cannot be shown"
    return Failure(type(raised).__name__, message, traceback.format_exc())


def _is_known(store: Store, job: Job) -> bool:
    """Return True if there is a result other than the failure that the sweep found when it started."""
    path = store.find(job.key, job.label)
    if path is None:
        return False
    try:
        record = store.read(path)
    except DamagedError:
        return False
    return record is not None and (record.error is None or signature(path) != job.failed)


@contextmanager
def _settled(context: WorkerContext) -> Iterator[None]:
    """Take as many threads as are given; a process of its own leaves Ctrl-C to the one that started it."""
    before = torch.get_num_threads()
    if context.threads is not None:
        torch.set_num_threads(context.threads)
    if os.getpid() != context.pid and context.local:
        _serve(context.pid)
    try:
        yield
    finally:
        torch.set_num_threads(before)


_serving: set[int] = set()


def _serve(master: int) -> None:
    if master in _serving:
        return
    _serving.add(master)
    os.environ.pop("WORLD_SIZE", None)  # a trial is one process's, whoever started the sweep
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(master,), daemon=True).start()


def _end_with(master: int) -> None:
    """End this process when the one that started it is gone."""
    while os.getppid() == master:
        time.sleep(0.5)
    os._exit(1)
