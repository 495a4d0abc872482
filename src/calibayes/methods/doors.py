"""A method's arguments of `fit`, for front doors that do not call `fit`."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from calibayes.errors import InvalidArgumentError
from calibayes.methods.registry import Plan

__all__ = ["fit_settings"]


def fit_settings(plan: Plan, known: Collection[str], method: str, door: str) -> dict[str, Any]:
    """The plan's arguments of `calibayes.fit`, or an error if the door has no such setting.

    Args:
        plan: of the method.
        known: the arguments that the door has, too.
        method: the method's name.
        door: what the user has called.
    """
    for name, value in plan.fit.items():
        if name not in known:
            raise InvalidArgumentError(
                f"The method {method!r} trains with {name}={value!r}, which {door} has not. Train with `calibayes.fit`."
            )
    return plan.fit
