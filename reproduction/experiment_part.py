"""Trainings that belong together."""

from __future__ import annotations

from dataclasses import dataclass

from calibayes.recipes.single_training import TrainingSettings

__all__ = ["ExperimentPart"]


@dataclass(frozen=True)
class ExperimentPart:
    """Trainings that belong together: one line of a figure, or one variation."""

    name: str  # what it is called in figures and tables
    settings: tuple[TrainingSettings, ...]  # one for each training
