"""Turn labels into classes, and split examples into three parts: training, validation and test."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from calibayes.errors import DataError
from calibayes.randomness import generator_for
from calibayes.tables import RowBlock
from calibayes.tables.numbers import MISSING, is_whole_number, label_key, parse_numbers
from calibayes.wording import counted, listed, shown

__all__ = ["SplitLabels", "SplitRows", "labels_of", "parts_of", "shared"]

Ints = npt.NDArray[np.int64]

_LEAST = 3  # examples of a class: one for each part
_MOST_CLASSES = 1000
_NO_NUMBER = ("nan", "+nan", "-nan")
_TRUTH = ("true", "false", "True", "False", "TRUE", "FALSE")
_MOST_NUMBERS = 50  # different numbers that are still classes, unless they are whole


class SplitLabels(NamedTuple):
    """The classes, the rows that have one, and the class of each."""

    classes: tuple[str, ...]
    rows: Ints
    codes: Ints
    notes: list[str]


class SplitRows(NamedTuple):
    """Places among the labelled rows, in random order."""

    train: Ints
    validation: Ints
    test: Ints


def labels_of(block: RowBlock, target: str, drop_rare: bool) -> SplitLabels:
    """Find the classes in the column ``target``: at least two, each with enough examples for three parts.

    Rows without a label are left out, also those with NaN, or with NA and the like if all other labels are numbers or truth
    values. Different spellings of a whole number or truth value are one class. Classes with too few examples are an error,
    or left out with ``drop_rare``.
    """
    decimal = block.source.options.decimal
    column, notes = _labels(block.cells(target), target, decimal)
    absent = column.null_count
    if absent == len(column):
        raise DataError(f"The column {shown(target)} is empty: there is nothing to learn.")
    if absent:
        notes.append(f"{counted(absent, 'row')} without a label in {shown(target)}: left out.")
    texts = [None if value is None else label_key(value) for value in column.to_pylist()]
    counts = Counter(text for text in texts if text is not None)
    _reject_amounts(column, counts, target, decimal)
    rare = sorted(label for label, count in counts.items() if count < _LEAST)
    if rare and not drop_rare:
        count = "1 class" if len(rare) == 1 else f"{len(rare):,} classes"
        raise DataError(
            f"{count} of {shown(target)} with fewer than {_LEAST} examples, too few for folds: {listed(rare)}. "
            "Give more examples, or leave them out: --drop-rare."
        )
    if rare:
        left = sum(counts.pop(label) for label in rare)
        notes.append(f"Classes with fewer than {_LEAST} examples, {listed(rare)}: left out, {counted(left, 'row')}.")
    if len(counts) < 2:
        only = f"only {shown(next(iter(counts)))}" if counts else "none"
        raise DataError(f"Expected at least two classes in {shown(target)}, but there is {only}. Is this the right column?")
    classes = tuple(sorted(counts, key=Decimal if all(map(is_whole_number, counts)) else None))
    places = {label: place for place, label in enumerate(classes)}
    coded = [(row, places[text]) for row, text in enumerate(texts) if text in places]
    rows, codes = (np.array(part, dtype=np.int64) for part in zip(*coded, strict=True))
    return SplitLabels(classes, rows, codes, notes)


def parts_of(codes: Ints, validation: float, test: float, seed: int) -> SplitRows:
    """Split examples by a seed, with every class in the same proportions, and at least once, in each part."""
    generator = generator_for(torch.device("cpu"), seed, "parts")
    parts: tuple[list[Ints], ...] = ([], [], [])
    for label in range(int(codes.max()) + 1):
        own = np.flatnonzero(codes == label)
        own = own[torch.randperm(len(own), generator=generator).numpy()]
        sizes = [max(1, round(share * len(own))) for share in (validation, test)]
        while sum(sizes) >= len(own):  # one has to be left to train on
            sizes[int(np.argmax(sizes))] -= 1
        for part, places in zip(parts, np.split(own, [len(own) - sum(sizes), len(own) - sizes[1]]), strict=True):
            part.append(places)
    whole = [np.concatenate(part) for part in parts]
    return SplitRows(*(part[torch.randperm(len(part), generator=generator).numpy()] for part in whole))


def shared(train: Tensor, test: Tensor) -> int:
    """Count the inputs of the test part that also occur in the training part.

    Examples:
        >>> shared(torch.tensor([[1, 2], [3, 4]]), torch.tensor([[3, 4], [3, 5], [3, 4]]))
        2
    """
    known = {row.tobytes() for row in train.numpy()}
    return sum(row.tobytes() in known for row in test.numpy())


def _labels(column: Any, target: str, decimal: str) -> tuple[Any, list[str]]:
    """Return labels with null for missing ones, and a note if a class is called like a missing label."""
    import pyarrow as pa
    from pyarrow import compute

    lower = compute.utf8_lower(column)
    column = compute.if_else(compute.is_in(lower, pa.array(_NO_NUMBER, pa.large_string())), None, column)
    missing = compute.is_in(lower, pa.array(sorted(MISSING), pa.large_string()))
    others = compute.if_else(missing, None, column)
    truth = compute.is_in(others, pa.array(_TRUTH, pa.large_string())).to_numpy(zero_copy_only=False)
    if (_are_numbers(others, decimal) | truth).all():
        return others, []
    kept = column.filter(compute.and_(missing, column.is_valid())).unique().to_pylist()
    return column, [f"Taken for classes of {shown(target)}, not for missing labels: {listed(kept)}."] if kept else []


def _reject_amounts(column: Any, counts: Counter[str], target: str, decimal: str) -> None:
    """Raise if the target is an amount, or a different text in every row, rather than a class."""
    whole = all(map(is_whole_number, counts))
    if len(counts) > _MOST_NUMBERS and not whole and _are_numbers(column, decimal).all():
        what = f"{len(counts):,} different numbers, like {listed(list(counts)[:3])}: an amount rather than a class"
    elif len(counts) > _MOST_CLASSES:
        what = f"{len(counts):,} different values, more than the {_MOST_CLASSES:,} classes that are possible"
    else:
        return
    raise DataError(f"The column {shown(target)} has {what}. Is this the right column? If so, put it into a few classes first.")


def _are_numbers(column: Any, decimal: str) -> npt.NDArray[np.bool_]:
    return parse_numbers([column], decimal).good[:, 0]
