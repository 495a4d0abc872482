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

__all__ = ["Function", "canonical", "function_and_name", "key"]

Function = Callable[[dict[str, Any]], Mapping[str, Any]]
"""A trial: a function of its settings that returns its result."""


def key(identity: Mapping[str, Any]) -> str:
    """A name for a result: a checksum of everything that determines it, whatever the order it is told in.

    Examples:
        >>> key({"seed": 0, "lam": 3.0}) == key({"lam": 3, "seed": 0}) != key({"seed": 1, "lam": 3.0})
        True
    """
    return hashlib.sha256(canonical(identity).encode()).hexdigest()[:20]


def canonical(identity: Mapping[str, Any]) -> str:
    """Return the same text for the same values, in whatever order, and whether 3 or 3.0 is written."""
    return json.dumps(_whole(identity), sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def function_and_name(trial: Function | str) -> tuple[Function, str]:
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
    module = sys.modules.get(trial.__module__)
    if trial.__module__ == "__main__" and module is not None:
        spec, file = getattr(module, "__spec__", None), getattr(module, "__file__", None)
        if spec is not None:
            return trial, f"{spec.name.removesuffix('.__main__')}:{name}"
        if file is not None:
            return trial, f"{Path(file).stem}:{name}"
    return trial, f"{trial.__module__}:{name}"


def _imported(name: str) -> Function:
    module, colon, function = name.partition(":")
    if not colon or not module or not function:
        raise InvalidArgumentError(f"Expected a trial to be named like package.module:function, but got {name!r}.")
    try:
        found = import_module(module)
    except ImportError as error:
        raise InvalidArgumentError(
            f"Cannot import the module of the trial {name!r}: {error}. Is it installed, or in the current folder?"
        ) from error
    except (Exception, SystemExit) as error:
        raise InvalidArgumentError(
            f"Cannot import the module of the trial {name!r}: it raises {type(error).__name__}: {error}."
        ) from error
    value = getattr(found, function, None)
    if not callable(value):
        raise InvalidArgumentError(f"Expected the module {module!r} to have a function {function!r}, but it has none.")
    trial: Function = value
    return trial


def _whole(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, Mapping):
        return {name: _whole(each) for name, each in value.items()}
    return [_whole(each) for each in value] if isinstance(value, list | tuple) else value
