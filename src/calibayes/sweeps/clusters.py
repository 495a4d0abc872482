"""Ray and Dask clusters as a backend of joblib, one task per trial: a worker that dies takes no other trial with it."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from joblib.parallel import ParallelBackendBase

from calibayes.errors import InvalidArgumentError
from calibayes.extras import require_package
from calibayes.sweeps.worker import Outcome

__all__ = ["Cluster", "ClusterBackend", "open_cluster"]

_PATIENCE = 10.0  # seconds for a machine to answer


@dataclass(frozen=True)
class Cluster:
    """A cluster, as the backend sees it."""

    workers: int  # the number of trials it can run in parallel
    submit: Callable[[Callable[[], Any]], Any]  # run a function; returns a future
    cancel: Callable[[Any], None]  # stop the task of a future
    died: tuple[type[BaseException], ...]  # the errors that mean that the process, or the machine, of a task is gone
    cause: Callable[[BaseException], BaseException] = lambda error: error  # the worker's error without the cluster's wrapping


class ClusterBackend(ParallelBackendBase):  # type: ignore[misc]
    """A backend of joblib that sends each call to a cluster, and reports a dead worker as the outcome of its trial."""

    supports_retrieve_callback = True

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(nesting_level=0)
        self._cluster = cluster
        self._futures: set[Any] = set()

    def effective_n_jobs(self, n_jobs: int) -> int:
        """As many as requested; at least two, since joblib runs a single one itself."""
        return max(2, n_jobs)

    def submit(self, func: Any, callback: Callable[[Any], None]) -> Any:
        """Send the cluster a call of `perform`, the only one in ``func``."""
        ((_, (job, *_), _),) = func.items
        future = self._cluster.submit(func)
        self._futures.add(future)

        def done(finished: Any) -> None:
            self._futures.discard(finished)
            callback((job.key, finished))

        future.add_done_callback(done)
        return future

    def retrieve_result_callback(self, out: tuple[str, Any]) -> list[Outcome]:
        """Return the outcome of the trial."""
        key, future = out
        try:
            outcomes: list[Outcome] = future.result()
        except self._cluster.died:
            return [Outcome(key, "died")]
        except Exception as error:
            raise self._cluster.cause(error) from None
        return outcomes

    def abort_everything(self, ensure_ready: bool = True) -> None:
        """Stop all running tasks."""
        for future in list(self._futures):
            self._cluster.cancel(future)


def open_cluster(backend: str, address: str | None, workers: int | None, threads: int) -> AbstractContextManager[Cluster]:
    """Return the cluster of the backend ``"ray"`` or ``"dask"``, as a context."""
    return {"ray": _ray_cluster, "dask": _dask_cluster}[backend](address, workers, threads)


@contextmanager
def _ray_cluster(address: str | None, workers: int | None, threads: int) -> Iterator[Cluster]:
    """The Ray cluster at an address, or the one that this process is connected to, or a new one on this machine."""
    ray = require_package("ray", "The backend 'ray'")
    ours = not ray.is_initialized()
    if not ours and address not in (None, "auto", connected := ray.get_runtime_context().gcs_address):
        raise InvalidArgumentError(
            f"Expected the address {connected!r} of the Ray that this process is connected to, but got {address!r}. "
            "Leave it out, or call ray.shutdown() before."
        )
    address = address or os.environ.get("RAY_ADDRESS")
    if ours:
        _check_reachable("Ray", address)
        new = {"address": "local", "num_cpus": None if workers is None else workers * threads, "include_dashboard": False}
        try:
            ray.init(**({"address": address} if address else new), log_to_driver=False, logging_level="ERROR")
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise _unreachable("Ray", address, error) from error
    references: dict[Any, Any] = {}
    exceptions = ray.exceptions
    call = ray.remote(num_cpus=threads, max_retries=0)(lambda func: func())

    def submit(func: Callable[[], Any]) -> Any:
        reference = call.remote(func)
        future = reference.future()
        references[future] = reference
        future.add_done_callback(references.pop)
        return future

    def cancel(future: Any) -> None:
        if (reference := references.get(future)) is not None:
            ray.cancel(reference, force=True)

    try:
        yield Cluster(
            workers=workers or max(1, int(ray.cluster_resources().get("CPU", 1)) // threads),
            submit=submit,
            cancel=cancel,
            died=(exceptions.WorkerCrashedError, exceptions.OutOfMemoryError, exceptions.NodeDiedError),
            cause=lambda error: getattr(error, "cause", None) or error,
        )
    finally:
        if ours:
            ray.shutdown()


@contextmanager
def _dask_cluster(address: str | None, workers: int | None, threads: int) -> Iterator[Cluster]:
    """The Dask cluster at the address of its scheduler, or a new one on this machine."""
    dask = require_package("dask", "The backend 'dask'")
    distributed = require_package("distributed", "The backend 'dask'", extra="dask")
    _check_reachable("Dask", address)
    new = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}
    # For a new cluster, since we count deaths ourselves; an existing one has its own setting.
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}):
        try:
            client = distributed.Client(**({"address": address} if address else new), set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise _unreachable("Dask", address, error) from error
        with client:
            yield Cluster(
                workers=workers or max(1, sum(client.ncores().values()) // threads),
                submit=lambda func: client.submit(func, pure=False),
                cancel=lambda future: future.cancel(),
                died=(distributed.KilledWorker,),
            )


def _check_reachable(name: str, address: str | None) -> None:
    """Raise at once if nothing listens at an address; Ray and Dask would try for a long time."""
    place = re.fullmatch(r"(?:\w+://)?\[?([^/]+?)\]?:(\d+)", address or "")
    if place is not None:
        try:
            socket.create_connection((place[1], int(place[2])), timeout=_PATIENCE).close()
        except (OSError, OverflowError) as error:
            raise _unreachable(name, address, error) from error


def _unreachable(name: str, address: str | None, error: Exception) -> InvalidArgumentError:
    what = f"Cannot reach a {name} cluster at {address!r}" if address else f"Cannot start {name} on this machine"
    return InvalidArgumentError(f"{what}: {error}")
