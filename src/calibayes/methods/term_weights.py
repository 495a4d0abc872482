r"""The methods that have $\lambda$ and $\beta$, for callers that set, choose or reject them by a method's name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibayes.errors import InvalidArgumentError
from calibayes.methods.registry import METHODS, method_named
from calibayes.schedules import Schedule

__all__ = ["check_method_settings", "check_weights", "has_beta", "has_lam", "takes_lam"]


def has_lam(method: str) -> bool:
    """Return True if the method has a calibration term by default.

    Examples:
        >>> [method for method in calibayes.SCHEMES if has_lam(method)]
        ['ca-fnn', 'ca-bnn']
    """
    usual = method_named(method).default("lam")
    return usual is not None and (callable(usual) or usual > 0)


def takes_lam(method: str) -> bool:
    """Return False for a method without the term, or with another name if it has it: ``fnn`` and ``bnn``."""
    chosen = method_named(method)
    return chosen.has("lam") and f"ca-{chosen.name}" not in METHODS


def has_beta(method: str) -> bool:
    r"""Return True if the method weighs a KL by $\beta$."""
    return method_named(method).has("beta")


def check_weights(method: str, *, lam: Schedule | None = None, beta: Schedule | None = None) -> None:
    r"""Raise `InvalidArgumentError` unless the method can have these weights; ``None`` for one that was left out.

    A method with ``ca-`` must have $\lambda > 0$, and one with a ``ca-`` twin must not; for all others it is optional.

    Examples:
        >>> check_weights("fnn", lam=3.0)
        Traceback (most recent call last):
        calibayes.errors.InvalidArgumentError: Expected no `lam` for 'fnn', but got 3.0. With the term it is 'ca-fnn'.
    """
    plain = method.removeprefix("ca-")
    if lam and not takes_lam(method):
        hint = f" With the term it is 'ca-{method}'." if f"ca-{method}" in METHODS else ""
        raise InvalidArgumentError(f"Expected no `lam` for {method!r}, but got {lam!r}.{hint}")
    if lam is not None and lam == 0 and plain != method and plain in METHODS:
        raise InvalidArgumentError(f"Expected `lam` > 0 for {method!r}, but got {lam!r}; without the term it is {plain!r}.")
    if beta and not has_beta(method):
        raise InvalidArgumentError(f"Expected no `beta` for {method!r}, but got {beta!r}.")


def check_method_settings(method: str, settings: Mapping[str, Any], own: Mapping[str, str]) -> None:
    """Raise `InvalidArgumentError` unless these are settings of the method that the caller does not set itself.

    ``own`` has the names that it does set, and how to write them there.
    """
    for name in settings:
        if name in own:
            raise InvalidArgumentError(f"Expected {name!r} not to be among the method's settings: use {own[name]} instead.")
    method_named(method).configured(**settings)
