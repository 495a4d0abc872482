"""The null distribution: a calibrated classifier, whose decisions are right with the probability that it states."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from calibayes.metrics.bins import ReliabilityBins
from calibayes.metrics.classwise import ClassBins
from calibayes.metrics.confidence_cells import Cells
from calibayes.randomness import derived_seed

__all__ = ["null_of_bins", "null_of_cells", "null_of_classes"]


def null_of_bins(bins: ReliabilityBins, replicates: int, seed: int) -> Tensor:
    """Residuals of each bin as shares of the total weight, shape ``[B, M]``."""
    trials, sure = bins.effective.nan_to_num(nan=1.0), bins.confidence.nan_to_num()
    return bins.share * _as_uncertain(trials) * _deviations(trials, sure, replicates, seed, "bins")


def null_of_classes(bins: ClassBins, unit: float, replicates: int, seed: int) -> Tensor:
    """Residuals of each class and bin as shares of the total weight, shape ``[B, K, M]``.

    Classes are drawn one by one, except that of two classes the one is the other's mirror image.

    Args:
        bins: the observed bins.
        unit: the weight that stands for one example.
        replicates: $B$.
        seed: of the draws.
    """
    said = (bins.predicted / torch.where(bins.weight > 0, bins.weight, 1.0)).clamp(0, 1)
    share, trials = bins.weight / bins.total, bins.weight / unit
    if len(share) > 2:
        return share * _deviations(trials, said, replicates, seed, "classes")
    second = share[1] * _deviations(trials[1], said[1], replicates, seed, "classes")
    return torch.stack((-second.flip(-1), second), 1)


def null_of_cells(cells: Cells, squares: Tensor, replicates: int, seed: int, part: int = 0) -> Tensor:
    r"""Residuals of each cell as shares of the total weight, shape ``[B, C]``.

    Args:
        cells: the observed cells.
        squares: $\sum w_i^2$ over the examples of each cell; a cell of one example is drawn exactly.
        replicates: $B$.
        seed: of the draws.
        part: which of several parts of the replicates this is.
    """
    mass = cells.mass
    trials = mass.square() / squares
    deviations = _deviations(trials, cells.r.clamp(0, 1), replicates, seed, "cells", *([part] if part else []))
    return deviations.mul_(mass / mass.sum() * _as_uncertain(trials))


def _as_uncertain(trials: Tensor) -> Tensor:
    """What gives a success rate of rounded trials the standard deviation that it has with these."""
    return (trials.round().clamp_min(1) / trials).sqrt()


def _deviations(trials: Tensor, probability: Tensor, replicates: int, seed: int, *place: str | int) -> Tensor:
    """Draw how far success rates lie from their probability, ``[B, ...]``; a non-integer number of trials is rounded."""
    generator = np.random.Generator(np.random.PCG64(derived_seed(seed, "null", *place)))
    counts = trials.round().clamp_min(1)
    if bool((counts == 1).all()):
        drawn = generator.random((replicates, *probability.shape)) < probability.numpy()
        return torch.from_numpy(drawn).double() - probability
    successes = generator.binomial(counts.long().numpy(), probability.numpy(), size=(replicates, *probability.shape))
    return torch.from_numpy(successes) / counts - probability
