"""The base of the post-hoc methods: fit on held-out predictions, transform any others, the same kind out as in."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Any, Self, TypeVar, overload

import numpy.typing as npt
import torch
from torch import Tensor

from calibayes.errors import CalibayesError, InvalidProbabilitiesError
from calibayes.metrics.prediction_arrays import Array, Predictions
from calibayes.posthoc.log_scores import read_held_out, read_predictions, rows_at_once
from calibayes.predictive import Predictive

__all__ = ["NotFittedError", "PosthocWarning", "Scaling"]

T = TypeVar("T")


class PosthocWarning(UserWarning):
    """The held-out data do not settle a post-hoc method: it stopped at a bound; the message says which, and why."""


class NotFittedError(CalibayesError, ValueError, AttributeError):
    """A post-hoc method was asked for what it can only know after `fit`."""


class Scaling(ABC):
    """A post-hoc calibration method; see `TemperatureScaling` for how each is used."""

    _classes: int | None = None

    def fit(self, probs: Array | Predictive, targets: Array, *, weights: Array | None = None, logits: bool = False) -> Self:
        """Learn from predictions on held-out data: examples that did not train the classifier and will not judge it.

        Args:
            probs: class probabilities ``[n, K]``, torch or numpy, or a `Predictive`; for two classes also one column
                ``[n]`` or ``[n, 1]``, of class 1's.
            targets: the true classes, integers of shape ``[n]``.
            weights: how much each example counts, non-negative; a weight of 2 is the same as the example twice.
            logits: ``probs`` are logits (a single column: log-odds). They say more than probabilities that underflowed to
                zero, which count as the smallest positive number of their type.
        """
        predictions = read_held_out(probs, targets, weights, logits)
        message = self._fit(predictions, logits)
        self._classes = predictions.classes
        if message is not None:
            warnings.warn(message, PosthocWarning, stacklevel=2)
        return self

    @overload
    def transform(self, probs: Tensor | Predictive, *, logits: bool = False) -> Tensor: ...

    @overload
    def transform(self, probs: npt.NDArray[Any], *, logits: bool = False) -> npt.NDArray[Any]: ...

    def transform(self, probs: Array | Predictive, *, logits: bool = False) -> Array:
        """The calibrated probabilities, in the shape, type and place of ``probs``; no gradient goes through.

        Args:
            probs: class probabilities as in `fit`; of a `Predictive` the averaged ones are scaled.
            logits: ``probs`` are logits; what comes back are probabilities all the same.
        """
        values = self._values(probs, logits)
        out = torch.empty_like(values)
        rows = rows_at_once(values.shape[1])
        for given, scaled in zip(values.split(rows), out.split(rows), strict=True):
            scaled.copy_(self._scaled(given, logits))
        return _like(out, probs.probs if isinstance(probs, Predictive) else probs)

    def _values(self, probs: Array | Predictive, logits: bool) -> Tensor:
        """Predictions to scale, checked, as a CPU tensor ``[n, K]``."""
        classes = self._known(self._classes)
        values = read_predictions(probs, logits)
        if values.shape[1] != classes:
            raise InvalidProbabilitiesError(
                f"This {type(self).__name__} was fitted on {classes} classes, but `probs` have {values.shape[1]}."
            )
        return values

    @abstractmethod
    def _fit(self, predictions: Predictions, logits: bool) -> str | None:
        """Set the parameters; return what the user has to be warned of."""

    @abstractmethod
    def _scaled(self, values: Tensor, logits: bool) -> Tensor:
        """The probabilities ``[m, K]`` of one block."""

    def _known(self, parameter: T | None) -> T:
        if parameter is None:
            raise NotFittedError(f"This {type(self).__name__} has not been fitted. Call `fit` on held-out predictions first.")
        return parameter


def _like(out: Tensor, given: Array) -> Array:
    if given.ndim == 1 or given.shape[1] == 1:
        out = out[:, 1].reshape(given.shape)
    if isinstance(given, Tensor):
        return out.to(given.device)
    return out.numpy().astype(given.dtype, copy=False)
