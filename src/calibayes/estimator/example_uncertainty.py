"""The uncertainty of a classifier about each example."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from calibayes.predictive import Predictive

__all__ = ["Uncertainty"]

Floats = npt.NDArray[np.float64]


class Uncertainty(NamedTuple):
    """The uncertainty of a classifier about each example; entropies are in nats.

    Attributes:
        confidence: the probability of the class that is predicted.
        entropy: the entropy of the probabilities, all uncertainty together: ``aleatoric + epistemic``.
        aleatoric: what more data would not settle: the mean entropy of the sampled networks.
        epistemic: what the sampled networks disagree about. Zero for ``"fnn"``, ``"ca-fnn"`` and others with one network.
        between: the part of ``epistemic`` that the members of an ensemble disagree about; zero without members.
    """

    confidence: Floats
    entropy: Floats
    aleatoric: Floats
    epistemic: Floats
    between: Floats

    @classmethod
    def of(cls, predictive: Predictive) -> Uncertainty:
        """That of an ensemble's predictions."""
        return cls(*(_array(getattr(predictive, name)) for name in cls._fields))


def _array(tensor: Any) -> Floats:
    found: Floats = tensor.cpu().double().numpy()
    return found
