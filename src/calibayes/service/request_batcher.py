"""Concurrent requests in one pass through the network.

A request that finds the predictor idle starts at once. What arrives while it is busy is predicted together in the next pass, so
batches grow with the load and nobody waits for company. A large request is cut into parts of `BATCH_ROWS`, as a file is, and
small ones go in between.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, final

import torch
from torch import Tensor

from calibayes.errors import DataError
from calibayes.files.input_predictor import BATCH_ROWS
from calibayes.service.row_predictor import PredictedRows, RowPredictor

__all__ = ["RequestBatcher"]

_SMALL = 64  # rows up to which a request shares a pass with others
_QUICK = 0.004  # seconds: a pass that takes less runs in the event loop, where it need not wait for another thread's lock


class _Part(NamedTuple):
    """Rows of one request that go through the network in one pass."""

    inputs: Tensor
    future: asyncio.Future[PredictedRows]


@final
class RequestBatcher:
    """Predicts the rows of concurrent requests together, one pass at a time.

    Args:
        predictor: of encoded rows.
        blank: encoded rows, to find out how long a pass takes.
        seen: called with the predictions of each part, and the number of rows of its pass.
    """

    def __init__(self, predictor: RowPredictor, blank: Tensor, seen: Callable[[PredictedRows, int], None]) -> None:
        self._predictor, self._seen = predictor, seen
        self._small: deque[_Part] = deque()
        self._large: deque[_Part] = deque()
        self._busy = self._small_first = False
        # One thread each: more take longer to wake than small passes take.
        self._thread = ThreadPoolExecutor(1, "predictor", torch.set_num_threads, (1,))
        one, many = (self._fastest(blank[:1].repeat(rows, *[1] * (blank.dim() - 1))) for rows in (1, _SMALL))
        self._fixed, self._per_row = one, max(0.0, (many - one) / (_SMALL - 1))

    async def predict(self, inputs: Tensor) -> list[PredictedRows]:
        """Return the predictions of a request's rows, in parts of at most `BATCH_ROWS`."""
        loop = asyncio.get_running_loop()
        parts = [_Part(part, loop.create_future()) for part in inputs.split(BATCH_ROWS)]
        (self._small if len(inputs) <= _SMALL else self._large).extend(parts)
        if not self._busy:
            self._busy = True
            loop.call_soon(self._next_pass)  # after all requests that arrived at the same moment
        try:
            return [await part.future for part in parts]
        finally:
            for part in parts:
                part.future.cancel()  # a request that was given up must not take the predictor's time

    def close(self) -> None:
        """Wait for the pass that is under way."""
        self._thread.shutdown()

    def _fastest(self, inputs: Tensor) -> float:
        """Return the seconds that a pass takes this thread at best, whatever else the machine does."""
        seconds = []
        for _ in range(5):
            start = time.thread_time()
            self._predictor.predict([inputs])
            seconds.append(time.thread_time() - start)
        return min(seconds)

    def _next_pass(self) -> None:
        parts = self._taken()
        if not parts:
            self._busy = False
            return
        rows = sum(len(part.inputs) for part in parts)
        inputs = [part.inputs for part in parts]
        loop = asyncio.get_running_loop()
        if self._fixed + self._per_row * rows <= _QUICK:
            self._deliver(parts, rows, _outcome(self._predictor, inputs))
            loop.call_soon(self._next_pass)
            return
        running = loop.run_in_executor(self._thread, _outcome, self._predictor, inputs)

        def done(finished: asyncio.Future[list[PredictedRows | DataError] | Exception]) -> None:
            self._deliver(parts, rows, finished.result())
            self._next_pass()

        running.add_done_callback(done)

    def _taken(self) -> list[_Part]:
        """Take the parts of the next pass: all small ones that fit together, or one large one, in turns if there are both."""
        for queue in (self._small, self._large):
            while queue and queue[0].future.done():
                queue.popleft()
        self._small_first = not self._small_first
        if self._large and (not self._small or not self._small_first):
            return [self._large.popleft()]
        parts: list[_Part] = []
        rows = 0
        while self._small and rows + len(self._small[0].inputs) <= BATCH_ROWS:
            part = self._small.popleft()
            if not part.future.done():
                parts.append(part)
                rows += len(part.inputs)
        return parts

    def _deliver(self, parts: list[_Part], rows: int, outcome: list[PredictedRows | DataError] | Exception) -> None:
        answers = [outcome] * len(parts) if isinstance(outcome, Exception) else outcome
        for part, answer in zip(parts, answers, strict=True):
            if part.future.done():
                continue
            if isinstance(answer, Exception):
                part.future.set_exception(answer)
            else:
                self._seen(answer, rows)
                part.future.set_result(answer)


def _outcome(predictor: RowPredictor, inputs: list[Tensor]) -> list[PredictedRows | DataError] | Exception:
    """Return the predictions, or the error: requests must get it, not the event loop."""
    try:
        return predictor.predict(inputs)
    except Exception as error:
        return error
