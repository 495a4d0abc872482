"""Predictions of a model for many requests at once, with what `calibayes predict` would decide for each row."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from calibayes.errors import DataError
from calibayes.files.input_predictor import InputPredictor
from calibayes.files.model import Model
from calibayes.files.row_actions import RowActions
from calibayes.predictive import Predictive
from calibayes.tables import TableOptions

__all__ = ["PredictedRows", "RowPredictor"]

Floats = npt.NDArray[np.float64]


@final
@dataclass(frozen=True, eq=False)
class PredictedRows:
    """The predictions of some rows.

    Attributes:
        text: one JSON object for each row, with commas between them.
        confidence: of each row.
        abstained: the number of rows without a decision.
        outsider: how unlike the known rows each row is; None if the model cannot tell.
        epistemic: the epistemic uncertainty of each row, in nats.
    """

    text: str
    confidence: Floats
    abstained: int
    outsider: Floats | None
    epistemic: Floats


@final
class RowPredictor:
    """Predicts encoded rows; networks are drawn once, when it is made.

    Args:
        model: a trained model.
        table_options: the format of texts.
        actions: what is decided for each row, by the names of the options of `calibayes predict`.
    """

    def __init__(self, model: Model, table_options: TableOptions, **actions: Any) -> None:
        self.model = model
        self.actions = RowActions(model, table_options, **actions)
        self._predictive = InputPredictor(model, actions.get("samples"))
        self._names: npt.NDArray[np.object_] = np.array(model.classes, dtype=object)

    def predict(self, requests: Sequence[Tensor]) -> list[PredictedRows | DataError]:
        """Predict the inputs of several requests together; one whose probabilities are not finite gets an error of its own."""
        with torch.inference_mode():
            predictive = self._predictive(requests[0] if len(requests) == 1 else torch.cat(list(requests)))
            if bool(predictive.probs.isfinite().all()):
                return self._answers(predictive, [len(inputs) for inputs in requests])
        if len(requests) == 1:
            return [DataError("The model's probabilities are not finite for this input. Is a number in it far too large?")]
        return [self.predict([inputs])[0] for inputs in requests]

    def _answers(self, predictive: Predictive, sizes: Sequence[int]) -> list[PredictedRows | DataError]:
        scaled = self.actions.probs(predictive)
        rows = self.actions.decide(scaled)
        outsider = self.actions.outsider(predictive).get("outsider")
        confidence, epistemic = scaled.amax(1).numpy(), predictive.epistemic.numpy()
        columns: dict[str, list[Any]] = {
            "decision": [name or None for name in rows.decisions],
            "abstain": rows.abstained.tolist(),
            "reason": [
                self.actions.reason(rows, row, scaled[row]) if abstained else None
                for row, abstained in enumerate(rows.abstained)
            ],
            "confidence": confidence.tolist(),
            "probabilities": [dict(zip(self.model.classes, probs, strict=True)) for probs in scaled.tolist()],
            "set": [None] * len(scaled) if rows.sets is None else [self._names[row].tolist() for row in rows.sets],
            "outsider": [None] * len(scaled) if outsider is None else outsider.tolist(),
            "epistemic": epistemic.tolist(),
            "aleatoric": predictive.aleatoric.tolist(),
        }
        records = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        answers: list[PredictedRows | DataError] = []
        begin = 0
        for size in sizes:
            own = slice(begin, begin + size)
            text = json.dumps(records[own], ensure_ascii=False, allow_nan=False, separators=(",", ":"))[1:-1]
            abstained = int(rows.abstained[own].sum())
            unlike = None if outsider is None else outsider[own]
            answers.append(PredictedRows(text, confidence[own], abstained, unlike, epistemic[own]))
            begin += size
        return answers
