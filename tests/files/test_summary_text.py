"""The summary of a training: its first lines say which method was taken, and whether anything was learnt."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.metrics import log_loss
from tests.files.test_training import QUICK, frame, written

from calibayes.crossfit import Attempt, Fold, Selection
from calibayes.crossfit.chosen_classifier import _honest
from calibayes.files import train
from calibayes.files.report_page import write_report
from calibayes.files.summary_text import closing_words, opening_words, warnings_about_scores


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_noise_is_not_clearly_better_than_guessing(share: float, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    made = pd.DataFrame(rng.normal(size=(300, 4)), columns=list("abcd"))
    made["label"] = np.where(rng.random(300) < share, "yes", "no")
    trained = train(written(tmp_path, made), **QUICK)
    (warning,) = warnings_about_scores(trained)
    assert opening_words(trained).splitlines()[1] == warning
    own, frequencies = map(float, re.findall(r"\d\.\d{4}", warning))
    assert own == pytest.approx(trained.scores.nll, abs=1e-4)
    guessed = DummyClassifier(strategy="prior").fit(made[["a"]], made["label"]).predict_proba(made[["a"]])
    assert frequencies == pytest.approx(log_loss(made["label"], guessed), abs=1e-4)


@pytest.mark.parametrize("folds", [1, 3])
def test_there_is_no_warning_where_something_was_learnt(folds: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    made = pd.DataFrame(rng.normal(size=(300, 4)), columns=list("abcd"))
    made["label"] = np.where(made["a"] + 0.3 * rng.normal(size=300) > 0, "yes", "no")
    assert warnings_about_scores(train(written(tmp_path, made), **QUICK, folds=folds)) == ()


@pytest.mark.parametrize(("folds", "said"), [(2, "which is usually as good or better"), (30, "They may be too good: ")])
def test_scores_of_small_folds_are_not_called_conservative(folds: int, said: str, tmp_path: Path) -> None:
    trained = train(written(tmp_path, frame(300)), **QUICK, folds=folds)
    assert said in closing_words(trained)
    assert ("here only 10, " in closing_words(trained)) == (folds == 30)
    assert ("how strongly it is penalised" in closing_words(trained)) == (folds == 30)


@pytest.mark.parametrize("method", [None, "logistic-regression"])
def test_the_temperature_is_said_to_be_no_part_of_what_was_compared(method: str | None, tmp_path: Path) -> None:
    trained = train(written(tmp_path, frame()), **({**QUICK, "scheme": None} if method is None else {"scheme": method}))
    raw = log_loss(trained.data.targets, trained.selection.best.predictions())
    assert trained.selection.best.nll == pytest.approx(raw)
    several = len(trained.selection.attempts) > 1
    assert several == (method is None)
    assert ("compared without it." in closing_words(trained)) == several


def test_decisions_no_better_than_the_most_frequent_class_are_said_to_be(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    made = pd.DataFrame(rng.normal(size=(1500, 2)), columns=list("ab"))
    made["label"] = np.where(rng.random(1500) < 1 / (1 + np.exp(3.5 - made["a"])), "fraud", "fine")
    (warning,) = warnings_about_scores(train(written(tmp_path, made), scheme="logistic-regression"))
    share = np.mean(made["label"] == "fine")
    assert warning.startswith(f"Its decisions are not clearly better than always 'fine', which is right {100 * share:.0f} % of")


@pytest.mark.parametrize("better", [True, False])
def test_a_method_that_was_ahead_when_its_time_was_up_is_named(better: bool, tmp_path: Path) -> None:
    trained = train(written(tmp_path, frame()), scheme="logistic-regression")
    best = trained.selection.best
    late = Mock(title="network (EMA)", result="too slow", seconds=60.0, nll=0.1)
    late.predictions.return_value = np.full_like(best.predictions(), np.nan)
    late.predictions.return_value[:60] = np.eye(2)[trained.data.targets.numpy()][:60] if better else 0.01
    slow = replace(trained, selection=replace(trained.selection, attempts=(best, late)))
    said = "Network (EMA) was ahead of it after one fold, but would not have been done in time: try --budget "
    assert (said in opening_words(slow)) == better


def test_scores_that_are_partly_of_another_method_are_said_to_be(tmp_path: Path) -> None:
    trained = train(written(tmp_path, frame()), scheme="logistic-regression")
    mixed = replace(trained, held_out=trained.held_out._replace(other_choices=2))
    (said,) = warnings_about_scores(mixed)
    assert said.startswith("In 2 of 5 folds the other rows preferred another method")
    assert said.endswith("For its own, run it with --method logistic-regression.")


def test_folds_that_prefer_another_method_are_counted() -> None:
    targets = np.arange(90) % 2
    right = np.full((90, 2), 0.3)
    right[np.arange(90), targets] = 0.7
    first, second = right.copy(), right.copy()
    first[:30], second[30:] = 0.5, 0.6 * right[30:] + 0.2  # each is worse somewhere
    folds = [Fold(np.delete(np.arange(90), place), place) for place in np.split(np.arange(90), 3)]

    def attempt(predictions: np.ndarray) -> Attempt:
        part = Mock(folds=folds, members=[None] * 3)
        part.predictions.return_value = predictions
        return Attempt("one", "complete", 0.5, 0.0, 1.0, "", (part,))

    attempts = (attempt(first), attempt(second))
    for taken in attempts:
        found, changed = _honest(Selection(taken, attempts), targets)
        assert not np.isnan(found).any()
        assert 0 < changed < 3


def test_a_report_says_if_time_decided_what_was_tried(tmp_path: Path) -> None:
    trained = train(written(tmp_path, frame()), scheme="logistic-regression")
    best = trained.selection.best
    late = Attempt("network", "too slow", 0.1, 0.1, 60.0, "would not have been done in time", best.parts)
    slow = replace(trained, selection=replace(trained.selection, attempts=(best, late)))
    for each, said in ((trained, False), (slow, True)):
        write_report(each, tmp_path / "report.html", source="data.csv")
        page = (tmp_path / "report.html").read_text()
        assert ("--method logistic-regression fixes it." in page) == said


def test_the_first_line_has_the_next_best_with_its_nll_in_brackets(tmp_path: Path) -> None:
    trained = train(written(tmp_path, frame()), scheme="logistic-regression")
    best = replace(trained.selection.best, nll=0.25)
    second = Attempt("both networks, averaged", "complete", 0.3, 0.1, 1.0, "", best.parts)
    found = replace(trained, selection=Selection(best, (best, second)))
    first = "Logistic regression: the lowest NLL of what was tried, 0.2500; next: both networks, averaged (0.3000)."
    assert opening_words(found).splitlines()[0] == first


@pytest.mark.parametrize("named", [True, False])
def test_rows_that_belong_together_make_intervals_too_narrow(named: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    made = pd.DataFrame({"a": rng.normal(size=60), "label": np.where(rng.random(60) < 0.5, "yes", "no")})
    made["patient"] = [f"P{k}" for k in range(60)]
    copies = pd.concat([made] * 2)
    settings = {"group": "patient"} if named else {"ignore": ["patient"]}
    trained = train(written(tmp_path, copies), scheme="logistic-regression", **settings)
    what = "of one 'patient'" if named else "copies of others"
    said = f"Many rows are {what}: 120 rows in 60 groups. Intervals and p-values count each row as independent"
    assert sum(said in line for line in opening_words(trained).splitlines()) == 1
