"""Cross-fitting: all rows train, all rows calibrate, and the way to learn is chosen by evidence."""

from __future__ import annotations

from calibayes.crossfit.chosen_classifier import ChosenClassifier, choose_classifier
from calibayes.crossfit.contenders import contenders
from calibayes.crossfit.cross_fit import CrossFit
from calibayes.crossfit.folds import Fold, are_copies, copies_of_rows, forward_folds, stratified_folds
from calibayes.crossfit.image_representation import image_representation
from calibayes.crossfit.network_learner import NetworkLearner
from calibayes.crossfit.representation import Representation, table_representation
from calibayes.crossfit.selection import Attempt, Selection, budget_for, select
from calibayes.crossfit.set_aside import MOST_SET_ASIDE, check_share, rows_to_set_aside
from calibayes.crossfit.text_representation import text_representation

__all__ = [
    "MOST_SET_ASIDE",
    "Attempt",
    "ChosenClassifier",
    "CrossFit",
    "Fold",
    "NetworkLearner",
    "Representation",
    "Selection",
    "are_copies",
    "budget_for",
    "check_share",
    "choose_classifier",
    "contenders",
    "copies_of_rows",
    "forward_folds",
    "image_representation",
    "rows_to_set_aside",
    "select",
    "stratified_folds",
    "table_representation",
    "text_representation",
]
