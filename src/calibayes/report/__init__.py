"""Reports on one or several classifiers: verdicts in words, and one self-contained page."""

from __future__ import annotations

from calibayes.report.confidence_verdict import Verdict
from calibayes.report.page import render_page, write_page
from calibayes.report.study import Model, Pair, Study, study

__all__ = ["Model", "Pair", "Study", "Verdict", "render_page", "study", "write_page"]
