"""Predict one block of rows: from cells to the text, or the Arrow batch, that the output file gets.

Every block is predicted by itself, in one thread, whichever process does it: so the output is the same for any number of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from calibayes.files.input_predictor import InputPredictor
from calibayes.files.model import Model
from calibayes.files.prediction_notes import BlockNotes, BlockObserver
from calibayes.files.prediction_writer import formatted
from calibayes.files.read_rows import LABEL
from calibayes.files.row_actions import RowActions
from calibayes.tables import RowBlock, TableOptions, UnnamedRows
from calibayes.threads import in_one_thread

__all__ = ["UNCERTAINTIES", "BlockPredictor", "PredictedBlock", "packed", "unpacked"]

UNCERTAINTIES = ("confidence", "epistemic", "aleatoric")


@dataclass(frozen=True)
class PredictedBlock:
    """The predictions of a block, ready to be written."""

    names: tuple[str, ...]  # of the columns
    content: bytes  # the rows, as `formatted` returns them
    rows: int
    confidence: float  # summed over the rows
    abstained: int  # rows without a decision
    notes: BlockNotes


@final
class BlockPredictor:
    """Predicts blocks of rows; it can be sent to other processes.

    Args:
        model: a trained model.
        actions: what is decided for each row.
        copied: the columns to copy, by their names in the output.
        samples: of the weights; those of training by default.
        ending: of the output file, ``.csv`` or ``.parquet``.
    """

    def __init__(
        self,
        model: Model,
        actions: RowActions,
        copied: Mapping[str, str],
        *,
        samples: int | None,
        ending: str,
    ) -> None:
        self._model, self._actions, self._copied = model, actions, dict(copied)
        self._samples, self._ending = samples, ending
        self._observer = BlockObserver(model, self._copied.get(LABEL))

    @cached_property
    def _predictor(self) -> InputPredictor:
        """Made where it is first used: networks are drawn in the process that predicts."""
        return InputPredictor(self._model, self._samples)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_predictor"}

    @property
    def needs(self) -> list[str]:
        """The columns that must be there."""
        return list(dict.fromkeys((*self._model.coding.needs, *self._copied.values())))

    @in_one_thread
    def __call__(self, block: RowBlock) -> PredictedBlock:
        """Predict the rows of a block."""
        notes = self._observer.notes(block)
        predictive = self._model.predict_block(block, self._predictor)
        scaled = self._actions.probs(predictive)
        probs = scaled.numpy()
        confidence = probs.max(1)
        columns: dict[str, Any] = {
            name: np.array(block.table.column(own).fill_null("").to_pylist(), dtype=object)
            for name, own in self._copied.items()
        }
        decided, abstained = self._actions.columns(scaled)
        columns |= decided
        columns |= {f"p_{name}": probs[:, place] for place, name in enumerate(self._model.classes)}
        numbers = (confidence, predictive.epistemic.numpy(), predictive.aleatoric.numpy())
        columns |= dict(zip(UNCERTAINTIES, numbers, strict=True)) | self._actions.outsider(predictive)
        content = formatted(columns, self._ending)
        return PredictedBlock(tuple(columns), content, len(probs), float(confidence.sum()), abstained, notes)


def packed(block: RowBlock, columns: list[str]) -> tuple[bytes, int, TableOptions]:
    """Return some columns of a block of rows that follow one another, to be sent to another process."""
    import pyarrow as pa

    table = block.table.select(columns)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return sink.getvalue().to_pybytes(), int(block.rows[0]), block.source.options


def unpacked(content: bytes, first: int, options: TableOptions) -> RowBlock:
    """Invert `packed`, except for the place of the rows in their file."""
    import pyarrow as pa

    with pa.ipc.open_stream(content) as stream:
        table = stream.read_all()
    return RowBlock(table, np.arange(first, first + table.num_rows), UnnamedRows(None, options))
