"""What was found about one or several classifiers: verdicts in words, and one self-contained page."""

from __future__ import annotations

from calibayes.report.page import render_page, write_page
from calibayes.report.study import Model, Pair, Study, study
from calibayes.report.verdict import Verdict

__all__ = ["Model", "Pair", "Study", "Verdict", "render_page", "study", "write_page"]
