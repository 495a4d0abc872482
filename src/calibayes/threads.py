"""Threads where they pay."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import torch

__all__ = ["in_one_thread"]

_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")


def in_one_thread(function: Callable[_Given, _Found]) -> Callable[_Given, _Found]:
    """Run a function of thousands of small operations in one thread.

    Shared between threads each is hardly faster, and where other work has one of the cores, every operation waits for the
    thread that has to wait for it: ten times as long.
    """

    @wraps(function)
    def run(*args: _Given.args, **kwargs: _Given.kwargs) -> _Found:
        before = torch.get_num_threads()
        if before == 1:
            return function(*args, **kwargs)
        torch.set_num_threads(1)
        try:
            return function(*args, **kwargs)
        finally:
            torch.set_num_threads(before)

    return run
