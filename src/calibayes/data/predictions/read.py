"""Reads what a classifier said about a test set from a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from calibayes.data.predictions.check_scores import check_scores, check_weights, probabilities_and_logits
from calibayes.data.predictions.classes import classes_of
from calibayes.data.predictions.column_names import find_name
from calibayes.data.predictions.find_columns import find_label, find_scores
from calibayes.data.predictions.npz_predictions import read_npz
from calibayes.data.predictions.prediction_table import ColumnsUsed, PredictionTable
from calibayes.data.predictions.raw_predictions import RawPredictions, TextColumn, problem
from calibayes.data.predictions.table_columns import read_columns
from calibayes.errors import DataError, PredictionFileError
from calibayes.tables import TableFile, TableOptions, open_table
from calibayes.tables.formats import check_file
from calibayes.wording import listed, shown

__all__ = ["read_predictions"]


def read_predictions(
    path: str | os.PathLike[str],
    *,
    label: str | None = None,
    columns: str | Sequence[str] | None = None,
    logits: bool | None = None,
    weights: str | None = None,
    id: str | None = None,
    positive: str | None = None,
    **options: Any,
) -> PredictionTable:
    """Read probabilities and labels from a table or a NumPy file; columns are recognised by their names.

    The labels are in a column called ``label``, ``target``, ``y`` or the like. The probabilities are in columns
    ``p_<class>``, ``prob_<class>``, ``logit_<class>`` or the like, or in columns called like the labels, or in all the
    columns of numbers if their rows sum to 1; for two classes also in one column ``p``, ``prob`` or ``score``, which is
    the probability of 1, true, yes or the like; ``positive`` names the label where that is not plain. An ``.npz`` file
    has the arrays ``probs`` or ``logits``, ``targets``, and, if you like, ``weights`` and ``class_names``. What is not
    clear is an error that names the argument that settles it; numbers are taken for logits only where a name or an
    argument says so.

    Args:
        path: a file ending in ``.csv``, ``.tsv``, ``.txt``, ``.jsonl``, ``.ndjson`` (each also with ``.gz``), ``.parquet``,
            ``.xlsx`` or ``.npz``.
        label: the column of the labels: class names, or ``0 … K-1`` in the order of the columns.
        columns: the columns of the scores: a name, a glob such as ``"p_*"``, names with commas between them, or a list.
        logits: whether the scores are logits; None means: if their columns are called so.
        weights: a column of weights; none are used unless named (an array ``weights`` in ``.npz`` is).
        id: a column that says which example a row is, by which `align` joins files in a different order.
        positive: the label whose probability a single column holds, if it is not the larger number or the one that says yes.
        options: how the text of a table is written, by the names of `calibayes.tables.TableOptions`: ``encoding``,
            ``delimiter``, ``decimal``, ``date_format`` and ``header``.

    Examples:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "model.csv"
        >>> _ = path.write_text("label,p_cat,p_dog\\ncat,0.9,0.1\\ndog,0.4,0.6\\n")
        >>> table = read_predictions(path)
        >>> table.name, table.class_names, table.targets.tolist(), table.probs.tolist()
        ('model', ('cat', 'dog'), [0, 1], [[0.9, 0.1], [0.4, 0.6]])
    """
    path = Path(path)
    written = TableOptions(**options)
    given: dict[str, Any] = {"label": label, "columns": columns, "logits": logits, "weights": weights, "id": id}
    try:
        if path.suffix.lower() == ".npz":
            check_file(path, written, also=(".npz",))
            raw = read_npz(path, **given)
        else:
            raw = _read_table(open_table(path, written), **given)
        return _checked(raw, positive)
    except DataError as error:
        raise error if isinstance(error, PredictionFileError) else PredictionFileError(str(error)) from None


def _checked(raw: RawPredictions, positive: str | None) -> PredictionTable:
    """Match labels to classes, and turn scores that make sense into probabilities."""
    class_names, index = classes_of(raw, positive)
    check_scores(raw)
    check_weights(raw)
    probs, kept = probabilities_and_logits(raw)
    return PredictionTable(
        name=_model_name(raw.place.path),
        path=raw.place.path,
        probs=probs,
        targets=index[raw.labels.codes],
        class_names=class_names,
        kind="logits" if raw.logits else "probabilities",
        logits=kept,
        weights=raw.weights,
        ids=_ids(raw),
        columns=raw.used,
    )


def _read_table(
    source: TableFile,
    *,
    label: str | None,
    columns: str | Sequence[str] | None,
    logits: bool | None,
    weights: str | None,
    id: str | None,
) -> RawPredictions:
    named = [find_name(source, name, flag) for name, flag in ((weights, "--weights"), (id, "--id")) if name is not None]
    label = find_label(source, label)
    taken = (label, *named)
    if len(set(taken)) < len(taken):
        raise problem(source.path, f"--label, --weights and --id name the same column twice: {listed(taken)}.")
    weights = named[0] if weights is not None else None
    id = named[-1] if id is not None else None
    scores = find_scores(source, label, taken, columns, logits)
    texts = [label] if id is None else [label, id]
    used = {*taken, *scores.columns}
    columns_read, numbers = read_columns(source, texts, [*scores.columns, *([] if weights is None else [weights])])
    return RawPredictions(
        place=source,
        used=ColumnsUsed(
            label=label,
            scores=scores.columns,
            weights=weights,
            id=id,
            ignored=tuple(name for name in source.names if name not in used),
        ),
        labels=columns_read[label],
        scores=np.ascontiguousarray(numbers[:, : len(scores.columns)]),
        logits=scores.logits,
        namings=scores.namings,
        weights=None if weights is None else np.ascontiguousarray(numbers[:, -1]),
        ids=None if id is None else columns_read[id],
    )


def _model_name(path: Path) -> str:
    """Return the name of a file without its folder and ending: ``a`` for ``runs/a.csv.gz``."""
    return Path(path.stem).stem if path.suffix.lower() == ".gz" else path.stem


def _ids(raw: RawPredictions) -> tuple[str, ...] | None:
    if raw.ids is None or raw.used.id is None:
        return None
    _check_unique(raw, raw.ids, raw.used.id)
    return tuple(raw.ids.values[code] for code in raw.ids.codes.tolist())


def _check_unique(raw: RawPredictions, ids: TextColumn, column: str) -> None:
    if len(ids.values) == len(ids.codes):
        return
    order, first = np.unique(ids.codes, return_index=True)
    again = np.ones(len(ids.codes), dtype=bool)
    again[first] = False
    row = int(np.argmax(again))
    earlier = int(first[np.searchsorted(order, ids.codes[row])])
    what = f"the id {shown(ids.values[ids.codes[row]])} was there before ({raw.place.where(earlier, column)}). "
    raise problem(raw.place.path, what + "Give every example its own.", where=raw.place.where(row, column))
