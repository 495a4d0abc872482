"""The demo: the four schemes side by side on images that come with the package."""

from __future__ import annotations

from calibayes.recipes.demo.run import Results, choose, run_demo
from calibayes.recipes.demo.settings import Run, Settings

__all__ = ["Results", "Run", "Settings", "choose", "run_demo"]
