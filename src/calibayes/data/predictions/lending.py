"""A file that Arrow reads through Python, given back before anyone goes on."""

from __future__ import annotations

import io
import time
import weakref
from typing import IO, Any

__all__ = ["Lending"]

_PATIENCE, _GLANCE = 10.0, 0.001  # seconds


class Lending:
    """Lends an open file to Arrow and counts the quotation marks that pass.

    Arrow reads ahead in threads of its own, and lets go of the file in one of them, which takes Python's lock. A thread that
    asks for the lock while Python ends is killed in the middle of a destructor, and the process with it (SIGABRT after the
    last line). So leaving this context waits until Arrow has let go: forget the reader before.

    Args:
        stream: the file, where Arrow is to begin.
        first: bytes that come before those of the file.

    Attributes:
        quotes: how many quotation marks have been read.
    """

    def __init__(self, stream: IO[bytes], first: bytes = b"") -> None:
        self._stream, self._first = stream, first
        self._lent: weakref.ref[_Lent] | None = None
        self.quotes = 0

    def lend(self) -> io.BufferedIOBase:
        """What Arrow reads; nobody else may keep it."""
        lent = _Lent(self)
        self._lent = weakref.ref(lent)  # without a callback, in which the thread could lose the lock before it is done
        return lent

    def read(self, size: int | None) -> bytes:
        """The next bytes."""
        first, self._first = self._first, b""
        data = self._stream.read(-1 if size is None or size < 0 else max(0, size - len(first)))
        self.quotes += data.count(b'"')
        return first + data if first else data

    def __enter__(self) -> Lending:
        return self

    def __exit__(self, *_: Any) -> None:
        begun = time.monotonic()
        while self._is_out() and time.monotonic() < begun + _PATIENCE:
            time.sleep(_GLANCE)
        self._stream.close()

    def _is_out(self) -> bool:
        return self._lent is not None and self._lent() is not None


class _Lent(io.BufferedIOBase):
    """The stream that Arrow holds."""

    def __init__(self, owner: Lending) -> None:
        self._owner = owner

    def readable(self) -> bool:
        """Yes."""
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        """The next bytes."""
        return self._owner.read(size)
