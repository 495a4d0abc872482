"""The metrics of a posterior on validation data."""

from __future__ import annotations

from calibayes.data.sources import Source
from calibayes.distributed import Processes
from calibayes.metrics import accuracy, brier, ece, nll
from calibayes.posterior.abstract_posterior import Posterior
from calibayes.posthoc.refined_nll import refined_nll
from calibayes.predictive import predict_source

__all__ = ["validation_metrics"]

_METRICS = (accuracy, ece, nll, brier)


def validation_metrics(
    posterior: Posterior, source: Source, *, samples: int, seed: int, processes: Processes, refined: bool
) -> dict[str, float]:
    """Return the metrics by the names that they have in a `History`; the refined NLL only where it is asked for."""
    predictive, targets, weights = predict_source(posterior, source, samples=samples, seed=seed, processes=processes)
    probs = predictive.probs
    found = {
        f"val_{metric.__name__}": metric(probs, targets, weights=weights, check=index == 0)
        for index, metric in enumerate(_METRICS)
    }
    if refined:
        found["val_refined_nll"] = refined_nll(probs, targets, weights=weights)
    return found
