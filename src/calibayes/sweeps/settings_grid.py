"""The settings of trials: the product of lists, and the values that they may have."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any

import numpy as np
from torch import Tensor

from calibayes.errors import InvalidArgumentError

__all__ = ["checked", "grid", "varying"]


def grid(**choices: Any) -> list[dict[str, Any]]:
    """Every combination of values, as a list of settings for `calibayes.sweep`.

    A list, tuple, range or other iterable is a choice; anything else, including texts and dicts, is the same in all
    settings. The last choice changes fastest. It is a plain list: add to it, or leave out what makes no sense.

    Examples:
        >>> calibayes.grid(scheme=["fnn", "ca-fnn"], seed=range(2), epochs=3)
        [{'scheme': 'fnn', 'seed': 0, 'epochs': 3}, {'scheme': 'fnn', 'seed': 1, 'epochs': 3},
         {'scheme': 'ca-fnn', 'seed': 0, 'epochs': 3}, {'scheme': 'ca-fnn', 'seed': 1, 'epochs': 3}]
    """
    values = {}
    for name, choice in choices.items():
        single = isinstance(choice, str | bytes | Mapping | Tensor) or not isinstance(choice, Iterable)
        values[name] = [choice] if single else list(choice)
        if not values[name]:
            raise InvalidArgumentError(f"Expected `{name}` to have at least one value, but got {choice!r}.")
    return [dict(zip(values, each, strict=True)) for each in product(*values.values())]


def checked(settings: Any) -> list[dict[str, Any]]:
    """The settings as a list of plain dicts, or an error that names the value that a file cannot hold."""
    if isinstance(settings, Mapping | str) or not isinstance(settings, Iterable):
        raise InvalidArgumentError(
            f"Expected `settings` to be a list of dicts, one for each trial, but got {type(settings).__name__}. "
            "calibayes.grid(...) makes one."
        )
    plain = []
    for place, each in enumerate(settings):
        if not isinstance(each, Mapping):
            raise InvalidArgumentError(f"Expected settings {place} to be a dict, but got {each!r}.")
        plain.append({_name(key, f"settings {place}"): _plain(value, str(key)) for key, value in each.items()})
    return plain


def varying(settings: Iterable[Mapping[str, Any]]) -> list[str]:
    """The names of the settings that are not the same in all, in the order in which they come up.

    Examples:
        >>> varying([{"lam": 1, "seed": 0}, {"lam": 3, "seed": 0}])
        ['lam']
    """
    every = list(settings)
    names = dict.fromkeys(name for each in every for name in each)
    return [name for name in names if any(name not in each or each[name] != every[0].get(name) for each in every)]


def _plain(value: Any, place: str) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidArgumentError(f"Expected the setting `{place}` to be finite, but got {value!r}.")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(each, f"{place}[{k}]") for k, each in enumerate(value)]
    if isinstance(value, Mapping):
        return {_name(key, place): _plain(each, f"{place}.{key}") for key, each in value.items()}
    raise InvalidArgumentError(
        f"Expected the setting `{place}` to be a number, a text, None, or a list or dict of these, "
        f"but got {value!r} ({type(value).__name__}). Pass a name or number that the trial makes it from."
    )


def _name(key: Any, place: str) -> str:
    if not isinstance(key, str):
        raise InvalidArgumentError(f"Expected the names in {place} to be texts, but got {key!r}.")
    return key
