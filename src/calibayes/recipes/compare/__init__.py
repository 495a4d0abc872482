"""Methods side by side on a data set, plain and temperature-scaled, and which of them to use."""

from __future__ import annotations

from calibayes.recipes.compare.comparison import Comparison, compare
from calibayes.recipes.compare.contenders import CONTENDERS, Contender
from calibayes.recipes.compare.settings import Run, Settings
from calibayes.recipes.compare.task import FASHION_MNIST, Task

__all__ = ["CONTENDERS", "FASHION_MNIST", "Comparison", "Contender", "Run", "Settings", "Task", "compare"]
