"""The four schemes side by side on a data set, and which of them to use."""

from __future__ import annotations

from calibayes.recipes.compare.settings import Run, Settings
from calibayes.recipes.compare.task import FASHION_MNIST, Task

__all__ = ["FASHION_MNIST", "Run", "Settings", "Task"]
