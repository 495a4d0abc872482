"""Worker processes of this machine: Ctrl-C is not theirs, and they end with the process that started them."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker

__all__ = ["ctrl_c_is_ours", "serve", "serves"]

_serving: set[int] = set()  # the processes that this one is a worker of


@contextmanager
def ctrl_c_is_ours() -> Iterator[None]:
    """Processes that start in here ignore Ctrl-C, which a terminal sends to all: this process ends them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # when Python starts it, Ctrl-C is unblocked: that must not be in the middle of this
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def serve(master: int) -> None:
    """Make this process a worker of ``master``: leave Ctrl-C to it, and end when it is gone."""
    if master in _serving:
        return
    _serving.add(master)
    os.environ.pop("WORLD_SIZE", None)  # a worker works alone, also if torchrun started its master
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(master,), daemon=True).start()


def serves(master: int) -> bool:
    """Return True if this process is a worker of ``master``."""
    return master in _serving


def _end_with(master: int) -> None:
    """End this process when the one that started it is gone."""
    while os.getppid() == master:
        time.sleep(0.5)
    os._exit(1)
