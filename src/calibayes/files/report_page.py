"""The report on a training on a file."""

from __future__ import annotations

from pathlib import Path

from calibayes.crossfit.permutation_importance import ColumnImportance, permutation_importance
from calibayes.files.summary_text import warnings_about_scores
from calibayes.files.table_coding import TableCoding
from calibayes.files.training import Trained
from calibayes.report.training_report import training_report
from calibayes.report.training_study import TrainingStudy

__all__ = ["write_report"]


def write_report(trained: Trained, path: str | Path, *, source: str | Path, command: str | None = None) -> None:
    """Write a page about a training: scores, reliability, which classes are confused, which columns matter, what was tried.

    Args:
        trained: the result of `train`.
        path: the HTML file to write.
        source: the file that the model was trained on.
        command: by which the training can be repeated.
    """
    importance, note = _importance(trained)
    scored_on = trained.held_out.rows
    training_report(
        path,
        TrainingStudy(
            probs=trained.held_out.probs,
            targets=trained.held_out.labels,
            class_names=trained.data.classes,
            file=Path(source).name,
            rows=len(trained.data.targets),
            columns=len(trained.data.coding.needs),
            examples=trained.data.examples,
            target=trained.data.target,
            method=trained.selection.best.title,
            scored_on=scored_on,
            folds=len(trained.plan.folds) if scored_on == "held-out folds" else None,
            group=trained.settings.group,
            time=trained.settings.time,
            test_file=trained.settings.test_file,
            command=command,
            attempts=trained.selection.attempts,
            importance=importance,
            importance_note=note,
            warnings=warnings_about_scores(trained),
            notes=(*trained.data.notes, *trained.plan.notes, *trained.notes, *_about_time(trained)),
            guarantees=trained.guarantees,
            seed=trained.settings.seed,
        ),
    )


def _about_time(trained: Trained) -> tuple[str, ...]:
    """Say so if another machine might choose another method."""
    best = trained.selection.best
    if not any(each.result == "too slow" for each in trained.selection.attempts):
        return ()
    fixed = f" --method {best.parts[0].learner.method} fixes it." if len(best.parts) == 1 else ""
    return (f"The time budget decided which methods were tried to the end, so a faster machine may choose another.{fixed}",)


def _importance(trained: Trained) -> tuple[tuple[ColumnImportance, ...], str]:
    """Return how much the model relies on each column, or why that is not known."""
    coding = trained.data.coding
    if not isinstance(coding, TableCoding):
        return (), f"Only columns of tables are shuffled, not {trained.data.examples}."
    found = permutation_importance(trained.selection.best.parts, coding.places, seed=trained.settings.seed)
    left = len(coding.places) - len(found)
    return found, f"{left:,} of {len(coding.places):,} columns were not looked at, for lack of time." if left else ""
