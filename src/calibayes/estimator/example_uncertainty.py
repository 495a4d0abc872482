"""The uncertainty of a classifier about each example."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from calibayes.posthoc import Scaling
from calibayes.predictive import Predictive

__all__ = ["Uncertainty"]

Floats = npt.NDArray[np.float64]


class Uncertainty(NamedTuple):
    """The uncertainty of a classifier about each example; entropies are in nats.

    Attributes:
        confidence: the probability of the predicted class.
        entropy: the entropy of the probabilities, the total uncertainty: ``aleatoric + epistemic``.
        aleatoric: the mean entropy of the sampled networks, which more data would not reduce.
        epistemic: the disagreement of the sampled networks. Zero for ``"fnn"``, ``"ca-fnn"`` and others with one network.
        between: the part of ``epistemic`` between the members of an ensemble; zero without members.
    """

    confidence: Floats
    entropy: Floats
    aleatoric: Floats
    epistemic: Floats
    between: Floats

    @classmethod
    def of(cls, predictive: Predictive, scaling: Scaling | None = None) -> Uncertainty:
        """The uncertainty of an ensemble's predictions.

        A scaling changes confidence and entropy; members disagree as much as before, though never by more than the entropy.
        """
        found = cls(*(getattr(predictive, name).cpu().double().numpy() for name in cls._fields))
        if scaling is None:
            return found
        probs = scaling.transform(predictive.probs.cpu().double()).numpy()
        entropy = -np.sum(probs * np.log(np.maximum(probs, np.finfo(np.float64).tiny)), axis=1)
        epistemic = np.minimum(found.epistemic, entropy)
        return cls(probs.max(1), entropy, entropy - epistemic, epistemic, np.minimum(found.between, epistemic))
