"""Predict the blocks of a file on a Ray or Dask cluster, in shards: each once, also if the work is interrupted."""

from __future__ import annotations

import hashlib
import pickle
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from queue import SimpleQueue
from typing import Any

from calibayes.errors import DataError, WorkerDiedError
from calibayes.files.block_prediction import BlockPredictor, PredictedBlock, packed, unpacked
from calibayes.files.prediction_shards import SHARD_BLOCKS, ShardFolder
from calibayes.sweeps.clusters import Cluster
from calibayes.tables import RowBlock, TableOptions
from calibayes.wording import counted, shown, shown_path

__all__ = ["predicted_on_cluster"]

_AHEAD = 2  # shards for each worker that are read before they are needed
_RETRIES = 2  # of a shard whose worker died

Packed = tuple[bytes, int, TableOptions]


def predicted_on_cluster(
    predictor: BlockPredictor,
    blocks: Iterator[RowBlock],
    cluster: Cluster,
    folder: ShardFolder,
    say: Callable[[str], None],
) -> Iterator[PredictedBlock]:
    """Predict the shards that the folder does not have yet, then yield all blocks in their order.

    Rows go to the workers and predictions come back, so they need to see no file but images. A shard that a worker could
    not predict is predicted here: so its error is that of one process, and errors come in the order of the rows.
    """
    work = _Shards(predictor, cluster, folder)
    shards = 0
    incomplete: list[RowBlock] = []
    problem: Exception | None = None
    more, kept = True, 0
    try:
        while more or work.running:
            while more and not work.failed and len(work.running) < _AHEAD * cluster.workers:
                shard, problem = _next_shard(blocks)
                if problem is not None:
                    incomplete, shard = shard, []
                more = bool(shard)
                if shard:
                    if folder.read(shards) is None:
                        work.submit(shards, shard)
                    else:
                        kept += 1
                    shards += 1
            if not work.running:
                break
            work.finish_one()
    finally:
        work.cancel()
    if work.failed:
        shard, reason = work.failed[min(work.failed)]
        for block in shard:
            predictor(block)
        raise WorkerDiedError(
            f"A worker could not predict rows that this process can ({reason}). Do the workers have the same versions "
            "installed, and can they read the images, if there are any?"
        )
    if problem is not None:
        for block in incomplete:
            predictor(block)
        raise problem
    if kept:
        say(f"From before: {kept:,} of {counted(shards, 'shard')} in {shown_path(folder.path)}.")
    for number in range(shards):
        results = folder.read(number)
        if results is None:
            raise DataError(
                f"Shard {number} in {shown_path(folder.path)} was removed or damaged by something else. "
                "To predict it again, run the same command."
            )
        yield from results


def _next_shard(blocks: Iterator[RowBlock]) -> tuple[list[RowBlock], Exception | None]:
    """Return the blocks of the next shard; after an error of the reader, those before it, and the error."""
    shard: list[RowBlock] = []
    try:
        for block in islice(blocks, SHARD_BLOCKS):
            shard.append(block)
    except Exception as error:
        return shard, error
    return shard, None


class _Shards:
    """The shards that a cluster is working on."""

    def __init__(self, predictor: BlockPredictor, cluster: Cluster, folder: ShardFolder) -> None:
        self.running: dict[int, list[RowBlock]] = {}
        self.failed: dict[int, tuple[list[RowBlock], str]] = {}  # with the reason
        self._columns, self._pickled = predictor.needs, pickle.dumps(predictor)
        self._key = hashlib.sha256(self._pickled).hexdigest()
        self._cluster, self._folder = cluster, folder
        self._futures: dict[int, Any] = {}
        self._done: SimpleQueue[int] = SimpleQueue()
        self._deaths: Counter[int] = Counter()

    def submit(self, number: int, shard: list[RowBlock]) -> None:
        """Send a shard to the cluster."""
        rows = [packed(block, self._columns) for block in shard]
        self.running[number] = shard
        self._futures[number] = self._cluster.submit(partial(_predict_shard, self._pickled, self._key, rows))
        self._futures[number].add_done_callback(lambda _: self._done.put(number))

    def finish_one(self) -> None:
        """Wait for a shard, and write it down."""
        number = self._done.get()
        shard, future = self.running.pop(number), self._futures.pop(number)
        try:
            results = future.result()
        except self._cluster.died:
            self._deaths[number] += 1
            if self._deaths[number] > _RETRIES:
                raise WorkerDiedError(
                    f"The worker of shard {number} ended unexpectedly {self._deaths[number]} times; perhaps memory ran out. "
                    f"Finished shards are kept in {shown_path(self._folder.path)}: run the same command again to continue."
                ) from None
            self.submit(number, shard)
        except Exception as error:
            raise self._cluster.cause(error) from None
        else:
            if isinstance(results, str):
                self.failed[number] = shard, results
            else:
                self._folder.write(number, results)

    def cancel(self) -> None:
        """Stop what is still running."""
        for future in self._futures.values():
            self._cluster.cancel(future)


_own = threading.local()  # a predictor for each thread: posteriors cannot be used by two at a time


def _predict_shard(predictor: bytes, key: str, blocks: list[Packed]) -> list[PredictedBlock] | str:
    """Predict a shard on a worker; if there is an error, return what it says: the process that knows the file will raise it."""
    if getattr(_own, "key", None) != key:
        _own.predictor, _own.key = pickle.loads(predictor), key
    try:
        return [_own.predictor(unpacked(*block)) for block in blocks]
    except Exception as error:
        return shown(f"{type(error).__name__}: {error}")
