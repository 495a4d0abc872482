"""What chance does to a calibrated classifier, class by class."""

from __future__ import annotations

import torch
from tests.metrics.simulated import classifier

from calibayes.metrics import confidence_interval
from calibayes.metrics.bins import equal_width, place
from calibayes.metrics.evaluate import EvaluationSettings
from calibayes.metrics.null_distribution import null_of_blocks, null_of_labels
from calibayes.metrics.prediction_arrays import Predictions

BINS = 5


def covariance(predictions: Predictions) -> torch.Tensor:
    """The covariance of the residuals of all classes and bins, in closed form: that of one multinomial draw per example."""
    probs, weight = predictions.probs, predictions.mass / predictions.mass.sum()
    where = place(probs, equal_width(BINS), probs.dtype) + BINS * torch.arange(probs.shape[1])
    total = torch.zeros(probs.shape[1] * BINS, probs.shape[1] * BINS, dtype=torch.float64)
    for p, at, w in zip(probs, where, weight, strict=True):
        total[at[:, None], at] += w**2 * (p.diag() - p[:, None] * p)
    return total


def test_labels_are_drawn_from_the_probabilities() -> None:
    probs, targets = classifier(60, 1.0, seed=0, classes=3)
    predictions = Predictions(probs, targets, torch.arange(1.0, 61.0, dtype=torch.float64))
    null = null_of_labels(predictions, BINS, 40_000, seed=0)
    expected = covariance(predictions)
    scale = float(expected.diag().max())
    assert float(null.mean(0).abs().max()) < 4 * (scale / 40_000) ** 0.5
    torch.testing.assert_close(null.T @ null / len(null), expected, atol=0.03 * scale, rtol=0)


def test_what_one_class_gains_others_lose() -> None:
    probs, targets = classifier(200, 1.0, seed=1, classes=4)
    null = null_of_labels(Predictions(probs, targets), BINS, 50, seed=0)
    torch.testing.assert_close(null.sum(-1), torch.zeros(50, dtype=torch.float64), atol=1e-12, rtol=0)
    assert float(null.abs().sum()) > 1


def test_many_examples_in_blocks_have_the_same_covariance() -> None:
    probs, targets = classifier(6000, 1.0, seed=2, classes=3)
    predictions = Predictions(probs, targets)
    tally = EvaluationSettings(BINS).sample(predictions, resample=True).tally
    null = null_of_blocks(tally.null_by_class, 20_000, seed=0) / tally.weight
    expected = covariance(predictions)
    torch.testing.assert_close(null.T @ null / len(null), expected, atol=0.12 * float(expected.diag().max()), rtol=0)


def test_classes_of_calibrated_classifiers_rarely_exclude_zero() -> None:
    outside = 0
    for seed in range(150):
        probs, targets = classifier(500, 1.0, seed=seed, classes=4)
        outside += confidence_interval("ece_classwise", probs, targets, replicates=100, seed=seed).low > 0
    assert outside <= 11  # of 150 at 2.5 %, as the interval has two sides: more in 1 of 1,000 such experiments
