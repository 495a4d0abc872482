"""λ and β that the classifier chooses itself."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
from tests.estimator.tables import classifier, overlapping

from calibayes.errors import InvalidArgumentError
from calibayes.estimator.classifier_settings import ClassifierSettings
from calibayes.estimator.distinct_examples import distinct
from calibayes.estimator.learning import LearnedPosterior, Learner
from calibayes.metrics import ece, nll
from calibayes.predictive import predict
from calibayes.recipes.choosing import BETAS, LAMS, ValidationScores


def test_the_values_with_the_lowest_validation_nll_are_taken_and_trained_with_on_all_rows() -> None:
    x, y = overlapping()
    found = classifier(lam="auto", beta="auto", epochs=4).fit(x, y)
    tried = found.choices_
    assert [(each.lam, each.beta) for each in tried] == [(lam, beta) for lam in LAMS for beta in BETAS]
    best = min(tried, key=lambda each: each.nll)
    assert (found.lam_, found.beta_) == (best.lam, best.beta)
    assert all(0 <= each.ece <= 1 and 0 < each.accuracy <= 1 for each in tried)
    assert found.history_.steps[0].examples + found.history_.steps[1].examples == 120
    plain = classifier(lam=best.lam, beta=best.beta, epochs=4).fit(x, y)
    np.testing.assert_array_equal(found.predict_proba(x), plain.predict_proba(x))


@pytest.mark.parametrize(
    ("scheme", "settings", "pairs"),
    [
        ("ca-fnn", {"lam": "auto", "beta": "auto"}, [(lam, 0.0) for lam in LAMS]),
        ("bnn", {"lam": "auto", "beta": "auto"}, [(0.0, beta) for beta in BETAS]),
        ("ca-bnn", {"lam": 5.0, "beta": "auto"}, [(5.0, beta) for beta in BETAS]),
        ("fnn", {"lam": "auto", "beta": "auto"}, []),
    ],
)
def test_only_what_the_scheme_has_is_chosen(scheme: str, settings: dict[str, object], pairs: list[tuple[float, float]]) -> None:
    found = classifier(scheme, epochs=1, **settings).fit(*overlapping(30))
    assert [(each.lam, each.beta) for each in found.choices_] == pairs


def test_scores_are_those_of_the_part_held_out() -> None:
    x, y = overlapping()
    estimator = classifier("ca-fnn", lam="auto", epochs=2, standardize=False)
    settings = ClassifierSettings.of(estimator, "ca-fnn")
    examples = distinct(x.astype(np.float32), y, np.ones(len(y)))
    examples = examples._replace(x=examples.x.astype(np.float32))
    learner = Learner(settings, 2, seed=7)
    tried = learner.learn(examples).tried
    training, validation = examples.split(settings.validation_fraction, 7)
    assert len(validation.y) == 24
    posterior = learner.train(training, None, LAMS[1], 0.0).posterior
    probs = predict(posterior, validation.x).probs
    assert tried[1].nll == pytest.approx(nll(probs, validation.y))
    assert tried[1].ece == pytest.approx(ece(probs, validation.y))


def test_with_early_stopping_the_chosen_model_is_kept() -> None:
    x, y = overlapping()
    found = classifier("ca-fnn", lam="auto", epochs=6, early_stopping=2).fit(x, y)
    assert found.history_.best_epoch is not None
    best = min(found.choices_, key=lambda each: each.nll)
    assert min(row["val_nll"] for row in found.history_.epochs) == pytest.approx(best.nll)


def test_the_refined_nll_can_choose(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = overlapping()
    asked = []

    def scores(*_: Any, monitor: str, **__: Any) -> ValidationScores:
        asked.append(monitor)  # the plain NLL grows from model to model, the refined one falls
        return ValidationScores(len(asked), 0.0, 1.0, 0.0, -len(asked))

    monkeypatch.setattr("calibayes.estimator.learning.validation_scores", scores)
    assert classifier("ca-fnn", lam="auto", epochs=1, choose_by="refined-nll").fit(x, y).lam_ == LAMS[-1]
    assert asked == ["refined-nll"] * len(LAMS)
    assert classifier("ca-fnn", lam="auto", epochs=1).fit(x, y).lam_ == LAMS[0]
    with pytest.raises(InvalidArgumentError, match=r"`choose_by` .* but got 'ece'"):
        classifier(choose_by="ece").fit(x, y)


def test_a_warm_start_keeps_what_was_chosen() -> None:
    x, y = overlapping()
    found = classifier("ca-fnn", lam="auto", epochs=2, warm_start=True).fit(x, y)
    lam = found.lam_
    assert found.fit(x, y).lam_ == lam
    assert found.choices_ == []
    assert found.set_params(lam=7.0).fit(x, y).lam_ == 7.0


def test_settings_are_those_of_the_classifier() -> None:
    estimator = classifier()
    assert asdict(ClassifierSettings.of(estimator, "CA-BNN")).keys() < estimator.get_params().keys()
    assert ClassifierSettings.of(estimator, "CA-BNN").method == "ca-bnn"


def test_what_is_tried_has_the_size_of_what_is_trained_in_the_end() -> None:
    x, y = overlapping(130)
    sizes = []

    class Watched(Learner):
        def train(self, *given: Any, **named: Any) -> LearnedPosterior:
            found = super().train(*given, **named)
            sizes.append(sum(each.numel() for each in found.posterior.parameters()))
            return found

    estimator = classifier("ca-fnn", lam="auto", epochs=1, standardize=False)
    settings = ClassifierSettings.of(estimator, "ca-fnn")
    examples = distinct(x, y, np.ones(len(y)))
    Watched(settings, 2, seed=7).learn(examples._replace(x=examples.x.astype(np.float32)))
    assert len(sizes) == 1 + len(LAMS)
    assert len(set(sizes)) == 1
