"""The trials of the comparison: a try on validation examples, and a training with all scores."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.methods.scoring import scored, validation_nll
from benchmarks.methods.task_data import data_of
from benchmarks.methods.tasks import task_named
from benchmarks.methods.trained_posteriors import Recipe, trained

__all__ = ["final_trial", "validation_trial"]


def validation_trial(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Train a recipe and return its validation NLL; no test example is predicted."""
    recipe, begin = Recipe(**settings["recipe"]), time.process_time()
    posterior = trained(recipe, Path(settings["folder"]), keep=True)
    task, data = task_named(recipe.task), data_of(recipe.task, recipe.seed)
    return {"nll": validation_nll(posterior, task, data, recipe.seed), "cpu_seconds": time.process_time() - begin}


def final_trial(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Train a recipe, if it lies nowhere already, and score it."""
    recipe, begin = Recipe(**settings["recipe"]), time.process_time()
    posterior = trained(recipe, Path(settings["folder"]), keep=settings["keep"])
    ready = time.process_time()
    task, data = task_named(recipe.task), data_of(recipe.task, recipe.seed)
    scores = scored(posterior, task, data, recipe.seed)
    return {**scores, "cpu_seconds": ready - begin, "scoring_seconds": time.process_time() - ready}
