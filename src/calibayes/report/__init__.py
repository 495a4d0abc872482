"""Reports on one or several classifiers: verdicts in words, and one self-contained page."""

from __future__ import annotations

from calibayes.report.confidence_verdict import Verdict
from calibayes.report.page import render_page, write_page
from calibayes.report.study import Model, Pair, Study, study
from calibayes.report.training_report import training_report
from calibayes.report.training_study import TrainingStudy

__all__ = ["Model", "Pair", "Study", "TrainingStudy", "Verdict", "render_page", "study", "training_report", "write_page"]
