"""The report on a training as one HTML file: how good the model is, where it errs, and what it was chosen from."""

from __future__ import annotations

import os

from calibayes.report.page import render_template, write_html
from calibayes.report.training_study import TrainingStudy
from calibayes.report.training_view import training_view

__all__ = ["render_training_report", "training_report"]


def training_report(path: str | os.PathLike[str], study: TrainingStudy) -> None:
    """Write the report on a training, atomically; raise `InvalidArgumentError` if ``path`` cannot be written.

    Args:
        path: the HTML file to write.
        study: the training, and the predictions by which it is judged.
    """
    write_html(render_training_report(study), path)


def render_training_report(study: TrainingStudy) -> str:
    """The report on a training as HTML; it loads nothing, and the same study gives the same text.

    Args:
        study: the training, and the predictions by which it is judged.
    """
    content = study.to_dict()
    return render_template("training.html", training_view(content), content, styles=("page.css", "training.css"))
