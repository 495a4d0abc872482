"""The bootstrap of every metric."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from calibayes.calibration.kernel import kernel_features
from calibayes.checks import positive_integer
from calibayes.errors import InvalidArgumentError
from calibayes.metrics.binned_errors import equal_mass_residuals
from calibayes.metrics.bootstrap_worlds import EuclideanWorlds, LargestGapWorlds, NormWorlds
from calibayes.metrics.confidence_cells import cell_places
from calibayes.metrics.intervals import BelowMaximumDraws, Draws, NormDraws, PlainDraws, SquaredNormDraws
from calibayes.metrics.kernel_errors import residual_features, weighted_features
from calibayes.metrics.metric_values import EvaluationSample
from calibayes.metrics.null_distribution import null_of_bins, null_of_cells, null_of_classes
from calibayes.metrics.selective import area, largest_coverage
from calibayes.metrics.smooth_error import SmoothWorlds
from calibayes.metrics.tally import PARTS, SUMS, Tally
from calibayes.randomness import derived_seed
from calibayes.threads import in_one_thread

__all__ = ["MOST_REPLICATES", "draws", "replicate_counts"]

MOST_REPLICATES = 100_000
_FEWEST = 10
_CLASS_NUMBERS = 1 << 23  # replicated sums of classes kept at most, unless there would be fewer than a hundred replicates


@in_one_thread
def draws(
    sample: EvaluationSample, found: dict[str, float], replicates: int, seed: int, parts: frozenset[str] = PARTS
) -> dict[str, Draws]:
    """Return the bootstrap of every metric of these parts but the p-value.

    The same seed resamples the same examples, whoever's predictions they are: differences are paired.

    Args:
        sample: what to resample.
        found: the `values` of the sample.
        replicates: $B$; for very many classes, fewer are drawn for what is computed class by class.
        seed: of the bootstrap.
        parts: as of `values`.
    """
    if positive_integer("replicates", replicates, MOST_REPLICATES) < _FEWEST:
        raise InvalidArgumentError(f"Expected `replicates` to be at least {_FEWEST}, but got {replicates!r}.")
    tally = sample.tally
    counts = replicate_counts(tally.block_weight, replicates, seed)
    told: dict[str, Draws] = {}
    if "means" in parts:
        told |= _of_means(tally, found, counts)
    if "bins" in parts:
        told |= _of_bins(tally, counts, seed)
    if "classes" in parts:
        fewer = min(replicates, max(100, _CLASS_NUMBERS // (tally.classes * tally.bins)))
        if tally.class_blocks < tally.blocks:
            folded = torch.zeros(tally.class_blocks, dtype=torch.float64)
            folded.index_add_(0, torch.arange(tally.blocks) % tally.class_blocks, tally.block_weight)
            told |= _of_classes(tally, replicate_counts(folded, fewer, seed, "classes"), seed)
        else:
            told |= _of_classes(tally, counts[:fewer], seed)
    if "cells" in parts:
        told |= _of_cells(sample, found, counts, seed)
    return told


def replicate_counts(weights: Tensor, replicates: int, seed: int, *place: str) -> Tensor:
    """Return how often each replicate holds each block: ``[B, G]``, drawn with replacement; the same seed, the same draws.

    A replicate of empty blocks alone would be no data: the first block that holds any takes its place.

    Args:
        weights: of the blocks; there is one that is positive.
        replicates: $B$.
        seed: of the draws.
        place: what else they depend on.
    """
    blocks = len(weights)
    generator = np.random.Generator(np.random.PCG64(derived_seed(seed, "bootstrap", *place)))
    drawn = torch.from_numpy(generator.integers(blocks, size=(replicates, blocks)))
    drawn += blocks * torch.arange(replicates)[:, None]
    counts = torch.bincount(drawn.view(-1), minlength=replicates * blocks).view(replicates, blocks).double()
    empty = counts @ weights == 0
    counts[empty] = weights.gt(0).double() if bool(empty.any()) else 0.0
    return counts


def _of_means(tally: Tally, found: dict[str, float], counts: Tensor) -> dict[str, Draws]:
    sums = counts @ tally.sums
    weight = sums[:, 0]
    mean = {name: sums[:, index] / weight for index, name in enumerate(SUMS)}
    replicated = {
        "accuracy": mean["right"],
        "top_k": mean["top"],
        "confidence": mean["confidence"],
        "overconfidence": mean["confidence"] - mean["right"],
        "nll": torch.where(mean["impossible"] > 0, torch.inf, mean["nll"]),
        "brier": mean["brier"],
    }
    return {name: PlainDraws(found[name], each, found[name]) for name, each in replicated.items()}


def _of_bins(tally: Tally, counts: Tensor, seed: int) -> dict[str, Draws]:
    table = tally.by_bin.view(2, tally.blocks, tally.bins)
    (weight, residual), (weights, residuals) = table.sum(1), counts @ table
    gaps, replicated = residual / weight.sum(), residuals / weights.sum(-1, keepdim=True)
    null = null_of_bins(tally.reliability, len(counts), seed)
    # Weighed by the observed shares: a bin of one example that a replicate holds twice has not become better known.
    scale = torch.where(weight > 0, weight / weight.sum(), torch.inf).rsqrt()
    rms = NormDraws(EuclideanWorlds(gaps * scale, replicated * scale, null * scale))
    return {
        "ece": NormDraws(NormWorlds(gaps, replicated, null, _sum_of_sizes)),
        "mce": NormDraws(LargestGapWorlds(tally.reliability, len(counts), seed)),
        "rms_calibration_error": rms,
        "ece_squared_debiased": SquaredNormDraws(rms),
    }


def _of_classes(tally: Tally, counts: Tensor, seed: int) -> dict[str, Draws]:
    whole, each, even = tally.classwise(), tally.classwise(counts), 1 / tally.classes
    gaps, replicated = whole.residual.flatten(), each.residual.flatten(1)
    null = null_of_classes(whole, tally.unit, len(counts), seed).flatten(1)
    scale = whole.inverse_root.flatten()
    return {
        "brier_reliability": SquaredNormDraws(NormDraws(EuclideanWorlds(gaps * scale, replicated * scale, null * scale))),
        "brier_resolution": SquaredNormDraws(
            NormDraws(EuclideanWorlds(whole.resolution.flatten(), each.resolution.flatten(1)))
        ),
        # It is largest, 1 - 1/K, where all classes are equally frequent, and chance makes no two frequencies equal.
        "brier_uncertainty": BelowMaximumDraws(
            1 - even, SquaredNormDraws(NormDraws(EuclideanWorlds(whole.frequency - even, each.frequency - even)))
        ),
        "ece_classwise": NormDraws(NormWorlds(gaps * even, replicated * even, null * even, _sum_of_sizes)),
    }


def _of_cells(sample: EvaluationSample, found: dict[str, float], counts: Tensor, seed: int) -> dict[str, Draws]:
    tally, width, accuracy = sample.tally, sample.kernel_width, sample.target_accuracy
    each = sample.resampled(counts)
    whole = sample.cells if sample.block is not None else tally.cells()
    squares = whole.mass.square() if sample.block is not None else tally.cell_squares
    null = null_of_cells(whole, squares, len(counts), seed)
    places = cell_places(whole, tally.bins)
    gaps, replicated, hidden = (
        equal_mass_residuals(residual, places, tally.bins) for residual in (whole.residual, each.residual, null)
    )
    mmce = NormDraws(
        EuclideanWorlds(residual_features(whole, width), residual_features(each, width), kernel_features(whole.r, null, width))
    )
    return {
        "ece_equal_mass": NormDraws(NormWorlds(gaps, replicated, hidden, _sum_of_sizes)),
        "smooth_ece": NormDraws(SmoothWorlds(whole, each, null)),
        "mmce": mmce,
        "wmmce": NormDraws(EuclideanWorlds(weighted_features(whole, width), weighted_features(each, width))),
        "kce_squared": SquaredNormDraws(mmce),
        "aurc": PlainDraws(found["aurc"], area(each, tally.n), float(area(whole, tally.n))),
        "coverage_at_target": PlainDraws(
            found["coverage_at_target"], largest_coverage(each, accuracy), float(largest_coverage(whole, accuracy))
        ),
    }


def _sum_of_sizes(gaps: Tensor) -> Tensor:
    return gaps.abs().sum(-1)
