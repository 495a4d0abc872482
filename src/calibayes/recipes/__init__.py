"""What experiments are made of: the four schemes by name, and the demo that `calibayes demo` runs."""

from __future__ import annotations

from calibayes.recipes.schemes import build

__all__ = ["build"]
