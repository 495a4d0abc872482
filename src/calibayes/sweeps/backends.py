"""The backends of sweeps: local processes, a Ray cluster or a Dask cluster, each as a backend of joblib."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from calibayes.errors import InvalidArgumentError
from calibayes.sweeps.worker import Job, Outcome, WorkerContext, perform
from calibayes.sweeps.worker_process import ctrl_c_is_ours

__all__ = ["BACKENDS", "REPLACED", "BrokenPoolError", "Pool", "check_backend", "cores", "opened"]

BACKENDS = ("local", "ray", "dask")
REPLACED = "A worker stopped while some jobs were given to the executor"
"""A warning of joblib: a worker whose memory has grown is replaced between two jobs, which does no harm."""


class BrokenPoolError(Exception):
    """A worker process ended unexpectedly, and all others with it."""


@dataclass(frozen=True)
class Pool:
    """Workers that run trials."""

    workers: int  # the number of trials that run in parallel
    local: bool  # True for processes of this machine, which we start and end
    threads: int | None  # per trial
    config: dict[str, Any]  # of joblib
    pre_dispatch: int | str = "2 * n_jobs"  # trials that are handed over at a time; a cluster would run all that it gets

    def outcomes(self, jobs: Sequence[Job], context: WorkerContext, *, wait: bool) -> Generator[Outcome, None, None]:
        """Run the jobs, and yield the outcome of each when it ends."""
        from joblib import Parallel, delayed, parallel_config

        with parallel_config(**self.config):
            parallel = Parallel(
                self.workers, return_as="generator_unordered", pre_dispatch=self.pre_dispatch, batch_size=1, max_nbytes=None
            )
        with ctrl_c_is_ours():
            outcomes = parallel(delayed(perform)(job, context, wait) for job in jobs)
        try:
            for outcome in outcomes:  # noqa: UP028, since `yield from` would close it with a warning
                yield outcome
        except BrokenProcessPool as error:
            raise BrokenPoolError(str(error)) from error
        finally:
            # Do not wait for trials whose results are no longer wanted.
            with suppress(KeyboardInterrupt, StopIteration):
                outcomes.throw(KeyboardInterrupt())


def check_backend(backend: str) -> None:
    """Raise unless the name is one of `BACKENDS`."""
    if backend not in BACKENDS:
        raise InvalidArgumentError(f"Expected `backend` to be one of {', '.join(map(repr, BACKENDS))}, but got {backend!r}.")


def cores() -> int:
    """Return the number of cores that this process may use."""
    from joblib import cpu_count

    return int(cpu_count())


@contextmanager
def opened(backend: str, address: str | None, workers: int | None, threads: int | None) -> Iterator[Pool]:
    """Workers of one of `BACKENDS`; processes that were started for them end with the context."""
    if backend == "local":
        with _local(workers, threads) as pool:
            yield pool
        return
    from calibayes.sweeps.clusters import ClusterBackend, open_cluster

    threads = 1 if threads is None else threads
    with open_cluster(backend, address, workers, threads) as cluster:
        yield Pool(cluster.workers, False, threads, {"backend": ClusterBackend(cluster)}, pre_dispatch=cluster.workers)


@contextmanager
def _local(workers: int | None, threads: int | None) -> Iterator[Pool]:
    workers = cores() if workers is None else workers
    threads = max(1, cores() // workers) if threads is None else threads
    config = {"backend": "loky", "inner_max_num_threads": threads}
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=REPLACED)
            yield Pool(workers, True, threads, config)
    finally:
        if workers > 1:
            from joblib.externals.loky import get_reusable_executor

            get_reusable_executor(reuse=True).shutdown(wait=True, kill_workers=True)
