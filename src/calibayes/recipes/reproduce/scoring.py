"""What a network is worth on the way and at the end, plain and with a temperature fitted on validation examples."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from calibayes.data import Splits
from calibayes.metrics import accuracy, brier, ece, evaluate, nll, reliability_bins, smooth_ece
from calibayes.posterior.base import Posterior
from calibayes.posthoc import PosthocWarning, TemperatureScaling
from calibayes.predictive import predict

__all__ = ["Watch", "rounded", "scored"]

_METRICS = {"accuracy": accuracy, "ece": ece, "nll": nll, "brier": brier, "smooth_ece": smooth_ece}
_BATCH = 512
_SAMPLES = (1, 2, 5, 10, 20, 50)


@dataclass
class Watch:
    """Looks at a posterior after epochs: what `calibayes.fit` calls.

    Attributes:
        splits: the data; only validation and test examples are looked at.
        every: after how many epochs.
        last: the last epoch, which `final` looks at more closely.
        samples: of the weights.
        seed: of the samples.
        seen: what was seen, by epoch.
    """

    splits: Splits
    every: int
    last: int
    samples: int
    seed: int
    seen: dict[int, dict[str, Any]] = field(default_factory=dict)

    def __call__(self, posterior: Posterior, epoch: int) -> None:
        """Look at it, if it is time to."""
        if epoch % self.every == 0 or epoch == self.last:
            validation, test = (self._probs(posterior, part, self.samples) for part in ("validation", "test"))
            self.seen[epoch] = self._scored(validation, test)

    def final(self, posterior: Posterior, samples: int) -> dict[str, Any]:
        """All that is said of the trained network."""
        every = [predict_all(posterior, self._data(part)[0], samples, self.seed) for part in ("validation", "test")]
        validation, test = (each.mean(0) for each in every)
        found = self._scored(validation, test)
        labels = self.splits.test[1].to(test.device)
        scaled = _scaling(validation, self._data("validation")[1]).transform(test)
        found["closely"] = {"test": _closely(test, labels), "scaled": _closely(scaled, labels)}
        found["reliability"] = {"test": _bins(test, labels), "scaled": _bins(scaled, labels)}
        if posterior.num_bayesian:
            found["by_samples"] = {
                str(count): self._scored(every[0][:count].mean(0), every[1][:count].mean(0))
                for count in _SAMPLES
                if count < samples
            }
            mean = [
                predict(posterior, self._data(part)[0], samples="mean", batch_size=_BATCH).probs
                for part in ("validation", "test")
            ]
            found["mean_weights"] = self._scored(*mean)
        return found

    def _data(self, part: str) -> tuple[Tensor, Tensor]:
        x, y = getattr(self.splits, part)
        return x, y

    def _probs(self, posterior: Posterior, part: str, samples: int) -> Tensor:
        return predict(posterior, self._data(part)[0], samples=samples, batch_size=_BATCH, seed=self.seed).probs

    def _scored(self, validation: Tensor, test: Tensor) -> dict[str, Any]:
        return scored(validation, self.splits.validation[1], test, self.splits.test[1])


def predict_all(posterior: Posterior, x: Tensor, samples: int, seed: int) -> Tensor:
    """Every sample's probabilities ``[S, n, K]``."""
    found = predict(posterior, x, samples=samples, batch_size=_BATCH, seed=seed, keep_samples=True).samples
    assert found is not None
    return found


def scored(validation: Tensor, validation_labels: Tensor, test: Tensor, test_labels: Tensor) -> dict[str, Any]:
    """Scores on both parts, and on the test part with a temperature that fits the validation part."""
    scaling = _scaling(validation, validation_labels)
    return {
        "validation": _scores(validation, validation_labels),
        "test": _scores(test, test_labels),
        "scaled": _scores(scaling.transform(test), test_labels),
        "temperature": rounded(scaling.temperature),
    }


def _scaling(probs: Tensor, labels: Tensor) -> TemperatureScaling:
    with warnings.catch_warnings():
        # A temperature at its bound is told by its value.
        warnings.simplefilter("ignore", PosthocWarning)
        return TemperatureScaling().fit(probs, labels)


def _scores(probs: Tensor, labels: Tensor) -> dict[str, float]:
    probs, labels = probs.cpu(), labels.cpu()
    return {name: rounded(metric(probs, labels, check=False)) for name, metric in _METRICS.items()}


def _closely(probs: Tensor, labels: Tensor) -> dict[str, Any]:
    """Every metric, and the intervals of those that a diagram shows."""
    scores = evaluate(probs, labels, replicates=500)
    return {
        "values": {name: rounded(value) for name, value in scores.values.items()},
        "intervals": {name: [rounded(end) for end in scores.intervals[name]] for name in ("accuracy", "ece", "nll", "brier")},
    }


def _bins(probs: Tensor, labels: Tensor) -> dict[str, list[float]]:
    """A reliability diagram as numbers."""
    found = reliability_bins(probs, labels)
    return {
        "count": [int(each) for each in found.count],
        **{name: [rounded(float(each)) for each in getattr(found, name)] for name in ("confidence", "accuracy")},
    }


def rounded(value: float) -> float:
    """Six significant digits, so that files stay small."""
    return float(f"{value:.6g}") if math.isfinite(value) else value
