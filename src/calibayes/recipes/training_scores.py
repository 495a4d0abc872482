"""Scores of a network during and after training, plain and with a temperature fitted on validation examples."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor

from calibayes.data import Splits
from calibayes.metrics import accuracy, brier, ece, evaluate, nll, reliability_bins, smooth_ece
from calibayes.posterior.abstract_posterior import Posterior
from calibayes.posthoc import PosthocWarning, TemperatureScaling
from calibayes.predictive import Predictive, predict, samples_for

__all__ = ["EpochScorer", "fitted_temperature", "rounded", "scores_of", "scores_with_temperature"]

_METRICS = {"accuracy": accuracy, "ece": ece, "nll": nll, "brier": brier, "smooth_ece": smooth_ece}
_BATCH = 512
_SAMPLES = (1, 2, 5, 10, 20, 50)


@dataclass
class EpochScorer:
    """Scores a posterior after epochs, as the ``on_epoch`` of `calibayes.fit`, and more closely at the end."""

    splits: Splits  # of which validation and test examples are used
    every: int  # epochs between two scorings
    last: int  # the last epoch, which is always scored
    samples: int  # of the weights
    seed: int  # of the samples
    scores: dict[int, dict[str, Any]] = field(default_factory=dict)  # those of each epoch that was scored

    def __call__(self, posterior: Posterior, epoch: int) -> None:
        """Score the posterior after every ``every`` epochs and the last."""
        if epoch % self.every == 0 or epoch == self.last:
            self.scores[epoch] = self._scored(*(each.probs for each in self._predicted(posterior, self.samples)))

    def final(self, posterior: Posterior, samples: int) -> dict[str, Any]:
        """All scores of the trained network."""
        predicted = self._predicted(posterior, samples, keep_samples=True)
        every = [each.samples for each in predicted if each.samples is not None]
        validation, test = (each.mean(0) for each in every)
        scores = self._scored(validation, test)
        labels = self.splits.test[1].to(test.device)
        probs = {"test": test, "scaled": fitted_temperature(validation, self.splits.validation[1]).transform(test)}
        scores["closely"] = {name: _closely(each, labels) for name, each in probs.items()}
        scores["reliability"] = {name: _bins(each, labels) for name, each in probs.items()}
        if posterior.num_bayesian and len(posterior.members) == 1:
            fewer = [count for count in _SAMPLES if count < samples]
            scores["by_samples"] = {str(count): self._scored(*(each[:count].mean(0) for each in every)) for count in fewer}
            scores["mean_weights"] = self._scored(*(each.probs for each in self._predicted(posterior, "mean")))
        return scores

    def _predicted(
        self, posterior: Posterior, samples: int | Literal["mean"], *, keep_samples: bool = False
    ) -> list[Predictive]:
        """Predictions of both parts in float64: after long training some probabilities are below those of float32."""
        given: dict[str, Any] = {"samples": samples_for(posterior, samples), "seed": self.seed, "keep_samples": keep_samples}
        parts = (self.splits.validation[0], self.splits.test[0])
        return [predict(posterior, x, batch_size=_BATCH, dtype=torch.float64, **given) for x in parts]

    def _scored(self, validation: Tensor, test: Tensor) -> dict[str, Any]:
        """Scores on both parts, and on the test part with a temperature that fits the validation part."""
        return scores_with_temperature(validation, self.splits.validation[1], test, self.splits.test[1])


def scores_with_temperature(validation: Tensor, validation_labels: Tensor, test: Tensor, test_labels: Tensor) -> dict[str, Any]:
    """Scores of probabilities on both parts, and on the test part with a temperature that fits the validation part."""
    scaling = fitted_temperature(validation, validation_labels)
    return {
        "validation": scores_of(validation, validation_labels),
        "test": scores_of(test, test_labels),
        "scaled": scores_of(scaling.transform(test), test_labels),
        "temperature": rounded(scaling.temperature),
    }


def fitted_temperature(probs: Tensor, labels: Tensor) -> TemperatureScaling:
    """The temperature that fits these examples best; one at its bound is no reason for a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PosthocWarning)  # the result shows a temperature at its bound
        return TemperatureScaling().fit(probs, labels)


def scores_of(probs: Tensor, labels: Tensor) -> dict[str, float]:
    """Accuracy, ECE and proper scores of probabilities."""
    probs, labels = probs.cpu(), labels.cpu()
    return {name: rounded(metric(probs, labels, check=False)) for name, metric in _METRICS.items()}


def _closely(probs: Tensor, labels: Tensor) -> dict[str, Any]:
    """Every metric, and the intervals of those that a diagram shows."""
    scores = evaluate(probs, labels, replicates=500)
    return {
        "values": {name: rounded(value) for name, value in scores.values.items()},
        "intervals": {name: [rounded(end) for end in scores.intervals[name]] for name in ("accuracy", "ece", "nll", "brier")},
    }


def _bins(probs: Tensor, labels: Tensor) -> dict[str, list[float | None]]:
    """A reliability diagram as numbers; None in empty bins."""
    bins = reliability_bins(probs, labels)
    means = {name: getattr(bins, name).tolist() for name in ("confidence", "accuracy")}
    return {
        "count": bins.count.tolist(),
        **{name: [None if math.isnan(each) else rounded(each) for each in column] for name, column in means.items()},
    }


def rounded(value: float) -> float:
    """Six significant digits, so that files stay small."""
    return float(f"{value:.6g}") if math.isfinite(value) else value
