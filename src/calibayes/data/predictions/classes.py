"""The names of the classes, and the class that each label means."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from calibayes.data.predictions.column_values import Ints
from calibayes.data.predictions.prediction_table import RawPredictions
from calibayes.tables.numbers import is_whole_number, label_key, not_finite
from calibayes.wording import counted, listed, shown

__all__ = ["classes_of", "match"]

# What may follow "p_" in the one column of a binary classifier without naming a class.
_NO_CLASS = {"hat", "pred", "predicted", "score", "positive", "pos", "y"}
_OPPOSITES = (
    ("0", "1"),
    ("-1", "1"),
    ("False", "True"),
    ("f", "t"),
    ("no", "yes"),
    ("n", "y"),
    ("negative", "positive"),
    ("neg", "pos"),
    ("ham", "spam"),
    ("benign", "malignant"),
)


def match(values: Sequence[str], names: Sequence[str]) -> Ints:
    """Return the place of each value among the names, -1 for those that are not among them.

    The same text comes first; then another spelling of the same number or truth value, or other spaces around it,
    unless two names differ only in that.

    Examples:
        >>> match(["3.0", "cat", "dog"], ["cat", "3"])
        array([ 1,  0, -1])
    """
    exact = {name: place for place, name in enumerate(names)}
    counts = Counter(label_key(name) for name in names)
    loose = {label_key(name): place for place, name in enumerate(names) if counts[label_key(name)] == 1}
    return np.array([exact.get(value, loose.get(label_key(value), -1)) for value in values], dtype=np.int64)


def classes_of(raw: RawPredictions, positive: str | None) -> tuple[tuple[str, ...], Ints]:
    """Return the names of the classes and, for each distinct label, the class that it means."""
    if "" in raw.labels.values:
        row = int(np.argmax(raw.labels.codes == raw.labels.values.index("")))
        raise raw.source.problem(not_finite(""), row, raw.used.label)
    if raw.scores.shape[1] == 1 and len(raw.namings[0]) == 1:
        names = _two_classes(raw, positive)
        return names, match(raw.labels.values, names)
    return _many_classes(raw, positive)


def _many_classes(raw: RawPredictions, positive: str | None) -> tuple[tuple[str, ...], Ints]:
    values = raw.labels.values
    matches = [match(values, names) for names in raw.namings]
    best = min(range(len(matches)), key=lambda place: int((matches[place] < 0).sum()))
    names, index = raw.namings[best], matches[best]
    if (index < 0).all() and (places := _places(values, raw.namings[0])) is not None:
        names, index = raw.namings[0], places
    if (index < 0).any():
        raise _unknown(raw, names, index)
    if positive is not None and (len(names) > 2 or match([positive], names)[0] < 0):
        what = f"--positive {shown(positive)} is for files with one column of scores, but here are {len(names)} classes: "
        raise raw.source.problem(what + f"{listed(names)}. Leave it out.")
    return names, index


def _places(values: Sequence[str], names: Sequence[str]) -> Ints | None:
    """Return whole numbers as places 0 … K-1 among names that are not numbers themselves; None if they are not."""
    if all(map(is_whole_number, names)) or not all(map(is_whole_number, values)):
        return None
    return match(values, [str(place) for place in range(len(names))])


def _unknown(raw: RawPredictions, names: Sequence[str], index: Ints) -> Exception:
    unknown = index < 0
    row = int(np.argmax(unknown[raw.labels.codes]))
    value = raw.labels.values[raw.labels.codes[row]]
    what = f"the label {shown(value)} is not one of the {len(names)} classes {listed(names)}. "
    if all(is_whole_number(label) for label in raw.labels.values):
        what += f"Labels that are numbers are class names or count the classes from 0 to {len(names) - 1}. "
        numbers = [float(label) for label in raw.labels.values]
        if min(numbers) >= 1 and max(numbers) == len(names):
            what += "These seem to count from 1: subtract 1, or call the columns p_1, p_2, and so on. "
    what += "Correct it, or name the columns: --label for the labels, --columns for the classes."
    return raw.source.problem(what, row, raw.used.label)


def _two_classes(raw: RawPredictions, positive: str | None) -> tuple[str, str]:
    """Return the two classes of a file with one column of scores, which are those of the second class."""
    first, second = _both(raw, positive)
    column, naming = raw.used.scores[0], raw.namings[0][0]
    # A column prob_yes is about "yes", even where "yes" comes first in the order.
    candidates = [positive] if positive is not None else [names[0] for names in raw.namings]
    place = next((int(place) for place in match(candidates, (first, second)) if place >= 0), None)
    if place is None and positive is not None:
        what = f"--positive {shown(positive)} is not one of the labels {listed((first, second))}. Name one of them."
        raise raw.source.problem(what)
    if place is None and label_key(naming) in ("0", "1"):
        place = int(label_key(naming))
    if place is None and naming != column and naming.lower() not in _NO_CLASS:
        what = f"the column {shown(column)} is for {shown(naming)}, which is not one of the labels {listed((first, second))}. "
        raise raw.source.problem(what + "Name the label that it is for: --positive.")
    if place is None and not _in_order(first, second):
        what = f"the column {shown(column)} may be for {shown(first)} or for {shown(second)}. "
        raise raw.source.problem(what + "Name the label that it is for: --positive.")
    return (second, first) if place == 0 else (first, second)


def _in_order(first: str, second: str) -> bool:
    """Return True if it is clear which of two labels a bare probability is for: the larger number, or the one that says yes."""
    if all(map(is_whole_number, (first, second))):
        return True
    pair = (label_key(first).lower(), label_key(second).lower())
    return any(pair == (label_key(low).lower(), label_key(high).lower()) for low, high in _OPPOSITES)


def _both(raw: RawPredictions, positive: str | None) -> tuple[str, str]:
    """Return the two label values in order, even if all examples have the same."""
    column = raw.used.scores[0]
    # The first spelling stands for 1 and 1.0; texts that differ in spaces are different labels.
    spellings = {value if value != value.strip() else label_key(value): value for value in reversed(_sorted(raw.labels.values))}
    values = list(reversed(spellings.values()))
    if len(values) > 2:
        kind = "logits" if raw.logits else "probabilities"
        what = f"there is only one column of {kind}, {shown(column)}, but there are {counted(len(values), 'label value')}: "
        raise raw.source.problem(
            what
            + f"{listed(values)}. Name one column for each class: --columns. If it is the confidence in a decision, call it "
            "'confidence', and give the decisions in a column 'prediction'."
        )
    if len(values) == 2:
        return values[0], values[1]
    value = values[0]
    for low, high in _OPPOSITES:
        if label_key(value).lower() in (label_key(low), label_key(high)):
            return (value, high) if label_key(value).lower() == label_key(low) else (low, value)
    if positive is None:
        what = f"every label is {shown(value)}, so {shown(column)} may be for it or for another class. "
        raise raw.source.problem(what + "Name the class that it is for: --positive.")
    return (f"not {value}", value) if label_key(positive) == label_key(value) else (value, positive)


def _sorted(values: Sequence[str]) -> list[str]:
    """Sort numbers by size, everything else by its text."""
    try:
        return sorted(values, key=lambda value: (float(value), value))
    except ValueError:
        return sorted(values)
