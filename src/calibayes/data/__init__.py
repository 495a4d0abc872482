"""The data sets of the experiments, split into training, validation and test parts."""

from __future__ import annotations

from calibayes.data.fashion import fashion_mnist
from calibayes.data.splits import Splits

__all__ = ["Splits", "fashion_mnist"]
