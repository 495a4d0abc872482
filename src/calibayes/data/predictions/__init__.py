"""Predictions from files: `read_predictions` for one, `align` to compare several."""

from __future__ import annotations

from calibayes.data.predictions.align import align
from calibayes.data.predictions.read import read_predictions
from calibayes.data.predictions.table import ColumnsUsed, PredictionTable

__all__ = ["ColumnsUsed", "PredictionTable", "align", "read_predictions"]
