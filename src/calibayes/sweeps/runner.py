"""Trials run until all are done: past workers that are killed, and beside other sweeps in the same folder."""

from __future__ import annotations

import os
import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from calibayes.errors import SweepError
from calibayes.sweeps.backends import BrokenPoolError, opened
from calibayes.sweeps.records import DamagedError, Failure, Record, Store, signature
from calibayes.sweeps.trial_locks import lock_owner, lock_path, release_abandoned, trial_lock
from calibayes.sweeps.worker import Job, Outcome, WorkerContext, keep, new_record, now

__all__ = ["DIED", "Runner", "StoredResult"]

DIED = "WorkerDied"
"""The type of the failure of a trial whose process ended before its time."""

_DEATH = "A worker process ended before its time; what was under way is run again."

Note = Callable[[str], None]


class StoredResult(NamedTuple):
    """A result on disk."""

    path: Path
    record: Record


Done = Callable[[Job, StoredResult], None]


class Runner:
    """Workers and a folder for their results, as a context; `run` may be called several times in it.

    When a worker is killed, a pool of local processes ends as a whole, and nobody knows which of the trials under way was
    the cause. Each of them runs again, after all others and in ever smaller company, so that one which kills its worker
    every time does not take others with it; it is given up when it was alone and has been under way ``retries + 1`` times.

    Args:
        folder: where the results go.
        backend: one of `BACKENDS`.
        address: that of the cluster.
        workers: how many trials at a time; with one local worker they run in this process.
        threads: how many threads each trial may use; by default the cores are shared out.
        retries: how many times a trial is run again after its process has ended before its time.
        note: told what a user should know, in words.
    """

    def __init__(
        self,
        folder: Path,
        *,
        backend: str = "local",
        address: str | None = None,
        workers: int | None = None,
        threads: int | None = None,
        retries: int = 2,
        note: Note | None = None,
    ) -> None:
        self.store = Store(folder.absolute())  # a trial may go to another folder
        self._where = (backend, address, workers, threads)
        self._retries = retries
        self._note = note or (lambda line: None)
        self._deaths: Counter[str] = Counter()

    def __enter__(self) -> Self:
        self.store.open()
        folder, name = self.store.folder, f"sweep-{uuid.uuid4().hex[:12]}"
        self._left_behind = release_abandoned(folder)
        with ExitStack() as stack:
            stack.enter_context(trial_lock(lock_path(folder, name), name, wait=True))
            self._pool = stack.enter_context(opened(*self._where))
            self._stack = stack.pop_all()
        self._context = WorkerContext(folder, name, os.getpid(), self._pool.threads, self._pool.local)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        try:
            return self._stack.__exit__(kind, error, trace)
        finally:
            release_abandoned(self.store.folder)  # workers that were stopped were not to blame

    def take_stock(self, jobs: Sequence[Job], *, keep_failures: bool = False) -> tuple[dict[str, StoredResult], list[Job]]:
        """The results that are there, by key, and the jobs that are to be run: those without one, and those that failed."""
        there, found, missing = self._there(jobs), {}, []
        for job in jobs:
            kept = there.get(job.key)
            if kept is None:
                missing.append(job)
            elif kept.record.error is not None and not keep_failures:
                missing.append(replace(job, failed=signature(kept.path)))
            else:
                found[job.key] = kept
        return found, missing

    def _there(self, jobs: Sequence[Job]) -> dict[str, StoredResult]:
        """The files with results of these jobs, by key; a damaged one is told of and counts as not there."""
        found = self.store.records(lambda _, error: self._tell(error), {job.key for job in jobs})
        return {record.key: StoredResult(path, record) for path, record in found}

    def _tell(self, error: DamagedError) -> None:
        self._note(f"{error}. It is computed again.")

    def run(self, jobs: Sequence[Job], done: Done) -> None:
        """Run the jobs, and tell ``done`` of each as its record is there."""
        if not jobs:
            return
        # What was under way when an earlier sweep was killed comes last: it may have been the cause.
        ordered = sorted(jobs, key=lambda job: job.key in self._left_behind)
        batches, waiting = deque([ordered]), list[Job]()
        failed_starts = 0
        while batches or waiting:
            wait = not batches
            if wait:
                self._note(f"Another sweep is running {len(waiting)} of the trials; waiting for it.")
                batches.append(waiting)
                waiting = []
            left = {job.key: job for job in batches.popleft()}
            before = len(left)
            try:
                with closing(self._pool.outcomes(list(left.values()), self._context, wait=wait)) as outcomes:
                    for outcome in outcomes:
                        job = left.pop(outcome.key)
                        if outcome.what == "busy":
                            waiting.append(job)
                        elif outcome.what == "died":
                            self._note(_DEATH)
                            batches += self._after_death([job], done)
                        else:
                            self._finish(job, outcome, done)
            except KeyboardInterrupt:
                self._without_finished(left.values(), done)
                raise
            except BrokenPoolError:
                unfinished = self._without_finished(left.values(), done)
                suspects = [job for job in unfinished if self._was_under_way(job)]
                innocent = [job for job in unfinished if not self._was_under_way(job)]
                failed_starts = 0 if suspects or len(unfinished) < before else failed_starts + 1
                if failed_starts > self._retries:
                    raise SweepError(
                        f"Worker processes end before they begin a trial, {failed_starts} times in a row. "
                        "Is there enough memory? What is finished is kept."
                    ) from None
                self._note(_DEATH)
                batches.extendleft([innocent] if innocent else [])
                batches += self._after_death(suspects, done)

    def _without_finished(self, jobs: Iterable[Job], done: Done) -> list[Job]:
        """Those of the jobs that are not finished; of the others, we had not been told yet."""
        return [job for job in jobs if not self._finish_if_there(job, done)]

    def _finish(self, job: Job, outcome: Outcome, done: Done) -> None:
        if outcome.record is not None:
            keep(self.store, job, outcome.record)
        if not self._finish_if_there(job, done):
            raise SweepError(f"The result {job.label}-{job.key} was in {str(self.store.folder)!r}, but is not there any more.")

    def _finish_if_there(self, job: Job, done: Done) -> bool:
        path = self.store.find(job.key, job.label)
        try:
            record = None if path is None else self.store.read(path)
        except DamagedError as error:
            self._tell(error)
            return False
        if path is None or record is None or (record.error is not None and job.failed == signature(path)):
            return False
        done(job, StoredResult(path, record))
        return True

    def _was_under_way(self, job: Job) -> bool:
        return lock_owner(lock_path(self.store.folder, job.key)) == self._context.sweep

    def _after_death(self, suspects: list[Job], done: Done) -> list[list[Job]]:
        """The suspects in smaller company than they were in; one that was alone may be given up."""
        for job in suspects:
            self._deaths[job.key] += 1
        if len(suspects) > 1:
            half = len(suspects) // 2
            return [suspects[:half], suspects[half:]]
        if suspects and self._deaths[suspects[0].key] > self._retries:
            self._give_up(suspects[0], done)
            return []
        return [suspects] if suspects else []

    def _give_up(self, job: Job, done: Done) -> None:
        times = self._deaths[job.key]
        error = Failure(
            DIED, f"the process that ran it ended before its time, {times} times: killed, perhaps for want of memory."
        )
        record = new_record(job, error=error, started=now(), seconds=0.0, threads=self._context.threads)
        with trial_lock(lock_path(self.store.folder, job.key), self._context.sweep, wait=True):
            self.store.write(job.label, record)
        self._finish_if_there(job, done)
