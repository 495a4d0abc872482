"""Run small operations in one thread."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import torch

__all__ = ["in_one_thread"]

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def in_one_thread(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Run a function of thousands of small operations in one thread.

    With more threads each is hardly faster, and if other work occupies a core, every operation waits for the thread on that
    core, which takes ten times as long.
    """

    @wraps(function)
    def run(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        before = torch.get_num_threads()
        if before == 1:
            return function(*args, **kwargs)
        torch.set_num_threads(1)
        try:
            return function(*args, **kwargs)
        finally:
            torch.set_num_threads(before)

    return run
