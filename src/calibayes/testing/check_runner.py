"""Run checks one after the other, and say which one failed, of what, and where."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, TypeVar

import torch

from calibayes.errors import InvalidArgumentError
from calibayes.randomness import preserved_global_state

__all__ = ["check_name", "run_checks"]

Subject = TypeVar("Subject")


def check_name(check: Callable[..., Any]) -> str:
    """Return the name of a check in messages and in ``skip``: its function's name without ``check_``."""
    return check.__name__.removeprefix("check_")


def run_checks(
    checks: Iterable[Callable[[Subject], None]], subject: Subject, title: str, place: str = "", skip: Collection[str] = ()
) -> None:
    """Run checks; the first that fails is an AssertionError that says which one it was.

    Args:
        checks: functions that raise for what is wrong.
        subject: what they are called with.
        title: what is checked.
        place: on what, for the message.
        skip: names of checks to leave out.
    """
    known = [check_name(check) for check in checks]
    unknown = sorted(set(skip) - set(known))
    if unknown:
        raise InvalidArgumentError(f"There is no check {unknown[0]!r} to skip; there are {', '.join(known)}.")
    for check in checks:
        if check_name(check) in skip:
            continue
        try:
            with preserved_global_state(torch.device("cpu")):
                check(subject)
        except Exception as error:
            told = str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
            raise AssertionError(f"{title} fails the check {check_name(check)!r}{place}: {told}") from error
