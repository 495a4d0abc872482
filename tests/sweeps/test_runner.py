"""Which trial ended the workers, and how often each is begun: worked out for many more workers than a test can start."""

from __future__ import annotations

import pickle
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from calibayes.errors import SweepError
from calibayes.sweeps import runner as runner_module
from calibayes.sweeps.backends import BrokenPoolError, opened
from calibayes.sweeps.records import Record
from calibayes.sweeps.runner import DIED, Runner
from calibayes.sweeps.trial_locks import lock_path
from calibayes.sweeps.worker import Job, Outcome, WorkerContext, perform


def number(settings: dict[str, Any]) -> dict[str, Any]:
    return {"y": settings["n"]}


JOBS = [Job(pickle.dumps(number), "tests:number", 1, {"n": n}, "number") for n in range(20)]


class Fragile:
    """Eight workers that work in step; a killer among their trials ends them all, and leaves all eight claims behind."""

    workers, local, threads = 8, True, 1

    def __init__(self, killers: Sequence[int], leaves_claims: bool = True) -> None:
        self.killers, self.leaves_claims = killers, leaves_claims
        self.begun: Counter[int] = Counter()

    def outcomes(self, jobs: Sequence[Job], context: WorkerContext, *, wait: bool) -> Iterator[Outcome]:
        for place in range(0, len(jobs), self.workers):
            wave = jobs[place : place + self.workers]
            self.begun.update(job.settings["n"] for job in wave)
            if any(job.settings["n"] in self.killers for job in wave):
                for job in wave if self.leaves_claims else ():
                    lock_path(context.folder, job.key).write_text(context.sweep)
                raise BrokenPoolError
            for job in wave:
                yield perform(job, context, wait)


def swept(folder: Path, pool: Fragile, monkeypatch: pytest.MonkeyPatch, retries: int) -> list[Record]:
    @contextmanager
    def opened(*_: object) -> Iterator[Fragile]:
        yield pool

    monkeypatch.setattr(runner_module, "opened", opened)
    found: list[Record] = []
    with Runner(folder, retries=retries) as runner:
        runner.run(JOBS, lambda job, kept: found.append(kept.record))
    return found


@pytest.mark.parametrize("killers", [[3], [0, 1], [3, 11, 19]])
@pytest.mark.parametrize("retries", [0, 2, 5])
def test_killers_are_found_among_many_and_the_innocent_are_not_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killers: list[int], retries: int
) -> None:
    pool = Fragile(killers)
    found = swept(tmp_path, pool, monkeypatch, retries)
    assert sorted(record.settings["n"] for record in found) == list(range(20))
    assert sorted(record.settings["n"] for record in found if record.error is not None) == killers
    assert {record.error.type for record in found if record.error is not None} == {DIED}
    halvings = 3  # from eight to one
    assert all(pool.begun[n] <= max(retries, halvings) + 1 for n in killers)
    assert all(count <= 2 + halvings for n, count in pool.begun.items() if n not in killers)
    assert list(tmp_path.glob(".*")) == []


def test_workers_that_never_begin_end_the_sweep_with_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = Fragile(range(20), leaves_claims=False)
    with pytest.raises(SweepError, match="ended before they began a trial, 3 times in a row"):
        swept(tmp_path, pool, monkeypatch, retries=2)


def test_workers_that_do_not_see_the_folder_send_their_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def elsewhere(folder: Path, *others: Any) -> WorkerContext:
        return WorkerContext(tmp_path / "elsewhere", *others)

    monkeypatch.setattr(runner_module, "WorkerContext", elsewhere)
    found: list[Record] = []
    with Runner(tmp_path / "here", workers=1, threads=1) as runner:
        runner.run(JOBS, lambda job, kept: found.append(kept.record))
    assert [record.result for record in found] == [{"y": n} for n in range(20)]
    assert len(list((tmp_path / "here").glob("*.json"))) == 20
    assert not (tmp_path / "elsewhere").exists()


def test_a_worker_that_is_replaced_for_its_memory_is_no_matter_for_a_warning() -> None:
    # Where warnings are errors, as here, the pool's own thread would end by it, and the sweep would wait forever.
    words = "A worker stopped while some jobs were given to the executor. This can be caused by a memory leak."
    with opened("local", None, 2, 1):
        warnings.warn(words, UserWarning, stacklevel=1)
    with pytest.raises(UserWarning, match="A worker stopped"):
        warnings.warn(words, UserWarning, stacklevel=1)
