"""Predict the blocks of a file in several processes of this machine, and return them in the order of the file."""

from __future__ import annotations

import os
import pickle
import time
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from pathlib import Path
from typing import Any

from calibayes.errors import WorkerDiedError
from calibayes.files.block_prediction import BlockPredictor, PredictedBlock, packed, unpacked
from calibayes.files.read_rows import labelled_files
from calibayes.sweeps.backends import REPLACED, cores
from calibayes.sweeps.worker_process import ctrl_c_is_ours, serve
from calibayes.tables import RowBlock, TableOptions

__all__ = ["predicted_by_processes", "predicted_here", "rows_about"]

_WORTHWHILE = 15.0  # seconds of work for one process from which several are faster, with their start
_TIMED = 2  # blocks: the first is slow, since much is loaded with it
_UNPACKED = 4  # bytes of text for each of a compressed file, about
_AHEAD = 3  # blocks for each process that are read before they are needed


def predicted_here(
    predictor: BlockPredictor, blocks: Iterator[RowBlock], source: Path, workers: int | None
) -> Generator[PredictedBlock, None, None]:
    """Yield the predictions of blocks in their order, computed by processes of this machine.

    By default there is one process per core if the work would take one process longer than starting them pays for: the first
    blocks are predicted here, and tell how long the rest of the file would take.
    """
    if workers is None:
        timed, seconds = None, 0.0
        for timed in islice(blocks, _TIMED):
            begin = time.process_time()
            result = predictor(timed)
            seconds = time.process_time() - begin
            yield result
        if timed is None or int(timed.rows[0]) == 0:  # there is no second block
            return
        left = rows_about(source, timed) - int(timed.rows[-1]) - 1
        workers = cores() if left * seconds / len(timed.rows) > _WORTHWHILE else 1
    if workers > 1:
        yield from predicted_by_processes(predictor, blocks, workers)
    else:
        yield from map(predictor, blocks)


def rows_about(source: Path, block: RowBlock) -> int:
    """Return the number of rows of a file or folder, estimated by those of a block where counting would take long."""
    if source.is_dir():
        return len(labelled_files(source))
    if source.suffix.lower() == ".parquet":
        from pyarrow import parquet

        return int(parquet.read_metadata(source).num_rows)
    cells = block.table.num_columns * block.table.num_rows
    text = sum(map(_text_bytes, block.table.columns)) + cells  # with the delimiters
    size = source.stat().st_size * (_UNPACKED if source.suffix.lower() in (".gz", ".xlsx") else 1)
    return int(size * block.table.num_rows // max(1, text))


def _text_bytes(column: Any) -> int:
    """Return the bytes of the texts of an Arrow column."""
    from pyarrow import compute

    return int(compute.sum(compute.binary_length(column)).as_py() or 0)


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
