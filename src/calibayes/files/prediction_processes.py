"""Predict the blocks of a file in several processes of this machine, and return them in the order of the file."""

from __future__ import annotations

import os
import pickle
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from calibayes.errors import WorkerDiedError
from calibayes.files.block_prediction import BlockPredictor, PredictedBlock, packed, unpacked
from calibayes.files.read_rows import labelled_files
from calibayes.sweeps.backends import REPLACED, cores
from calibayes.sweeps.worker_process import ctrl_c_is_ours, serve
from calibayes.tables import RowBlock, TableOptions

__all__ = ["default_workers", "predicted_by_processes"]

_LARGE, _LARGE_PACKED, _MANY_FILES = 100_000_000, 20_000_000, 2_000
_PACKED = (".gz", ".parquet", ".xlsx")
_AHEAD = 3  # blocks for each process that are read before they are needed


def default_workers(source: Path) -> int:
    """Return the number of processes: one per core where that is faster than one, which starts at once."""
    if source.is_dir():
        large = len(labelled_files(source)) >= _MANY_FILES
    else:
        limit = _LARGE_PACKED if source.suffix.lower() in _PACKED else _LARGE
        large = source.is_file() and source.stat().st_size >= limit
    return cores() if large else 1


def predicted_by_processes(
    predictor: BlockPredictor, blocks: Iterator[RowBlock], workers: int
) -> Generator[PredictedBlock, None, None]:
    """Yield the predictions of blocks in their order, computed by ``workers`` processes; few blocks are held at a time.

    A block that a process could not predict is predicted here: so its error is that of one process, and errors come in the
    order of the rows.
    """
    from joblib.externals.loky import ProcessPoolExecutor

    columns = predictor.needs
    executor = ProcessPoolExecutor(
        workers, initializer=_begin, initargs=(pickle.dumps(predictor), os.getpid()), env={"OMP_NUM_THREADS": "1"}
    )

    def submit(block: RowBlock) -> Future[PredictedBlock | None]:
        with ctrl_c_is_ours():
            submitted: Future[PredictedBlock | None] = executor.submit(_predict, *packed(block, columns))
        return submitted

    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=REPLACED)
            for block, future in _in_order(blocks, submit, _AHEAD * workers):
                result = future.result()
                yield predictor(block) if result is None else result
    except BrokenProcessPool as error:
        raise WorkerDiedError(
            "A process that predicted rows ended unexpectedly; perhaps memory ran out. Nothing was written. "
            f"Try again with fewer of them than {workers}: --workers {max(1, workers // 2)}"
        ) from error
    finally:
        executor.shutdown(wait=True, kill_workers=True)


def _in_order(
    blocks: Iterator[RowBlock], submit: Callable[[RowBlock], Future[PredictedBlock | None]], most: int
) -> Iterator[tuple[RowBlock, Future[PredictedBlock | None]]]:
    """Submit blocks, at most ``most`` at a time; an error of the reader is raised after the blocks before it."""
    waiting: deque[tuple[RowBlock, Future[PredictedBlock | None]]] = deque()
    problem: Exception | None = None
    more = True
    while more or waiting:
        while more and len(waiting) < most:
            try:
                block = next(blocks)
            except StopIteration:
                more = False
            except Exception as error:
                more, problem = False, error
            else:
                waiting.append((block, submit(block)))
        if waiting:
            yield waiting.popleft()
    if problem is not None:
        raise problem


_predictor: BlockPredictor | None = None  # of a worker process


def _begin(predictor: bytes, master: int) -> None:
    global _predictor  # noqa: PLW0603
    serve(master)
    _predictor = pickle.loads(predictor)


def _predict(content: bytes, first: int, options: TableOptions) -> PredictedBlock | None:
    """Predict a block in a worker process; None if there is an error, which the process that knows the file will raise."""
    assert _predictor is not None
    try:
        return _predictor(unpacked(content, first, options))
    except Exception:
        return None
