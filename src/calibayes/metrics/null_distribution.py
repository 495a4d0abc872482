"""The null distribution: a calibrated classifier, whose decisions are right with the probability that it states."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from calibayes.metrics.bins import ReliabilityBins
from calibayes.metrics.classwise import class_places
from calibayes.metrics.confidence_cells import Cells
from calibayes.metrics.prediction_arrays import Predictions
from calibayes.randomness import derived_seed

__all__ = ["drawn_labels", "null_of_bins", "null_of_blocks", "null_of_cells", "null_of_labels", "random_signs"]

_AT_ONCE = 1 << 21  # labels drawn at a time


def null_of_bins(bins: ReliabilityBins, replicates: int, seed: int) -> Tensor:
    """Residuals of each bin as shares of the total weight, shape ``[B, M]``."""
    trials, sure = bins.effective.nan_to_num(nan=1.0), bins.confidence.nan_to_num()
    return bins.share * _as_uncertain(trials) * _deviations(trials, sure, replicates, seed, "bins")


def null_of_labels(predictions: Predictions, bins: int, replicates: int, seed: int) -> Tensor:
    """Residuals of each class and bin as shares of the total weight, shape ``[B, K * M]``.

    The label of every example is drawn from its probabilities, so that one class gains what others lose.

    Args:
        predictions: the examples, few enough to draw each of them in every replicate.
        bins: $M$.
        replicates: $B$.
        seed: of the draws.
    """
    size, weight = predictions.classes * bins, predictions.mass / predictions.mass.sum()
    place = class_places(predictions, bins)[0].view(len(predictions), -1)
    predicted = torch.bincount(place.view(-1), (predictions.probs.double() * weight[:, None]).view(-1), minlength=size)
    generator = np.random.Generator(np.random.PCG64(derived_seed(seed, "null", "labels")))
    null = torch.empty(replicates, size, dtype=torch.float64)
    rows = max(1, _AT_ONCE // len(predictions))
    for start in range(0, replicates, rows):
        count = min(rows, replicates - start)
        uniform = torch.from_numpy(generator.random((count, len(predictions))))
        drawn = place.gather(1, drawn_labels(predictions.probs, uniform.T)) + size * torch.arange(count)
        each = weight[:, None].expand(-1, count).reshape(-1)
        null[start : start + count] = torch.bincount(drawn.view(-1), each, minlength=count * size).view(count, size)
    return null.sub_(predicted)


def null_of_blocks(blocks: Tensor, replicates: int, seed: int) -> Tensor:
    """The same for many examples, from their residuals under labels drawn once, summed in blocks ``[G, K * M]``.

    Each replicate adds up the blocks with random signs. That keeps the variances of the classes and bins and their
    covariances, and every sum has many examples in it.
    """
    generator = np.random.Generator(np.random.PCG64(derived_seed(seed, "null", "signs")))
    return random_signs(generator, (replicates, len(blocks))) @ blocks


def drawn_labels(probs: Tensor, uniform: Tensor) -> Tensor:
    """Return labels drawn from probabilities ``[n, K]`` by uniform numbers ``[n, B]``."""
    cumulative = probs.double().cumsum(-1)
    cumulative /= cumulative[:, -1:].clone()
    return torch.searchsorted(cumulative, uniform.contiguous(), right=True).clamp_max_(probs.shape[1] - 1)


def random_signs(generator: np.random.Generator, shape: tuple[int, ...]) -> Tensor:
    """Return -1 and 1 at random."""
    return torch.from_numpy(generator.integers(2, size=shape)).double().mul_(2).sub_(1)


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
