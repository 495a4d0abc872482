"""Read the predictions of a classifier for a test set from a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from calibayes.data.predictions.check_scores import check_scores, check_weights, probabilities_and_logits
from calibayes.data.predictions.classes import classes_of
from calibayes.data.predictions.column_names import find_name
from calibayes.data.predictions.column_values import TextColumn, read_columns
from calibayes.data.predictions.find_columns import find_label, find_scores
from calibayes.data.predictions.npz_predictions import read_npz
from calibayes.data.predictions.prediction_table import ColumnsUsed, NamedColumns, PredictionTable, RawPredictions
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
    the probability of 1, true, yes or the like; ``positive`` names the label where that is not clear. An ``.npz`` file
    has the arrays ``probs`` or ``logits``, ``targets``, and optionally ``weights`` and ``class_names``. What is not clear
    is an error that names the argument that decides it; numbers are taken for logits only where a name or an argument
    says so.

    Args:
        path: a file ending in ``.csv``, ``.tsv``, ``.txt``, ``.jsonl``, ``.ndjson`` (each also with ``.gz``), ``.parquet``,
            ``.xlsx`` or ``.npz``.
        label: the column of the labels: class names, or ``0 … K-1`` in the order of the columns.
        columns: the columns of the scores: a name, a glob such as ``"p_*"``, names with commas between them, or a list.
        logits: whether the scores are logits; None means: if their columns are called so.
        weights: a column of weights; it is used only if named (an array ``weights`` in ``.npz`` always is).
        id: a column that identifies the example of a row, by which `align` joins files in a different order.
        positive: the label whose probability a single column holds, if it is not the larger number or the one that says yes.
        options: the format of the table's text, by the names of `calibayes.tables.TableOptions`: ``encoding``,
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
    table_options = TableOptions(**options)
    named = NamedColumns(label, columns, logits, weights, id)
    try:
        if path.suffix.lower() == ".npz":
            check_file(path, table_options, also=(".npz",))
            raw = read_npz(path, named)
        else:
            raw = _read_table(open_table(path, table_options), named)
        return _checked(raw, positive)
    except DataError as error:
        raise PredictionFileError(str(error)) from None


def _checked(raw: RawPredictions, positive: str | None) -> PredictionTable:
    """Match labels to classes, and turn scores that make sense into probabilities."""
    class_names, index = classes_of(raw, positive)
    check_scores(raw)
    check_weights(raw)
    probs, logits = probabilities_and_logits(raw)
    path = raw.source.path
    return PredictionTable(
        # Without folder and ending: ``a`` for ``runs/a.csv.gz``.
        name=Path(path.stem).stem if path.suffix.lower() == ".gz" else path.stem,
        path=path,
        probs=probs,
        targets=index[raw.labels.codes],
        class_names=class_names,
        kind="logits" if raw.logits else "probabilities",
        logits=logits,
        weights=raw.weights,
        ids=None if raw.ids is None else _ids(raw, raw.ids),
        columns=raw.used,
    )


def _read_table(source: TableFile, named: NamedColumns) -> RawPredictions:
    weights, id = (
        None if name is None else find_name(source, name, flag)
        for name, flag in ((named.weights, "--weights"), (named.id, "--id"))
    )
    label = find_label(source, named.label)
    taken = [name for name in (label, weights, id) if name is not None]
    if len(set(taken)) < len(taken):
        raise source.problem(f"--label, --weights and --id name the same column twice: {listed(taken)}.")
    scores = find_scores(source, label, taken, named.scores, named.logits)
    texts = [label] if id is None else [label, id]
    used = {*taken, *scores.columns}
    columns_read, numbers = read_columns(source, texts, [*scores.columns, *([] if weights is None else [weights])])
    return RawPredictions(
        source=source,
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


def _ids(raw: RawPredictions, ids: TextColumn) -> tuple[str, ...]:
    """Return the ids, or raise if one occurs twice."""
    if len(ids.values) < len(ids.codes):
        order, first = np.unique(ids.codes, return_index=True)
        again = np.ones(len(ids.codes), dtype=bool)
        again[first] = False
        row = int(np.argmax(again))
        earlier = int(first[np.searchsorted(order, ids.codes[row])])
        before = raw.source.where(earlier, raw.used.id)
        what = f"the id {shown(ids.values[ids.codes[row]])} occurred before ({before}). Give every example its own."
        raise raw.source.problem(what, row, raw.used.id)
    return tuple(ids.values[code] for code in ids.codes.tolist())
