"""Predict a file of any length, and write the predictions block by block."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from calibayes.checks import positive_integer
from calibayes.data.predictions.column_names import named_score
from calibayes.errors import InvalidArgumentError
from calibayes.files.block_prediction import UNCERTAINTIES, BlockPredictor, PredictedBlock
from calibayes.files.model import Model
from calibayes.files.prediction_notes import PredictionNotes
from calibayes.files.prediction_processes import predicted_here
from calibayes.files.prediction_shards import ShardFolder, manifest
from calibayes.files.prediction_writer import check_ending, prediction_writer
from calibayes.files.read_rows import FILE, LABEL, row_blocks
from calibayes.files.row_actions import RowActions
from calibayes.sweeps.backends import check_backend
from calibayes.tables import RowBlock, TableOptions
from calibayes.tables.formats import file_problem
from calibayes.wording import listed, shown

__all__ = ["Predicted", "predict_file"]

_OUTPUTS = (LABEL, "decision", "abstain", "set", *UNCERTAINTIES, "outsider")


class Predicted(NamedTuple):
    """A summary of the predictions for a file."""

    rows: int
    confidence: float  # on average
    abstained: int  # rows without a decision
    labelled: bool  # whether the true class of every row is known
    abstains: bool = False  # whether rows may be left without a decision


def predict_file(
    model: Model,
    path: str | Path,
    out: str | Path,
    *,
    target: str | None = None,
    keep: Sequence[str] = (),
    abstain_below: float | None = None,
    sets: float | None = None,
    sets_score: str | None = None,
    sets_by_class: bool | None = None,
    certify: str | None = None,
    costs: str | Path | None = None,
    temperature: bool | None = None,
    samples: int | None = None,
    workers: int | None = None,
    backend: str = "local",
    address: str | None = None,
    say: Callable[[str], None] | None = None,
    **options: Any,
) -> Predicted:
    """Predict every row of a file, a block at a time, in constant memory.

    The output is the same, byte for byte, for any number of processes. On a cluster, shards of it are kept in a folder beside
    it until it is complete: the same call continues after an interruption, and begins anew if the model, the file or the
    options have changed.

    The output has a column ``label`` with the true class if the file has one, ``decision``, ``p_<class>`` for every class,
    ``confidence``, and the ``epistemic`` and ``aleatoric`` uncertainty in nats (before a temperature). It appears when it is
    complete. A model that was trained for sets or a certified threshold applies them, unless others are asked for here: a
    column ``set`` holds the classes of the set, joined by ``|``, and ``decision`` is empty where the threshold abstains. A
    model with rows set aside also gives ``outsider``, the share of those rows that look less unlike the training data
    (`SetAsideRows.outsider`).

    Args:
        model: a trained model.
        path: a table in a file, or a folder of images or texts.
        out: the ``.csv`` or ``.parquet`` file to write.
        target: the column of the true classes; by default the one that the model was trained on, if it is there.
        keep: columns to copy to the output; those that numbered or named the rows in training are copied anyway.
        abstain_below: leave the decision empty where the confidence is lower, and add a column ``abstain``.
        sets: the coverage of prediction sets; like those below, only for models that were trained with rows set aside.
        sets_score: of the sets: ``"lac"``, ``"aps"``, ``"raps"`` or ``"top-k"``.
        sets_by_class: cover every class as often.
        certify: a threshold to certify, such as ``"accuracy=0.95"``.
        costs: a file of what each action costs for each class, to decide by the least expected cost; for any model.
        temperature: scale the probabilities by the model's temperature; by default if it was calibrated on all rows, as
            `train` does.
        samples: of the weights; those of training by default.
        workers: processes that predict; by default one per core if one alone would take more than about 15 seconds, judging by
            the first rows, and otherwise one. On a cluster, tasks at a time.
        backend: ``"local"``, ``"ray"`` or ``"dask"``.
        address: of the cluster; by default a new one is started on this machine.
        say: called with each note for the user.
        options: the format of the file's text, by the names of `calibayes.tables.TableOptions`.
    """
    if workers is not None:
        positive_integer("workers", workers, 1_000_000)
    check_backend(backend)
    if backend == "local" and address is not None:
        raise InvalidArgumentError(f"Expected an address with the backend 'ray' or 'dask', but got {address!r} without one.")
    asked: dict[str, Any] = {"sets": sets, "sets_score": sets_score, "sets_by_class": sets_by_class, "certify": certify}
    scale = model.calibrated if temperature is None else temperature
    table_options, tell = TableOptions(**options), say or (lambda line: None)
    actions = RowActions(
        model, table_options, abstain_below=abstain_below, temperature=scale, samples=samples, costs=costs, **asked
    )
    source, output = Path(path), Path(out)
    ending = check_ending(output)
    with ExitStack() as stack:
        shards = None if backend == "local" else ShardFolder(output)
        if shards is not None:
            asked |= {"target": target, "keep": list(keep), "abstain_below": abstain_below, "temperature": scale}
            asked |= {"samples": samples, "format": ending, **asdict(table_options)}
            made_from = manifest(model, source, asked, None if costs is None else Path(costs))
            stack.enter_context(shards.opened(made_from, tell))
        with prediction_writer(output) as write, closing(row_blocks(source, table_options)) as blocks:
            first = next(blocks, None)
            if first is None:
                raise file_problem(source, "there are no rows. Write one for each example.")
            model.check_columns(first.table.column_names)
            copied = _copied_columns(model, first.table, source, target, keep)
            _tell_unused(model, first.table.column_names, copied, tell)
            predictor = BlockPredictor(model, actions, copied, samples=samples, ending=ending)
            every = chain([first], blocks)
            if shards is not None:
                results = _predicted_in_shards(predictor, every, shards, tell, backend, address, workers)
            else:
                results = predicted_here(predictor, every, source, workers)
            rows, confidence, abstained, notes = 0, 0.0, 0, PredictionNotes(copied.get(LABEL))
            with closing(results):
                for each in results:
                    write(each.names, each.content)
                    rows, confidence, abstained = rows + each.rows, confidence + each.confidence, abstained + each.abstained
                    notes.add(each.notes)
        if shards is not None:
            shards.remove()
    for note in (*notes.lines(), *actions.notes):
        tell(note)
    return Predicted(rows, confidence / rows, abstained, notes.labelled, actions.abstains)


def _predicted_in_shards(
    predictor: BlockPredictor,
    blocks: Iterator[RowBlock],
    shards: ShardFolder,
    tell: Callable[[str], None],
    backend: str,
    address: str | None,
    workers: int | None,
) -> Generator[PredictedBlock, None, None]:
    from calibayes.files.prediction_cluster import predicted_on_cluster
    from calibayes.sweeps.clusters import open_cluster

    with open_cluster(backend, address, workers, threads=1) as cluster:
        yield from predicted_on_cluster(predictor, blocks, cluster, shards, tell)


def _tell_unused(model: Model, names: list[str], copied: dict[str, str], tell: Callable[[str], None]) -> None:
    used = {*copied.values(), *model.coding.needs, model.target, FILE}
    unused = [name for name in names if name not in used]
    if unused:
        tell(f"Columns not used: {listed(unused)}.")


def _copied_columns(model: Model, table: Any, source: Path, target: str | None, keep: Sequence[str]) -> dict[str, str]:
    """Return the columns to copy from a file, by their names in the output."""
    there = table.column_names
    missing = [name for name in (*keep, *([] if target is None else [target])) if name not in there]
    if missing:
        raise file_problem(source, f"there is no column {shown(missing[0])}. The columns are {listed(there)}.")
    label = target if target is not None else model.target if model.target in there else None
    if source.is_dir() and label == LABEL and not set(table.column(LABEL).to_pylist()) <= set(model.classes):
        label = None  # its folders are not the classes
    others = [FILE] if FILE in there and (source.is_dir() or FILE in model.coding.needs) else []
    others += [name for name in model.identifiers if name in there and name not in _OUTPUTS and named_score(name) is None]
    names = {} if label is None else {LABEL: label}
    for name in dict.fromkeys((*others, *keep)):
        if name != label:
            if name in _OUTPUTS or named_score(name) is not None:
                raise InvalidArgumentError(
                    f"Expected --keep not to name {name!r}, which would be taken for a column of the predictions. Rename it."
                )
            names[name] = name
    return names
