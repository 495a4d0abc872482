"""Run checks one after the other; an error says which one failed, of what, and where."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from typing import Any

import torch

from calibayes.errors import InvalidArgumentError
from calibayes.randomness import preserved_global_state

__all__ = ["Check", "checks_in", "run_checks"]

Check = Callable[[Any], None]


def checks_in(module: str, besides: Callable[..., None] | None = None) -> list[Check]:
    """The functions that a module defines under names that begin with ``check_``, in order, without ``besides``."""
    named = [value for name, value in vars(sys.modules[module]).items() if name.startswith("check_") and value is not besides]
    return [value for value in named if value.__module__ == module]


def run_checks(checks: Sequence[Check], subject: Any, title: str, place: str = "", skip: Collection[str] = ()) -> None:
    """Run checks; the first that fails is an AssertionError that names it.

    Args:
        checks: functions that raise an error if something is wrong.
        subject: what they are called with.
        title: what is checked.
        place: on what, for the message.
        skip: names of checks to leave out, without ``check_``.
    """
    named = {check.__name__.removeprefix("check_"): check for check in checks}
    unknown = sorted(set(skip) - set(named))
    if unknown:
        raise InvalidArgumentError(f"There is no check {unknown[0]!r} to skip; there are {', '.join(named)}.")
    for name, check in named.items():
        if name in skip:
            continue
        try:
            with preserved_global_state(torch.device("cpu")):
                check(subject)
        except Exception as error:
            problem = str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
            raise AssertionError(f"{title} fails the check {name!r}{place}: {problem}") from error
