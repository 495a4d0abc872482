"""Read predictions from NumPy archives: find the arrays by their names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from calibayes.data.predictions.classes import match
from calibayes.data.predictions.column_names import find_name
from calibayes.data.predictions.column_values import TextColumn
from calibayes.data.predictions.find_columns import LABEL_NAMES
from calibayes.data.predictions.npz_arrays import NpzArrays
from calibayes.data.predictions.prediction_table import ColumnsUsed, NamedColumns, RawPredictions
from calibayes.tables.numbers import is_whole_number, label_key
from calibayes.wording import counted, listed, shown

__all__ = ["read_npz"]

_PROBS = ("probs", "prob", "probabilities", "probability", "proba", "probas", "y_prob", "y_proba", "p")
_LOGITS = ("logits", "logit", "y_logits")
_CLASS_NAMES = ("class_names", "classes", "classes_")


def read_npz(path: Path, named: NamedColumns) -> RawPredictions:
    """Read an archive, whose arrays the user may have named."""
    arrays = NpzArrays(path)
    label = arrays.first(LABEL_NAMES) if named.label is None else find_name(arrays, named.label, "--label")
    if label is None:
        what = f"no array is called targets, labels or y. The arrays are {listed(arrays.names)}. "
        raise arrays.problem(what + "Name the array of the labels: --label.")
    name, is_logits = _scores(arrays, named.scores, named.logits)
    stored = arrays.numbers(name)
    if stored.ndim not in (1, 2) or 0 in stored.shape:
        what = f"the array {shown(name)} has shape {list(stored.shape)}, but [n, K] is needed, a column for each class."
        raise arrays.problem(what)
    scores = stored.astype(np.float64).reshape(len(stored), -1)
    weights = arrays.first(("weights",)) if named.weights is None else find_name(arrays, named.weights, "--weights")
    id = None if named.id is None else find_name(arrays, named.id, "--id")
    names = arrays.first(_CLASS_NAMES)
    labels, ids = arrays.texts(label), None if id is None else arrays.texts(id)
    values = None if weights is None else arrays.numbers(weights).astype(np.float64)
    if values is not None and values.ndim != 1:
        raise arrays.problem(f"the array {shown(weights)} has shape {list(values.shape)}, but [n] is needed, a weight per row.")
    for other, rows in ((label, labels.codes), (weights, values), (id, None if ids is None else ids.codes)):
        if rows is not None and len(rows) != len(scores):
            what = f"the array {shown(other)} has {counted(len(rows), 'row')}, but {shown(name)} has {len(scores):,}. "
            raise arrays.problem(what + "Store one value for each example.")
    class_names = None if names is None else _class_names(arrays, names, scores.shape[1])
    if class_names is not None and arrays[label].dtype.kind in "iu":
        labels = _by_place(arrays, label, labels, class_names)
    one = scores.shape[1] == 1
    return RawPredictions(
        source=arrays,
        used=ColumnsUsed(
            label=label,
            scores=(name,) if one else tuple(f"{name}[:, {j}]" for j in range(scores.shape[1])),
            weights=weights,
            id=id,
            ignored=tuple(other for other in arrays.names if other not in (label, name, weights, id, names)),
        ),
        labels=labels,
        scores=scores,
        logits=is_logits,
        namings=(((name,) if one else tuple(map(str, range(scores.shape[1])))) if class_names is None else class_names,),
        weights=values,
        ids=ids,
        half=stored.dtype == np.float16,
    )


def _scores(arrays: NpzArrays, columns: str | Sequence[str] | None, logits: bool | None) -> tuple[str, bool]:
    """Return the array of the scores, and True if they are logits."""
    if columns is not None:
        wanted = [columns] if isinstance(columns, str) else list(columns)
        if len(wanted) != 1:
            what = f"--columns names {counted(len(wanted), 'array')}, {listed(wanted)}, but an .npz file has its scores in one."
            raise arrays.problem(what)
        name = find_name(arrays, wanted[0], "--columns")
        return name, name.lower() in _LOGITS if logits is None else logits
    probs, raw = arrays.first(_PROBS), arrays.first(_LOGITS)
    if probs is not None and raw is not None and logits is None:
        hint = f"Pass --logits for the logits or --columns {probs} for the others."
        raise arrays.problem(f"there are both {shown(probs)} and {shown(raw)}. {hint}")
    scores = (raw or probs) if logits or probs is None else probs
    if scores is None or (logits is False and probs is None):
        what = f"no array is called probs or logits. The arrays are {listed(arrays.names)}. "
        raise arrays.problem(what + "Name the array of the scores: --columns (and --logits if they are logits).")
    return scores, scores == raw if logits is None else logits


def _class_names(arrays: NpzArrays, name: str, columns: int) -> tuple[str, ...]:
    column = arrays.texts(name)
    names = tuple(column.values[code] for code in column.codes)
    classes = max(columns, 2)
    if len(names) != classes or len(set(names)) < classes:
        what = f"the array {shown(name)} has {counted(len(set(names)), 'different name')}, {listed(names)}, "
        raise arrays.problem(what + f"but there are {classes} classes. Store one name for each, in their order.")
    return names


def _by_place(arrays: NpzArrays, label: str, labels: TextColumn, names: tuple[str, ...]) -> TextColumn:
    """Take integer labels to count classes from 0, unless the class names are numbers and only they fit."""
    places = [str(place) for place in range(len(names))]
    fits_place = bool((match(labels.values, places) >= 0).all())
    fits_name = bool((match(labels.values, names) >= 0).all()) and all(is_whole_number(name) for name in names)
    if fits_place and fits_name and [label_key(name) for name in names] != places:
        what = f"the labels {listed(labels.values)} in {shown(label)} may be class names ({listed(names)}) or count from 0. "
        raise arrays.problem(what + "Store them as texts (astype(str)) if they are names, or leave class_names out.")
    if not fits_place:
        return labels
    return TextColumn(labels.codes, tuple(names[int(value)] for value in labels.values))
