"""The numbers of an epoch beside its losses: validation metrics, and those of the caller's ``on_epoch``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from torch import Tensor

from calibayes.checks import is_real
from calibayes.data.sources import Source
from calibayes.distributed import Processes
from calibayes.errors import InvalidArgumentError
from calibayes.metrics import accuracy, brier, ece, nll
from calibayes.posterior.abstract_posterior import Posterior
from calibayes.posthoc.refined_nll import refined_nll
from calibayes.predictive import predict_source

__all__ = ["OnEpoch", "call_on_epoch", "validation_metrics"]

OnEpoch = Callable[[Posterior, int], Mapping[str, float] | bool | None]


def validation_metrics(
    posterior: Posterior, source: Source, *, samples: int, seed: int, processes: Processes, refined: bool
) -> dict[str, float]:
    """Return the metrics by the names that they have in a `History`; the refined NLL only where it is asked for."""
    predictive, targets, weights = predict_source(posterior, source, samples=samples, seed=seed, processes=processes)
    probs = predictive.probs
    metrics = {
        f"val_{metric.__name__}": metric(probs, targets, weights=weights, check=index == 0)
        for index, metric in enumerate((accuracy, ece, nll, brier))
    }
    if refined:
        metrics["val_refined_nll"] = refined_nll(probs, targets, weights=weights)
    return metrics


def call_on_epoch(on_epoch: OnEpoch | None, posterior: Posterior, epoch: int) -> tuple[dict[str, float], bool]:
    """Call ``on_epoch``; returns the numbers that it gave, by name, and True if it asked to stop."""
    result: Any = None if on_epoch is None else on_epoch(posterior, epoch)
    if result is None:
        return {}, False
    if isinstance(result, bool | np.bool_):
        return {}, not result
    expected = f"Expected `on_epoch` to return numbers by name, False to stop, or None, but after epoch {epoch} it returned"
    if not isinstance(result, Mapping):
        raise InvalidArgumentError(f"{expected} {result!r}.")
    numbers = {}
    for name, value in result.items():
        if not isinstance(name, str):
            raise InvalidArgumentError(f"{expected} {name!r} as a name. Use text.")
        if isinstance(value, Tensor | np.ndarray | np.generic) and math.prod(value.shape) == 1:
            value = value.item()
        if not isinstance(value, bool) and not is_real(value):
            raise InvalidArgumentError(f"{expected} {value!r} for {name!r}.")
        numbers[name] = float(value)
    return numbers, False
