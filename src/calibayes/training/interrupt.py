"""Ctrl-C ends training after the step under way, so that what was learned is kept whole."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Interrupt", "interruptible"]


class Interrupt:
    """True once the user has asked to stop."""

    requested = False


@contextmanager
def interruptible() -> Iterator[Interrupt]:
    """Turn the first Ctrl-C into a request; a second one stops at once, as usual.

    A process that ignores Ctrl-C (a worker whose parent sees to it) goes on ignoring it.
    """
    state = Interrupt()
    previous = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or previous == signal.SIG_IGN:
        yield state
        return

    def request(number: int, frame: FrameType | None) -> None:
        if state.requested:
            raise KeyboardInterrupt
        state.requested = True

    signal.signal(signal.SIGINT, request)
    try:
        yield state
    finally:
        signal.signal(signal.SIGINT, previous)
