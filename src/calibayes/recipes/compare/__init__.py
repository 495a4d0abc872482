"""Methods side by side on a data set, plain and temperature-scaled, and which of them to use."""

from __future__ import annotations

from calibayes.recipes.compare.comparison import Comparison, compare
from calibayes.recipes.compare.comparison_settings import MethodRun, Settings
from calibayes.recipes.compare.comparison_task import FASHION_MNIST, Task
from calibayes.recipes.compare.contenders import CONTENDERS, Contender

__all__ = ["CONTENDERS", "FASHION_MNIST", "Comparison", "Contender", "MethodRun", "Settings", "Task", "compare"]
