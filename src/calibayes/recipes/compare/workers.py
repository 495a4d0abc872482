"""Jobs spread over the cores, one thread each: the same bits come out however many cores there are."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import TypeVar

import torch

from calibayes.errors import CalibayesError

__all__ = ["default_workers", "spread", "started"]

_MOST = 4  # each holds a torch of its own in memory

Item = TypeVar("Item")
Result = TypeVar("Result")


def default_workers() -> int:
    """One for each core that this process may use, up to four."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, _MOST)


@contextmanager
def started(workers: int) -> Iterator[Executor | None]:
    """Worker processes, stopped at the end; none for one worker, whose jobs run here, on one thread."""
    if workers == 1:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield None
        finally:
            torch.set_num_threads(threads)
        return
    # Spawned, not forked: a fork of a process whose torch has already run threads may hang.
    context = multiprocessing.get_context("spawn")
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_ready)
    try:
        yield pool
    except BaseException:  # Ctrl-C above all: nobody waits for trainings whose results are not wanted any more
        for worker in set(multiprocessing.active_children()) - others:
            worker.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def spread(
    pool: Executor | None, job: Callable[[Item], Result], items: Iterable[Item], done: Callable[[Result], None]
) -> list[Result]:
    """``job`` of every item, in the order of the items; ``done`` is told of each result as it comes."""
    if pool is None:
        results = []
        for item in items:
            results.append(job(item))
            done(results[-1])
        return results
    try:
        with _ctrl_c_is_ours():
            futures = [pool.submit(job, item) for item in items]
        for future in as_completed(futures):
            done(future.result())
    except BrokenProcessPool as error:
        raise CalibayesError(
            "A worker process ended before its time, perhaps for want of memory. Close others, and try again."
        ) from error
    return [future.result() for future in futures]


def _ready() -> None:
    """What a worker does first: take one thread, and see to it that it does not outlive the process it works for."""
    torch.set_num_threads(1)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def _ctrl_c_is_ours() -> Iterator[None]:
    """Processes that start in here do not hear Ctrl-C, which a terminal sends to all: this process ends them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
