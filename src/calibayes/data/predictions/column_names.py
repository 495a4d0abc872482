"""The meaning of column names: a class, and a probability or a logit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from calibayes.data.predictions.npz_arrays import NpzArrays
from calibayes.tables import TableFile
from calibayes.wording import listed, shown

__all__ = ["NamedScore", "find_name", "named_score", "namings"]

_WORD = r"probabilit(?:y|ies)|probas?|probs?|p|logits?"
# p_cat, prob.cat, logit_cat; and p0, p1 … with nothing in between.
_BEFORE = re.compile(rf"\s*({_WORD})([_.]|(?=\d+\Z))(.+)", re.IGNORECASE | re.DOTALL)
_AFTER = re.compile(rf"(.+)([_.])({_WORD.replace('|p|', '|')})\s*", re.IGNORECASE | re.DOTALL)
_SEPARATORS = "_.-: "


@dataclass(frozen=True)
class NamedScore:
    """The meaning of a column's name: the class, the rule that it follows, and whether it is a logit."""

    name: str
    glob: str
    logits: bool


def named_score(column: str) -> NamedScore | None:
    """Return the meaning of a column's name, or None if it follows no known rule.

    Examples:
        >>> named_score("p_cat"), named_score("Logit_cat")
        (NamedScore(name='cat', glob='p_*', logits=False), NamedScore(name='cat', glob='Logit_*', logits=True))
    """
    if parts := _BEFORE.fullmatch(column):
        return NamedScore(parts[3], f"{parts[1]}{parts[2]}*", parts[1].lower().startswith("logit"))
    if parts := _AFTER.fullmatch(column):
        return NamedScore(parts[1], f"*{parts[2]}{parts[3]}", parts[3].lower().startswith("logit"))
    return None


def namings(columns: Sequence[str], pattern: str | None) -> tuple[tuple[str, ...], ...]:
    """Return what the classes of some columns may be called, the likeliest first; the labels decide.

    If the user named the columns by a glob, ``pattern``, the part that its star stands for is the likeliest.

    Examples:
        >>> namings(["p_cat", "p_dog"], None)
        (('cat', 'dog'), ('p_cat', 'p_dog'))
    """
    candidates: list[tuple[str, ...]] = []
    if pattern is not None and pattern.count("*") == 1 and not set("?[") & set(pattern):
        before, after = pattern.split("*")
        candidates.append(tuple(name[len(before) : len(name) - len(after)] for name in columns))
    scores = [named_score(name) for name in columns]
    candidates.append(tuple(score.name for score in scores if score is not None))
    candidates.append(tuple(columns))
    if len(columns) > 1:
        # class_cat, class_cow: what they share, but not the first letter of the animals.
        low, high = min(columns), max(columns)
        shared = next((place for place, letter in enumerate(low) if letter != high[place]), len(low))
        cut = max(low.rfind(mark, 0, shared) for mark in _SEPARATORS) + 1
        candidates.append(tuple(name[cut:] for name in columns))
    sound = [names for names in candidates if len(set(names)) == len(columns) and all(names)]
    return tuple(dict.fromkeys(sound))


def find_name(source: TableFile | NpzArrays, name: str, flag: str) -> str:
    """Return the column or array that the user means by ``name``: that text, or the only one up to case and spaces."""
    if name in source.names:
        return name
    near = [column for column in source.names if column.strip().lower() == name.strip().lower()]
    if len(near) == 1:
        return near[0]
    noun = source.column_noun
    what = f"there is no {noun} {shown(name)} ({flag}). The {noun}s are {listed(source.names)}."
    close = get_close_matches(name, [column for column in source.names if column], n=1)
    raise source.problem(what + (f" Did you mean {shown(close[0])}?" if close else ""))
