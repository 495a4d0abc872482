"""The demo: the four schemes and a mixture side by side on images that come with the package."""

from __future__ import annotations

from calibayes.recipes.compare.settings import Run, Settings
from calibayes.recipes.demo.run import Results, run_demo

__all__ = ["Results", "Run", "Settings", "run_demo"]
