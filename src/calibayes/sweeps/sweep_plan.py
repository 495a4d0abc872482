"""The trials of a sweep as users write them: ``--set lam=1,3,10`` on the command line, or a TOML file."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from calibayes.checks import positive_integer
from calibayes.errors import DataError, InvalidArgumentError
from calibayes.methods import METHODS, method_named
from calibayes.methods.term_weights import has_beta, takes_lam
from calibayes.sweeps.identity import canonical
from calibayes.sweeps.settings_grid import grid
from calibayes.wording import did_you_mean

__all__ = ["SweepPlan", "choices", "for_schemes", "read_plan"]

_MOST_SEEDS = 100_000


@dataclass(frozen=True, kw_only=True)
class SweepPlan:
    """The contents of a TOML file, all of them optional.

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
        if seeds is None and "seed" not in others:
            seeds = self.seeds
        found = []
        for each in self.grid or [{}]:
            asked = {**self.settings, **each, **others}
            if seeds is not None:
                if "seed" in asked:
                    raise InvalidArgumentError(
                        f"Expected either seeds or the setting seed, but got {seeds} and {asked['seed']}."
                    )
                asked["seed"] = range(positive_integer("seeds", seeds, most=_MOST_SEEDS))
            found += grid(**asked)
        return found


# By hand: pydantic with the wording of our errors took 43 lines where this and `read_plan` take 17, and its strict mode refuses
# a list for a tuple while the other one takes "3" and true for whole numbers.
_KINDS: dict[str, tuple[type, str]] = {
    "trial": (str, "a text"),
    "version": (int, "a number"),
    "label": (str, "a text"),
    "out": (str, "a text"),
    "seeds": (int, "a number"),
    "settings": (dict, "a table: [settings]"),
    "grid": (list, "tables: [[grid]]"),
}


def read_plan(path: Path) -> SweepPlan:
    """The plan in a TOML file, or an error that names the file and what is wrong in it."""
    try:
        said = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"Cannot read {str(path)!r}: {error.strerror}.") from error
    except ValueError as error:  # TOML, or its letters, with a place
        raise DataError(f"Expected {str(path)!r} to be a TOML file, but: {error}.") from error
    for name, value in said.items():
        if name not in _KINDS:
            others = f"Settings of trials belong below [settings]; others are {', '.join(_KINDS)}."
            raise DataError(f"Expected {str(path)!r} not to have {name!r}. {did_you_mean(name, _KINDS, others)}")
        kind, words = _KINDS[name]
        parts = value if name == "grid" and isinstance(value, list) else [{}]
        if not isinstance(value, kind) or not all(isinstance(part, dict) for part in parts):
            raise DataError(f"Expected {name!r} in {str(path)!r} to be {words}, but got {value!r}.")
    return SweepPlan(**said)


def choices(words: Sequence[str], option: str = "--set", *, again: bool = False) -> dict[str, list[Any]]:
    """Settings and their values from words such as ``lam=1,3,10``; a list or dict as JSON writes it is one value.

    Args:
        words: what was typed.
        option: what they were typed behind.
        again: whether a setting may be named again, with further values.

    Examples:
        >>> choices(["lam=1,3.5", "scheme=ca-fnn", "augment=true", "widths=[64,32],[128]"])
        {'lam': [1, 3.5], 'scheme': ['ca-fnn'], 'augment': [True], 'widths': [[64, 32], [128]]}
    """
    found: dict[str, list[Any]] = {}
    for word in words:
        name, equals, values = (part.strip() for part in word.partition("="))
        parts = [value.strip() for value in _commas(values)]
        if not equals or not name or not all(parts):
            raise InvalidArgumentError(f"Expected {option} to be like lam=1,3,10, but got {word!r}.")
        if name in found and not again:
            raise InvalidArgumentError(f"Expected {option} to name {name!r} once, but got it again: {word!r}.")
        found.setdefault(name, []).extend(_value(value, option, word) for value in parts)
    return found


def for_schemes(settings: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    r"""The same without what a trial's method does not have, such as $\lambda$ and $\beta$, and without repeated trials.

    Only what some method of the sweep has is dropped; $\lambda$ and $\beta$ always are.

    Examples:
        >>> for_schemes(calibayes.grid(scheme=["fnn", "ca-fnn"], lam=[1, 3]))
        [{'scheme': 'fnn'}, {'scheme': 'ca-fnn', 'lam': 1}, {'scheme': 'ca-fnn', 'lam': 3}]
        >>> for_schemes(calibayes.grid(scheme=["fnn", "ensemble"], members=[2]))
        [{'scheme': 'fnn'}, {'scheme': 'ensemble', 'members': 2}]
    """
    trials = list(settings)
    methods = {each["scheme"] for each in trials if each.get("scheme") in METHODS}
    of_some = {"lam", "beta"}.union(*(method_named(each).setting_names() for each in methods))
    found = {}
    for each in trials:
        scheme = each.get("scheme")
        if isinstance(scheme, str) and scheme in methods:
            each = {name: value for name, value in each.items() if name not in of_some or _has(scheme, name)}
        found[canonical(each)] = each
    return list(found.values())


def _has(method: str, name: str) -> bool:
    if name == "lam":
        return takes_lam(method)
    return has_beta(method) if name == "beta" else method_named(method).has(name)


_MARKS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},]')


def _commas(text: str) -> list[str]:
    """The text cut at commas, but not within quotes, brackets or braces."""
    depth, begin, found = 0, 0, []
    for mark in _MARKS.finditer(text):
        depth += (mark[0] in "[{") - (mark[0] in "]}")
        if mark[0] == "," and depth <= 0:
            found.append(text[begin : mark.start()])
            begin = mark.end()
    return [*found, text[begin:]]


def _value(text: str, option: str, word: str) -> Any:
    if not _may_be_finite(text):
        raise InvalidArgumentError(f"Expected the values of {option} to be finite, but got {text!r} in {word!r}.")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _may_be_finite(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return True
