"""The trials of a sweep as users write them: ``--set lam=1,3,10`` on the command line, or a TOML file."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from calibayes.checks import positive_integer
from calibayes.errors import DataError, InvalidArgumentError
from calibayes.methods import METHODS, method_named
from calibayes.methods.term_weights import takes_lam
from calibayes.sweeps.settings_grid import grid
from calibayes.sweeps.trial_identity import canonical_json
from calibayes.toml_file import read_toml
from calibayes.wording import did_you_mean

__all__ = ["SweepPlan", "choices", "for_schemes", "read_plan"]

_MOST_SEEDS = 100_000


@dataclass(frozen=True, kw_only=True)
class SweepPlan:
    """The contents of a TOML file, all of them optional."""

    trial: str | None = None  # the name ``module:function`` of the function to run
    version: int = 1  # the version of the function
    label: str | None = None  # the beginning of the names of files
    out: str | None = None  # the folder for results
    seeds: int | None = None  # the number of runs per combination, with ``seed`` 0, 1, …
    settings: dict[str, Any] = field(default_factory=dict)  # the choices that all combinations share
    grid: list[dict[str, Any]] = field(default_factory=list)  # choices to combine with ``settings``, each table on its own

    def combinations(self, others: Mapping[str, Any], seeds: int | None) -> list[dict[str, Any]]:
        """The settings of all trials; ``others`` and ``seeds``, from the command line, take precedence."""
        if seeds is None and "seed" not in others:
            seeds = self.seeds
        trials = []
        for each in self.grid or [{}]:
            choices = {**self.settings, **each, **others}
            if seeds is not None:
                if "seed" in choices:
                    raise InvalidArgumentError(
                        f"Expected either seeds or the setting seed, but got {seeds} and {choices['seed']}."
                    )
                choices["seed"] = range(positive_integer("seeds", seeds, most=_MOST_SEEDS))
            trials += grid(**choices)
        return trials


# By hand: pydantic with the wording of our errors took 43 lines, and its strict mode refuses a list for a tuple while the other
# one takes "3" and true for whole numbers.
_TYPES = {"trial": str, "version": int, "label": str, "out": str, "seeds": int, "settings": dict, "grid": list}
_TYPE_NAMES = {str: "a text", int: "a number", dict: "a table: [settings]", list: "tables: [[grid]]"}


def read_plan(path: Path) -> SweepPlan:
    """The plan in a TOML file, or an error that names the file and what is wrong in it."""
    contents = read_toml(path)
    for name, value in contents.items():
        if name not in _TYPES:
            others = f"Settings of trials belong below [settings]; others are {', '.join(_TYPES)}."
            raise DataError(f"Expected {str(path)!r} not to have {name!r}. {did_you_mean(name, _TYPES, others)}")
        tables = value if name == "grid" and isinstance(value, list) else [{}]
        if not isinstance(value, _TYPES[name]) or not all(isinstance(table, dict) for table in tables):
            raise DataError(f"Expected {name!r} in {str(path)!r} to be {_TYPE_NAMES[_TYPES[name]]}, but got {value!r}.")
    return SweepPlan(**contents)


def choices(words: Sequence[str], option: str = "--set", *, again: bool = False) -> dict[str, list[Any]]:
    """Settings and their values from words such as ``lam=1,3,10``; a list or dict as JSON writes it is one value.

    Args:
        words: as they were typed.
        option: the option that they belong to.
        again: allow a setting to be named again, with further values.

    Examples:
        >>> choices(["lam=1,3.5", "scheme=ca-fnn", "augment=true", "widths=[64,32],[128]"])
        {'lam': [1, 3.5], 'scheme': ['ca-fnn'], 'augment': [True], 'widths': [[64, 32], [128]]}
    """
    settings: dict[str, list[Any]] = {}
    for word in words:
        name, equals, values = (part.strip() for part in word.partition("="))
        parts = [value.strip() for value in _commas(values)]
        if not equals or not name or not all(parts):
            raise InvalidArgumentError(f"Expected {option} to be like lam=1,3,10, but got {word!r}.")
        if name in settings and not again:
            raise InvalidArgumentError(f"Expected {option} to name {name!r} once, but got it again: {word!r}.")
        settings.setdefault(name, []).extend(_value(value, option, word) for value in parts)
    return settings


def for_schemes(settings: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    r"""The same without settings that a trial's method does not have, such as $\lambda$ and $\beta$, and without repeats.

    Only $\lambda$, $\beta$ and the settings of some method of the sweep are dropped.

    Examples:
        >>> for_schemes(calibayes.grid(scheme=["fnn", "ca-fnn"], lam=[1, 3]))
        [{'scheme': 'fnn'}, {'scheme': 'ca-fnn', 'lam': 1}, {'scheme': 'ca-fnn', 'lam': 3}]
        >>> for_schemes(calibayes.grid(scheme=["fnn", "ensemble"], members=[2]))
        [{'scheme': 'fnn'}, {'scheme': 'ensemble', 'members': 2}]
    """
    trials = list(settings)
    methods = {each["scheme"] for each in trials if each.get("scheme") in METHODS}
    of_some = {"lam", "beta"}.union(*(method_named(each).setting_names() for each in methods))
    unique = {}
    for each in trials:
        scheme = each.get("scheme")
        if isinstance(scheme, str) and scheme in methods:
            each = {name: value for name, value in each.items() if name not in of_some or _has(scheme, name)}
        unique[canonical_json(each)] = each
    return list(unique.values())


def _has(method: str, name: str) -> bool:
    return takes_lam(method) if name == "lam" else method_named(method).has(name)


_MARKS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},]')


def _commas(text: str) -> list[str]:
    """The text cut at commas, but not within quotes, brackets or braces."""
    depth, begin, parts = 0, 0, []
    for mark in _MARKS.finditer(text):
        depth += (mark[0] in "[{") - (mark[0] in "]}")
        if mark[0] == "," and depth <= 0:
            parts.append(text[begin : mark.start()])
            begin = mark.end()
    return [*parts, text[begin:]]


def _value(text: str, option: str, word: str) -> Any:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not math.isfinite(number):
        raise InvalidArgumentError(f"Expected the values of {option} to be finite, but got {text!r} in {word!r}.")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
