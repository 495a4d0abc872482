"""Predictions from files: `read_predictions` for one, `align` to compare several."""

from __future__ import annotations

from calibayes.data.predictions.align import align
from calibayes.data.predictions.prediction_table import ColumnsUsed, PredictionTable
from calibayes.data.predictions.read import read_predictions

__all__ = ["ColumnsUsed", "PredictionTable", "align", "read_predictions"]
