"""What a sweep is to do, as users write it: ``--set lam=1,3,10`` on the command line, or a TOML file."""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from calibayes.checks import positive_integer
from calibayes.errors import DataError, InvalidArgumentError
from calibayes.objective import SCHEMES
from calibayes.sweeps.grid import grid
from calibayes.sweeps.identity import canonical

__all__ = ["Plan", "choices", "for_schemes", "read_plan"]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a TOML file says; all of it may be missing.

    Attributes:
        trial: the name ``module:function`` of what to run.
        version: the version of what it means.
        label: the beginning of files' names.
        out: the folder for results.
        seeds: how many times each combination runs, with ``seed`` 0, 1, ….
        settings: the choices that all combinations share.
        grid: choices that are combined with those of ``settings``, each table on its own.
    """

    trial: str | None = None
    version: int = 1
    label: str | None = None
    out: str | None = None
    seeds: int | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    grid: list[dict[str, Any]] = field(default_factory=list)

    def combinations(self, others: Mapping[str, Any], seeds: int | None) -> list[dict[str, Any]]:
        """The settings of all trials; ``others`` and ``seeds``, from the command line, have the last word."""
        seeds = self.seeds if seeds is None else seeds
        found = []
        for each in self.grid or [{}]:
            asked = {**self.settings, **each, **others}
            if seeds is not None:
                if "seed" in asked:
                    raise InvalidArgumentError(
                        f"Expected either seeds or the setting seed, but got {seeds} and {asked['seed']}."
                    )
                asked["seed"] = range(positive_integer("seeds", seeds))
            found += grid(**asked)
        return found


_KINDS: dict[str, tuple[type, str]] = {
    "trial": (str, "a text"),
    "version": (int, "a number"),
    "label": (str, "a text"),
    "out": (str, "a text"),
    "seeds": (int, "a number"),
    "settings": (dict, "a table: [settings]"),
    "grid": (list, "tables: [[grid]]"),
}


def read_plan(path: Path) -> Plan:
    """The plan in a TOML file, or an error that names the file and what is wrong in it."""
    try:
        said = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"Cannot read {str(path)!r}: {error.strerror}.") from error
    except ValueError as error:  # TOML, or its letters, with a place
        raise DataError(f"Expected {str(path)!r} to be a TOML file, but: {error}.") from error
    for name, value in said.items():
        if name not in _KINDS:
            near = difflib.get_close_matches(name, _KINDS, n=1)
            hint = (
                f"Did you mean {near[0]!r}?"
                if near
                else f"Settings of trials belong below [settings]; others are {', '.join(_KINDS)}."
            )
            raise DataError(f"Expected {str(path)!r} not to have {name!r}. {hint}")
        kind, words = _KINDS[name]
        parts = value if name == "grid" and isinstance(value, list) else [{}]
        if not isinstance(value, kind) or not all(isinstance(part, dict) for part in parts):
            raise DataError(f"Expected {name!r} in {str(path)!r} to be {words}, but got {value!r}.")
    return Plan(**said)


def choices(words: Sequence[str]) -> dict[str, Any]:
    """Settings and their values from words such as ``lam=1,3,10``.

    Example:
        >>> choices(["lam=1,3.5", "scheme=ca-fnn", "augment=true"])
        {'lam': [1, 3.5], 'scheme': ['ca-fnn'], 'augment': [True]}
    """
    found: dict[str, Any] = {}
    for word in words:
        name, equals, values = word.partition("=")
        if not equals or not name.strip() or not values.strip():
            raise InvalidArgumentError(f"Expected --set to be like lam=1,3,10, but got {word!r}.")
        if name.strip() in found:
            raise InvalidArgumentError(f"Expected --set to name {name.strip()!r} once, but got it again: {word!r}.")
        found[name.strip()] = [_value(value.strip()) for value in values.split(",")]
    return found


def for_schemes(settings: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    r"""The same without $\lambda$ and $\beta$ where the scheme has none, and without the doubles that this makes.

    Example:
        >>> for_schemes(calibayes.grid(scheme=["fnn", "ca-fnn"], lam=[1, 3]))
        [{'scheme': 'fnn'}, {'scheme': 'ca-fnn', 'lam': 1}, {'scheme': 'ca-fnn', 'lam': 3}]
    """
    found = {}
    for each in settings:
        scheme = each.get("scheme")
        if scheme in SCHEMES:
            unused = {"lam": not scheme.startswith("ca-"), "beta": not scheme.endswith("bnn")}
            each = {name: value for name, value in each.items() if not unused.get(name)}
        found[canonical(each)] = each
    return list(found.values())


def _value(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=lambda name: name)
    except ValueError:
        return text
