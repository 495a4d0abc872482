"""Logistic regression: what calibayes predicts is what scikit-learn does, and the best penalty is found."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import nn

from calibayes import predict
from calibayes.errors import InvalidArgumentError
from calibayes.methods import Examples
from calibayes.methods.logistic_regression import LinearLearner, LogisticRegressionSettings
from calibayes.networks.word_weights import WordWeights

WORDS = 60


def texts(count: int, classes: int, seed: int = 0) -> Examples:
    """Texts of eight words, of which the classes have different ones."""
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % classes
    chances = 0.9 * np.random.default_rng(1).dirichlet(np.full(WORDS - 1, 0.5), classes) + 0.1 / (WORDS - 1)
    rows = np.stack([rng.choice(np.arange(1, WORDS), 8, replace=False, p=chances[label]) for label in labels])
    return Examples(torch.from_numpy(rows), torch.from_numpy(labels))


@pytest.mark.parametrize("classes", [2, 5])
def test_the_member_predicts_what_scikit_learn_does(classes: int) -> None:
    train, other = texts(300, classes), texts(100, classes, seed=2)
    weights = WordWeights(WORDS).fit(train.inputs)
    member = LinearLearner(weights, LogisticRegressionSettings(penalties=(30.0,)))(train, other, classes, 0)
    expected = LogisticRegression(C=30.0, max_iter=200, tol=1e-8).fit(weights.matrix(train.inputs), train.targets.numpy())
    np.testing.assert_allclose(
        predict(member, other.inputs).probs.numpy(), expected.predict_proba(weights.matrix(other.inputs)), atol=1e-5
    )


def test_dense_inputs_are_learnt_as_well() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(256, (200, 1, 4, 4), generator=generator, dtype=torch.uint8)
    examples = Examples(x, (x[:, 0, 0, 0] > 128).long())
    layer = nn.Sequential(nn.Flatten(), _Scaled())
    member = LinearLearner(layer, LogisticRegressionSettings(penalties=(1.0,)))(examples, examples, 2, 0)
    expected = LogisticRegression(C=1.0, max_iter=200).fit(layer(x).numpy(), examples.targets.numpy())
    np.testing.assert_allclose(predict(member, x).probs.numpy(), expected.predict_proba(layer(x).numpy()), atol=1e-5)


class _Scaled(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.float() / 255


def test_the_search_finds_the_same_penalty_from_any_start() -> None:
    train, other = texts(200, 3), texts(300, 3, seed=2)
    weights = WordWeights(WORDS).fit(train.inputs)
    penalties = (0.03, 0.3, 3.0, 30.0, 300.0, 3000.0)
    losses = []
    for penalty in penalties:
        member = LinearLearner(weights, LogisticRegressionSettings(penalties=(penalty,)))(train, other, 3, 0)
        probs = predict(member, other.inputs).probs
        losses.append(float(nn.functional.nll_loss(probs.log(), other.targets)))
    assert 0 < int(np.argmin(losses)) < len(penalties) - 1
    for start in (None, 0.03, 4.0, 1e9):
        member = LinearLearner(weights, LogisticRegressionSettings(penalties=penalties, start=start))(train, other, 3, 0)
        loss = float(nn.functional.nll_loss(predict(member, other.inputs).probs.log(), other.targets))
        assert loss == pytest.approx(min(losses), abs=5e-3)


def test_a_class_without_training_rows_is_never_chosen_and_does_no_harm() -> None:
    train, other = texts(200, 4), texts(80, 4, seed=2)
    some = train.rows(train.targets != 1)
    weights = WordWeights(WORDS).fit(train.inputs)
    probs = predict(LinearLearner(weights)(some, other, 4, 0), other.inputs).probs
    assert float(probs[:, 1].max()) < 1e-6
    assert bool(probs.isfinite().all())


def test_a_start_that_is_no_penalty_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"`start`.*-1"):
        LogisticRegressionSettings(start=-1.0)
