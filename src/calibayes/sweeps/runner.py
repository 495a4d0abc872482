"""Run trials until all are done, in spite of killed workers and beside other sweeps in the same folder."""

from __future__ import annotations

import os
import uuid
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from calibayes.errors import SweepError
from calibayes.sweeps.backends import BrokenPoolError, opened
from calibayes.sweeps.records import DamagedError, Failure, Store, StoredResult, signature
from calibayes.sweeps.trial_locks import lock_owner, lock_path, release_abandoned, trial_lock
from calibayes.sweeps.worker import Job, Outcome, WorkerContext, keep, new_record, now, stored_result

__all__ = ["DIED", "Runner", "StoredResult"]

DIED = "WorkerDied"
"""The type of the failure of a trial whose process ended unexpectedly."""

_DEATH = "A worker process ended unexpectedly; its trials run again."

Note = Callable[[str], None]


Done = Callable[[Job, StoredResult], None]


class Runner:
    """Workers and a folder for their results, as a context; `run` may be called several times in it.

    When a worker is killed, a pool of local processes ends as a whole, and any of the running trials may be the cause. Each of
    them runs again, after all others and in ever smaller groups, so that one which kills its worker every time does not take
    others with it; it is given up when it ran alone and has been started ``retries + 1`` times.

    Arguments are those of `calibayes.sweep`; ``note`` is called with each line that a user should see.
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
            release_abandoned(self.store.folder)  # those of workers that we stopped

    def take_stock(self, jobs: Sequence[Job], *, keep_failures: bool = False) -> tuple[dict[str, StoredResult], list[Job]]:
        """The results that exist, by key, and the jobs to run: those without a result, and those that failed."""
        records = self.store.records(lambda _, error: self._report_damage(error), {job.key for job in jobs})
        stored = {each.record.key: each for each in records}
        results, missing = {}, []
        for job in jobs:
            known = stored.get(job.key)
            if known is None:
                missing.append(job)
            elif known.record.error is not None and not keep_failures:
                missing.append(replace(job, failed=signature(known.path)))
            else:
                results[job.key] = known
        return results, missing

    def _report_damage(self, error: DamagedError) -> None:
        self._note(f"{error}. It is computed again.")

    def run(self, jobs: Sequence[Job], done: Done) -> None:
        """Run the jobs, and call ``done`` with each as soon as its record exists."""
        if not jobs:
            return
        # Trials that were running when an earlier sweep was killed come last: they may have been the cause.
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
                for job in left.values():
                    self._finish_if_stored(job, done)
                raise
            except BrokenPoolError:
                unfinished = [job for job in left.values() if not self._finish_if_stored(job, done)]
                suspects = [job for job in unfinished if self._was_running(job)]
                innocent = [job for job in unfinished if job not in suspects]
                failed_starts = 0 if suspects or len(unfinished) < before else failed_starts + 1
                if failed_starts > self._retries:
                    times = f"Worker processes ended before they began a trial, {failed_starts} times in a row."
                    raise SweepError(f"{times} Is there enough memory? Finished trials are kept.") from None
                self._note(_DEATH)
                batches.extendleft([innocent] if innocent else [])
                batches += self._after_death(suspects, done)

    def _finish(self, job: Job, outcome: Outcome, done: Done) -> None:
        if outcome.record is not None:
            keep(self.store, job, outcome.record)
        if not self._finish_if_stored(job, done):
            raise SweepError(f"The result {job.label}-{job.key} was in {str(self.store.folder)!r}, but has disappeared.")

    def _finish_if_stored(self, job: Job, done: Done) -> bool:
        stored = stored_result(self.store, job, self._report_damage)
        if stored is not None:
            done(job, stored)
        return stored is not None

    def _was_running(self, job: Job) -> bool:
        return lock_owner(lock_path(self.store.folder, job.key)) == self._context.sweep

    def _after_death(self, suspects: list[Job], done: Done) -> list[list[Job]]:
        """The suspects in smaller groups than before; one that ran alone may be given up."""
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
        error = Failure(DIED, f"its process ended unexpectedly, {self._deaths[job.key]} times; perhaps memory ran out.")
        with trial_lock(lock_path(self.store.folder, job.key), self._context.sweep, wait=True):
            self.store.write(job.label, new_record(job, None, error, now(), 0.0, self._context.threads))
        self._finish_if_stored(job, done)
