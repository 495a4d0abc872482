"""The bootstrap of every metric."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from calibayes.calibration.kernel import kernel_features
from calibayes.checks import positive_integer
from calibayes.errors import InvalidArgumentError
from calibayes.metrics.confidence_cells import equal_mass_bins, equal_mass_residuals
from calibayes.metrics.intervals import Draws, NormDraws, PlainDraws, SquaredNormDraws
from calibayes.metrics.kernel_errors import residual_features, weighted_features
from calibayes.metrics.metric_values import EvaluationSample
from calibayes.metrics.null_distribution import null_of_bins, null_of_blocks, null_of_cells, null_of_labels
from calibayes.metrics.scaled_gaps import AbsoluteGaps, EuclideanGaps, LargestGap
from calibayes.metrics.selective import area, largest_coverage
from calibayes.metrics.smooth_error import SmoothGaps
from calibayes.metrics.tally import PARTS, Tally
from calibayes.randomness import derived_seed
from calibayes.threads import in_one_thread

__all__ = ["MOST_REPLICATES", "draws", "replicate_counts"]

MOST_REPLICATES = 100_000
_FEWEST = 10
_CLASS_SUMS = 1 << 23  # replicated sums of classes kept at most, unless that leaves fewer than a hundred replicates


@in_one_thread
def draws(
    sample: EvaluationSample, measured: dict[str, float], replicates: int, seed: int, parts: frozenset[str] = PARTS
) -> dict[str, Draws]:
    """Return the bootstrap of every metric of these parts, except the p-value, for a sample whose `values` are ``measured``.

    The same seed resamples the same examples, whichever classifier made the predictions: differences are paired. With very
    many classes, fewer than ``replicates`` are drawn for the metrics that are computed class by class.
    """
    if positive_integer("replicates", replicates, MOST_REPLICATES) < _FEWEST:
        raise InvalidArgumentError(f"Expected `replicates` to be at least {_FEWEST}, but got {replicates!r}.")
    tally = sample.tally
    counts = replicate_counts(tally.block_weight, replicates, seed)
    resampled: dict[str, Draws] = {}
    if "means" in parts:
        resampled |= {name: PlainDraws(measured[name], mean, measured[name]) for name, mean in tally.means(counts).items()}
    if "bins" in parts:
        resampled |= _of_bins(tally, counts, seed)
    if "classes" in parts:
        fewer = min(replicates, max(100, _CLASS_SUMS // (tally.classes * tally.bins)))
        class_counts = counts[:fewer]
        if tally.class_blocks < tally.blocks:
            folded = torch.zeros(tally.class_blocks, dtype=torch.float64)
            folded.index_add_(0, torch.arange(tally.blocks) % tally.class_blocks, tally.block_weight)
            class_counts = replicate_counts(folded, fewer, seed, "classes")
        resampled |= _of_classes(sample, class_counts, seed)
    if "cells" in parts:
        resampled |= _of_cells(sample, measured, counts, seed)
    return resampled


def replicate_counts(weights: Tensor, replicates: int, seed: int, *place: str) -> Tensor:
    """Return how often each replicate holds each block, ``[B, G]``, drawn with replacement by ``seed`` and ``place``.

    A replicate of blocks without weight would hold no data: one of all blocks with weight takes its place.
    """
    blocks = len(weights)
    generator = np.random.Generator(np.random.PCG64(derived_seed(seed, "bootstrap", *place)))
    drawn = torch.from_numpy(generator.integers(blocks, size=(replicates, blocks)))
    drawn += blocks * torch.arange(replicates)[:, None]
    counts = torch.bincount(drawn.view(-1), minlength=replicates * blocks).view(replicates, blocks).double()
    empty = counts @ weights == 0
    counts[empty] = weights.gt(0).double()
    return counts


def _of_bins(tally: Tally, counts: Tensor, seed: int) -> dict[str, Draws]:
    table = tally.by_bin.view(2, tally.blocks, tally.bins)
    (weight, residual), (weights, residuals) = table.sum(1), counts @ table
    gaps, replicated = residual / weight.sum(), residuals / weights.sum(-1, keepdim=True)
    null = null_of_bins(tally.reliability, len(counts), seed)
    # Weighed by the observed shares: a bin of one example that a replicate holds twice is no better known for it.
    scale = torch.where(weight > 0, weight / weight.sum(), torch.inf).rsqrt()
    rms = NormDraws(EuclideanGaps(gaps * scale, replicated * scale, null * scale))
    return {
        "ece": NormDraws(AbsoluteGaps(gaps, replicated, null)),
        "mce": NormDraws(LargestGap(tally.reliability, len(counts), seed)),
        "rms_calibration_error": rms,
        "ece_squared_debiased": SquaredNormDraws(rms),
    }


def _of_classes(sample: EvaluationSample, counts: Tensor, seed: int) -> dict[str, Draws]:
    tally = sample.tally
    whole, each, even = tally.classwise(), tally.classwise(counts), 1 / tally.classes
    gaps, replicated = whole.residual.flatten(), each.residual.flatten(1)
    if sample.predictions is None:
        null = null_of_blocks(tally.null_by_class, len(counts), seed) / tally.weight
    else:
        null = null_of_labels(sample.predictions, tally.bins, len(counts), seed)
    scale = whole.inverse_root.flatten()
    return {
        "brier_reliability": SquaredNormDraws(NormDraws(EuclideanGaps(gaps * scale, replicated * scale, null * scale))),
        "brier_resolution": SquaredNormDraws(NormDraws(EuclideanGaps(whole.resolution.flatten(), each.resolution.flatten(1)))),
        # It is largest, 1 - 1/K, where all classes are equally frequent, and by chance no two frequencies are equal.
        "brier_uncertainty": SquaredNormDraws(
            NormDraws(EuclideanGaps(whole.frequency - even, each.frequency - even)), most=1 - even
        ),
        "ece_classwise": NormDraws(AbsoluteGaps(gaps * even, replicated * even, null * even)),
    }


def _of_cells(sample: EvaluationSample, measured: dict[str, float], counts: Tensor, seed: int) -> dict[str, Draws]:
    tally, width, accuracy = sample.tally, sample.kernel_width, sample.target_accuracy
    each = sample.resampled(counts)
    whole = sample.cells if sample.block is not None else tally.cells()
    squares = whole.mass.square() if sample.block is not None else tally.cell_squares
    null = null_of_cells(whole, squares, len(counts), seed)
    places = equal_mass_bins(whole, tally.bins)
    gaps, replicated, null_gaps = (
        equal_mass_residuals(residual, places, tally.bins) for residual in (whole.residual, each.residual, null)
    )
    mmce = NormDraws(
        EuclideanGaps(residual_features(whole, width), residual_features(each, width), kernel_features(whole.r, null, width))
    )
    return {
        "ece_equal_mass": NormDraws(AbsoluteGaps(gaps, replicated, null_gaps)),
        "smooth_ece": NormDraws(SmoothGaps(whole, each, null)),
        "mmce": mmce,
        "wmmce": NormDraws(EuclideanGaps(weighted_features(whole, width), weighted_features(each, width))),
        "kce_squared": SquaredNormDraws(mmce),
        "aurc": PlainDraws(measured["aurc"], area(each, tally.n), float(area(whole, tally.n))),
        "coverage_at_target": PlainDraws(
            measured["coverage_at_target"], largest_coverage(each, accuracy), float(largest_coverage(whole, accuracy))
        ),
    }
