"""Predictions of a model for encoded rows again and again, with networks that are drawn once."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import torch
from torch import Tensor

from calibayes.posterior.drawn_networks import drawn_networks
from calibayes.predictive import Predictive, predict, predict_networks, samples_for

if TYPE_CHECKING:
    from calibayes.files.model import Model

__all__ = ["BATCH_ROWS", "InputPredictor"]

BATCH_ROWS = 512  # of one pass through the network


@final
class InputPredictor:
    """Predicts inputs of a model's network; the same bits in whatever way the networks are kept.

    Args:
        model: a trained model.
        samples: of the weights; those of training by default.
    """

    def __init__(self, model: Model, samples: int | None = None) -> None:
        self._posterior, self._seed = model.posterior, model.seed
        self._samples = samples_for(model.posterior, model.samples if samples is None else samples)
        self._networks = drawn_networks(self._posterior, self._samples, self._seed)

    def __call__(self, inputs: Tensor) -> Predictive:
        """Predict encoded rows."""
        posterior, samples, double = self._posterior, self._samples, torch.float64
        if self._networks is not None:
            return predict_networks(posterior, self._networks, inputs, batch_size=BATCH_ROWS, dtype=double)
        return predict(posterior, inputs, samples=samples, batch_size=BATCH_ROWS, seed=self._seed, dtype=double)
