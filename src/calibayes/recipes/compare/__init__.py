"""Methods and baselines side by side on a data set, and which of them to use."""

from __future__ import annotations

from calibayes.recipes.compare.comparison import Comparison, compare
from calibayes.recipes.compare.comparison_settings import BASELINES, MethodRun, Settings
from calibayes.recipes.compare.comparison_task import FASHION_MNIST, PlainInputs, Task
from calibayes.recipes.compare.contenders import CONTENDERS, Contender

__all__ = [
    "BASELINES",
    "CONTENDERS",
    "FASHION_MNIST",
    "Comparison",
    "Contender",
    "MethodRun",
    "PlainInputs",
    "Settings",
    "Task",
    "compare",
]
