"""Fitted classifiers of every kind of label, and those that cannot be drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from calibayes.displays import ConfidenceHistogramDisplay, ReliabilityDisplay, RiskCoverageDisplay
from calibayes.displays.estimator_predictions import predictions_of
from calibayes.errors import InvalidArgumentError, InvalidTargetsError

INPUTS = np.random.default_rng(0).normal(size=(90, 3))
PLACES = INPUTS.argmax(-1)


@pytest.mark.parametrize(
    "names",
    [np.array(["cat", "ant", "bee"]), np.array([7, -1, 3]), np.array([2.0, 0.0, 1.0]), np.array(["b", "a", "c"], dtype=object)],
)
@pytest.mark.parametrize("kind", [np.asarray, list, pd.Series, lambda labels: np.asarray(labels)[:, None]])
def test_labels_are_the_columns_of_their_class(names: Any, kind: Any) -> None:
    labels = names[PLACES]
    model = LogisticRegression().fit(INPUTS, labels)
    probs, targets = predictions_of(model, INPUTS, kind(labels))
    assert np.array_equal(probs, model.predict_proba(INPUTS))
    assert np.array_equal(model.classes_[targets], labels)


def test_booleans_tensors_and_pipelines() -> None:
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(INPUTS, PLACES == 1)
    assert predictions_of(model, INPUTS, PLACES == 1)[1].tolist() == (PLACES == 1).tolist()
    numbers = make_pipeline(StandardScaler(), LogisticRegression()).fit(INPUTS, PLACES)
    assert predictions_of(numbers, INPUTS, torch.from_numpy(PLACES))[1].tolist() == PLACES.tolist()


def test_a_class_that_is_not_among_the_examples_keeps_its_column() -> None:
    model = LogisticRegression().fit(INPUTS, np.array(["a", "b", "c"])[PLACES])
    some = PLACES != 0
    probs, targets = predictions_of(model, INPUTS[some], np.array(["a", "b", "c"])[PLACES[some]])
    assert probs.shape[1] == 3
    assert set(targets.tolist()) == {1, 2}


@pytest.mark.parametrize("display", [ConfidenceHistogramDisplay, ReliabilityDisplay, RiskCoverageDisplay])
def test_a_label_it_was_not_fitted_on_is_quoted(display: Any) -> None:
    model = LogisticRegression().fit(INPUTS, np.array(["a", "b", "c"])[PLACES])
    with pytest.raises(InvalidTargetsError, match=r"Label 2 of `y` is 'z', which LogisticRegression .* knows 'a', 'b', 'c'"):
        display.from_estimator(model, INPUTS[:3], ["a", "b", "z"])


def test_anything_but_a_fitted_classifier_is_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match="RidgeClassifier has no `predict_proba`"):
        predictions_of(RidgeClassifier().fit(INPUTS, PLACES), INPUTS, PLACES)
    with pytest.raises(InvalidArgumentError, match=r"LogisticRegression has no `classes_`. Fit it first"):
        predictions_of(LogisticRegression(), INPUTS, PLACES)
    several = RandomForestClassifier(n_estimators=2, random_state=0).fit(INPUTS, np.stack((PLACES, PLACES), 1))
    with pytest.raises(InvalidArgumentError, match="Several outputs"):
        predictions_of(several, INPUTS, PLACES)
    with pytest.raises(InvalidTargetsError, match=r"one label per example, but its shape is \[90, 2\]"):
        predictions_of(LogisticRegression().fit(INPUTS, PLACES), INPUTS, np.stack((PLACES, PLACES), 1))
