"""Scores of a trained network on insiders, outsiders and shifted inputs, and of a selector on top of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import torch
from torch import Tensor

from calibayes.acting import Energy, FeatureDistance, Selector, outsider_scores
from calibayes.acting.detection import auroc, detection_probability, fpr_at_tpr
from calibayes.data import Splits
from calibayes.metrics import accuracy, ece
from calibayes.posterior.abstract_posterior import Posterior
from calibayes.predictive import Predictive, predict, samples_for
from calibayes.randomness import generator_for
from calibayes.recipes.training_scores import fitted_temperature, rounded, scores_of, scores_with_temperature

__all__ = ["COVERAGES", "KNOWN_SOURCE", "NEW_SOURCE", "OutsiderScorer"]

COVERAGES = (0.5, 0.7, 0.9)  # shares of the insiders that are answered
KNOWN_SOURCE, NEW_SOURCE = "the source trained on", "another source"  # of outsiders
_NEIGHBOURHOOD = 2000  # training examples that distances are measured to
_FEW = 20  # outsiders, below which nothing is said about how they can be told from insiders
_BATCH = 128  # larger ones leave the cache of a core, which makes a ResNet-20 half as fast


class Scored(NamedTuple):
    """The prediction for some inputs, and every score of how unlike the training data they are."""

    predictive: Predictive
    unlike: dict[str, Tensor]  # by name; higher is more unlike

    @property
    def features(self) -> Tensor:
        """All that a selector sees of them, ``[n, d]``."""
        return torch.stack(list(self.unlike.values()), -1)


@final
@dataclass(frozen=True, eq=False)
class OutsiderScorer:
    """Scores a trained posterior; settings of a selector and temperatures come from validation examples alone."""

    posterior: Posterior
    samples: int  # of the weights, for a prediction
    seed: int  # of the samples, and of the selector's halves

    def scores(
        self, splits: Splits, outsiders: Mapping[str, Tensor], shifted: Mapping[str, tuple[Tensor, Tensor]]
    ) -> dict[str, Any]:
        """All scores, as numbers."""
        distance = FeatureDistance.fit(self.posterior, splits.train[0][:_NEIGHBOURHOOD])
        validation, test = (self._scored(part[0], distance) for part in (splits.validation, splits.test))
        outside = {source: self._scored(x, distance) for source, x in outsiders.items()}
        labels = splits.validation[1], splits.test[1]
        probs = validation.predictive.probs, test.predictive.probs
        return {
            **scores_with_temperature(probs[0], labels[0], probs[1], labels[1]),
            "outsiders": {source: _detection(test, each) for source, each in outside.items()},
            "shift": self._shift(shifted, probs[0], labels[0]),
            "selective": self._selective(validation, labels[0], test, labels[1], outside),
        }

    def _scored(self, x: Tensor, distance: FeatureDistance) -> Scored:
        predictive = self._predict(x)
        unlike = {method: outsider_scores(predictive, method) for method in ("max-prob", "entropy", "epistemic")}
        unlike["energy"] = Energy.fit(self.posterior).scores(x)
        return Scored(predictive, {**unlike, "distance": distance.scores(x)})

    def _predict(self, x: Tensor) -> Predictive:
        given: dict[str, Any] = {"samples": samples_for(self.posterior, self.samples), "seed": self.seed}
        return predict(self.posterior, x, batch_size=_BATCH, dtype=torch.float64, **given)

    def _shift(
        self, shifted: Mapping[str, tuple[Tensor, Tensor]], validation: Tensor, validation_labels: Tensor
    ) -> dict[str, dict[str, dict[str, float]]]:
        """Scores on shifted inputs, plain and with the temperature that fits unshifted validation examples."""
        scaling, scores = fitted_temperature(validation, validation_labels), {}
        for name, (x, labels) in shifted.items():
            probs = self._predict(x).probs
            scores[name] = {"test": scores_of(probs, labels), "scaled": scores_of(scaling.transform(probs), labels)}
        return scores

    def _selective(
        self, validation: Scored, validation_labels: Tensor, test: Scored, labels: Tensor, outside: Mapping[str, Scored]
    ) -> dict[str, dict[str, Any]]:
        """What is left at each coverage, chosen by a selector and by confidence alone.

        The selector is fitted to one half of the validation examples, and both thresholds come from the other half.
        """
        order = torch.randperm(
            len(validation_labels), generator=generator_for(torch.device("cpu"), self.seed, "selector", "halves")
        )
        half = len(order) // 2
        learnt, measured = order[:half], order[half:]
        predictive = validation.predictive
        right = predictive.decision == validation_labels
        scores: dict[str, dict[str, Any]] = {}
        for coverage in COVERAGES:
            selector = Selector.fit(
                validation.features[learnt], predictive.confidence[learnt], right[learnt], coverage=coverage, seed=self.seed
            ).at_coverage(validation.features[measured], coverage)
            least = float(predictive.confidence[measured].quantile(1 - coverage))
            kept = {name: selector.selects(each.features) for name, each in (("", test), *outside.items())}
            confident = {name: each.predictive.confidence >= least for name, each in (("", test), *outside.items())}
            scores[f"{coverage:g}"] = {
                "selector": _left(test, labels, outside, kept),
                "confidence": _left(test, labels, outside, confident),
            }
        return scores


def _left(test: Scored, labels: Tensor, outside: Mapping[str, Scored], kept: Mapping[str, Tensor]) -> dict[str, Any]:
    """The scores of the test examples that are kept, and the share of outsiders that pass; None where too little is left."""
    mine = kept[""]
    probs, true = test.predictive.probs[mine], labels[mine]
    some = len(true) > 0
    return {
        "coverage": rounded(float(mine.double().mean())),
        "accuracy": rounded(accuracy(probs, true)) if some else None,
        "ece": rounded(ece(probs, true)) if some else None,
        "outsiders": {
            source: {
                "passed": rounded(float(kept[source].double().mean())),
                "detection_probability": _told_apart(test.unlike["max-prob"][mine], each.unlike["max-prob"][kept[source]]),
            }
            for source, each in outside.items()
        },
    }


def _told_apart(inside: Tensor, outside: Tensor) -> float | None:
    if min(len(inside), len(outside)) < _FEW:
        return None
    return rounded(detection_probability(inside.numpy(), outside.numpy()))


def _detection(test: Scored, outside: Scored) -> dict[str, dict[str, float]]:
    """How well each score tells outsiders from test examples."""
    measures = {"auroc": auroc, "fpr95": fpr_at_tpr, "detection_probability": detection_probability}
    scores = {}
    for name, inside in test.unlike.items():
        values = {which: measure(inside.numpy(), outside.unlike[name].numpy()) for which, measure in measures.items()}
        scores[name] = {which: rounded(value) for which, value in values.items() if math.isfinite(value)}
    return scores
