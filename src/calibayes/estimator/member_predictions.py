"""Predict rows with all members of a fitted classifier, or with some of them."""

from __future__ import annotations

import copy
from typing import Any

import torch

from calibayes.device_precision import widest_float
from calibayes.estimator.fit_by_folds import predicted_blocks
from calibayes.posterior.abstract_posterior import Posterior
from calibayes.predictive import Predictive, predict, samples_for

__all__ = ["predictive_of"]


def predictive_of(estimator: Any, posterior: Posterior, x: Any) -> Predictive:
    """Return what a posterior of a fitted estimator predicts for rows as users give them."""
    dtype = torch.float32
    if isinstance(estimator.network, str) and not any(member.random for member in posterior.members):
        # In float32 the last digits of a row depend on its place among the others; random weights would be other ones.
        dtype = widest_float(posterior.device)
        posterior = copy.deepcopy(posterior).to(dtype)
    samples = samples_for(posterior, estimator.predict_samples)
    blocks = (torch.as_tensor(rows, dtype=dtype) for rows in predicted_blocks(estimator, x))
    found = [predict(posterior, rows, samples=samples, seed=estimator._seed, dtype=torch.float64) for rows in blocks]
    return found[0] if len(found) == 1 else _joined(found)


def _joined(found: list[Predictive]) -> Predictive:
    """The predictions of ensembles for blocks of rows as one."""
    probs, aleatoric = (torch.cat([getattr(each, name) for each in found]) for name in ("probs", "aleatoric"))
    members = [each.members_entropy for each in found if each.members_entropy is not None]
    return Predictive(probs, aleatoric, members_entropy=torch.cat(members) if members else None)
