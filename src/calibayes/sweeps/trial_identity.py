"""The identity of a trial: the name of its function, its version and its settings."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from calibayes.errors import InvalidArgumentError

__all__ = ["TrialFunction", "canonical_json", "function_and_name", "result_key"]

TrialFunction = Callable[[dict[str, Any]], Mapping[str, Any]]
"""A trial: a function of its settings that returns its result."""


def result_key(trial: str, version: int | str, settings: Mapping[str, Any]) -> str:
    """A checksum of everything that determines a result, which names its file.

    Examples:
        >>> result_key("module:f", 1, {"seed": 0, "lam": 3.0}) == result_key("module:f", 1, {"lam": 3, "seed": 0})
        True
    """
    identity = canonical_json({"trial": trial, "version": version, "settings": settings})
    return hashlib.sha256(identity.encode()).hexdigest()[:20]


def canonical_json(values: Mapping[str, Any]) -> str:
    """Return the same text for the same values, in whatever order, and for 3 as for 3.0."""
    return json.dumps(_canonical(values), sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def _canonical(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, Mapping):
        return {name: _canonical(each) for name, each in value.items()}
    return [_canonical(each) for each in value] if isinstance(value, list | tuple) else value


def function_and_name(trial: TrialFunction | str) -> tuple[TrialFunction, str]:
    """A trial's function and the name ``module:function`` that it is known by; either can be given.

    A function of the script that is being run is known by the script's name.

    Examples:
        >>> function_and_name("calibayes.recipes.fashion:fashion_trial")[1]
        'calibayes.recipes.fashion:fashion_trial'
    """
    if isinstance(trial, str):
        return _imported(trial), trial
    name = getattr(trial, "__qualname__", None)
    if not callable(trial) or name is None or "<" in name:
        raise InvalidArgumentError(
            f"Expected `trial` to be a function that a module defines, whose name stays the same, but got {trial!r}. "
            "Define it with `def` at the top of a file; what would be bound to it can be a setting."
        )
    module = trial.__module__
    if module == "__main__" and (script := sys.modules.get(module)) is not None:
        if (spec := getattr(script, "__spec__", None)) is not None:
            module = spec.name.removesuffix(".__main__")
        elif (file := getattr(script, "__file__", None)) is not None:
            module = Path(file).stem
    return trial, f"{module}:{name}"


def _imported(name: str) -> TrialFunction:
    module, _, function = name.partition(":")
    if not module or not function:
        raise InvalidArgumentError(f"Expected a trial to be named like package.module:function, but got {name!r}.")
    try:
        trial: TrialFunction | None = getattr(import_module(module), function, None)
    except (Exception, SystemExit) as error:
        missing = isinstance(error, ImportError)
        hint = (
            f"{error}. Is it installed, or in the current folder?" if missing else f"it raises {type(error).__name__}: {error}."
        )
        raise InvalidArgumentError(f"Cannot import the module of the trial {name!r}: {hint}") from error
    if not callable(trial):
        raise InvalidArgumentError(f"Expected the module {module!r} to have a function {function!r}, but it has none.")
    return trial
