"""What a network is worth on the way and at the end, plain and with a temperature fitted on validation examples."""

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
        every = []
        for part in ("validation", "test"):
            kept = _predicted(posterior, self._data(part)[0], samples, self.seed, keep_samples=True).samples
            assert kept is not None
            every.append(kept)
        validation, test = (each.mean(0) for each in every)
        found = self._scored(validation, test)
        labels = self.splits.test[1].to(test.device)
        scaled = _scaling(validation, self._data("validation")[1]).transform(test)
        found["closely"] = {"test": _closely(test, labels), "scaled": _closely(scaled, labels)}
        found["reliability"] = {"test": _bins(test, labels), "scaled": _bins(scaled, labels)}
        if posterior.num_bayesian and len(posterior.members) == 1:
            found["by_samples"] = {
                str(count): self._scored(every[0][:count].mean(0), every[1][:count].mean(0))
                for count in _SAMPLES
                if count < samples
            }
            found["mean_weights"] = self._scored(*(self._probs(posterior, part, "mean") for part in ("validation", "test")))
        return found

    def _data(self, part: str) -> tuple[Tensor, Tensor]:
        x, y = getattr(self.splits, part)
        return x, y

    def _probs(self, posterior: Posterior, part: str, samples: int | Literal["mean"]) -> Tensor:
        return _predicted(posterior, self._data(part)[0], samples, self.seed).probs

    def _scored(self, validation: Tensor, test: Tensor) -> dict[str, Any]:
        return scored(validation, self.splits.validation[1], test, self.splits.test[1])


def _predicted(
    posterior: Posterior, x: Tensor, samples: int | Literal["mean"], seed: int, keep_samples: bool = False
) -> Predictive:
    """In float64: a network that is trained for long gives some classes less than float32 can hold."""
    return predict(
        posterior,
        x,
        samples=samples_for(posterior, samples),
        batch_size=_BATCH,
        seed=seed,
        keep_samples=keep_samples,
        dtype=torch.float64,
    )


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


def _bins(probs: Tensor, labels: Tensor) -> dict[str, list[float | None]]:
    """A reliability diagram as numbers; None in empty bins."""
    found = reliability_bins(probs, labels)
    means = {name: getattr(found, name).tolist() for name in ("confidence", "accuracy")}
    return {
        "count": found.count.tolist(),
        **{name: [None if math.isnan(each) else rounded(each) for each in column] for name, column in means.items()},
    }


def rounded(value: float) -> float:
    """Six significant digits, so that files stay small."""
    return float(f"{value:.6g}") if math.isfinite(value) else value
