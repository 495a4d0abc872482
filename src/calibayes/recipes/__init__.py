"""What experiments are made of: the four schemes by name, the comparison of them, and the demo."""

from __future__ import annotations

from calibayes.recipes.schemes import build

__all__ = ["build"]
