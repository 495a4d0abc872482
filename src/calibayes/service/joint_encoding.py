"""Rows of concurrent requests, encoded together: one row takes nearly as long as a hundred."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple, final

from torch import Tensor

from calibayes.errors import CalibayesError
from calibayes.service.json_rows import JsonRows

__all__ = ["EncodedRows", "JointEncoder"]

_MOST_ROWS = 256  # at once: the event loop has other things to do in between


class EncodedRows(NamedTuple):
    """The rows of a request as inputs of the network, and notes for the user."""

    inputs: Tensor
    notes: list[str]


class _Request(NamedTuple):
    rows: JsonRows
    future: asyncio.Future[EncodedRows]


@final
class JointEncoder:
    """Encodes the rows of requests that arrive at the same moment together, where they have the same columns.

    A request whose rows cannot be encoded gets an error of its own, and the others are encoded without it.

    Args:
        encode: turns requests with the same columns into inputs, one for each; raises `CalibayesError` if one of them is wrong.
    """

    def __init__(self, encode: Callable[[Sequence[JsonRows]], list[EncodedRows]]) -> None:
        self._encode = encode
        self._waiting: deque[_Request] = deque()

    async def encode(self, rows: JsonRows) -> EncodedRows:
        """Return the inputs of a request, once all that have arrived with it are read."""
        loop = asyncio.get_running_loop()
        if not self._waiting:
            loop.call_soon(self._encode_next)
        self._waiting.append(_Request(rows, loop.create_future()))
        return await self._waiting[-1].future

    def _encode_next(self) -> None:
        group = [self._waiting.popleft()]
        count = group[0].rows.rows
        while self._waiting and self._waiting[0].rows.names == group[0].rows.names:
            count += self._waiting[0].rows.rows
            if count > _MOST_ROWS:
                break
            group.append(self._waiting.popleft())
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._encode_next)
        self._deliver([each for each in group if not each.future.done()])  # others were given up

    def _deliver(self, group: list[_Request]) -> None:
        if not group:
            return
        try:
            encoded = self._encode([each.rows for each in group])
        except CalibayesError as error:
            if len(group) == 1:
                group[0].future.set_exception(error)
                return
            for each in group:
                self._deliver([each])
        except Exception as error:  # each request must get it, not the event loop
            for each in group:
                each.future.set_exception(error)
        else:
            for each, rows in zip(group, encoded, strict=True):
                each.future.set_result(rows)
