"""From sums and sorted cells to the value of every metric, and to what a bootstrap tells about each."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from calibayes.checks import positive_integer
from calibayes.metrics.calibration import debiased, equal_mass_residuals, largest_gap, rms_gap
from calibayes.metrics.cells import Cells, cell_places
from calibayes.metrics.families import Euclid, LargestGap, Length
from calibayes.metrics.intervals import Below, Draws, Norm, Plain, Squared
from calibayes.metrics.kernel import residual_features, unbiased, weighted_features
from calibayes.metrics.selective import area, largest_coverage
from calibayes.metrics.smooth import SmoothWorlds, Spectrum
from calibayes.metrics.tally import PARTS, SUMS, Tally
from calibayes.randomness import derived_seed

__all__ = ["Sample", "draws", "part_of", "replicate_counts", "values"]

_NAMES = {
    "means": ("accuracy", "top_k", "confidence", "overconfidence", "nll", "brier"),
    "bins": ("ece", "mce", "rms_calibration_error", "ece_squared_debiased"),
    "classes": ("brier_reliability", "brier_resolution", "brier_uncertainty", "ece_classwise"),
}


@dataclass(frozen=True, eq=False)
class Sample:
    """One set of predictions, ready to be measured and resampled.

    Attributes:
        tally: its sums.
        cells: its examples in the order of confidence, each alone, or gathered into cells.
        block: of each cell, the block whose only example it is; None where cells are gathered in the tally.
        kernel_width: $\\gamma$ of the kernel errors.
        target_accuracy: of the coverage.
    """

    tally: Tally
    cells: Cells
    block: Tensor | None
    kernel_width: float
    target_accuracy: float

    def resampled(self, counts: Tensor) -> Cells:
        """The cells of replicates that hold each block ``counts [B, G]`` times."""
        if self.block is None:
            return self.tally.cells(counts)
        times = counts[:, self.block]
        return Cells(self.cells.r, times * self.cells.right, times * self.cells.wrong)


def replicate_counts(blocks: int, replicates: int, seed: int, *place: str) -> Tensor:
    """How often each replicate holds each block: ``[B, G]``, drawn with replacement; the same seed, the same draws."""
    generator = np.random.Generator(np.random.PCG64(derived_seed(seed, "bootstrap", *place)))
    drawn = torch.from_numpy(generator.integers(blocks, size=(replicates, blocks)))
    drawn += blocks * torch.arange(replicates)[:, None]
    return torch.bincount(drawn.view(-1), minlength=replicates * blocks).view(replicates, blocks).double()


def values(sample: Sample, parts: frozenset[str] = PARTS) -> dict[str, float]:
    """The metrics of these parts by name."""
    found: dict[str, float] = {}
    for part, measure in (("means", _means), ("bins", _bins), ("classes", _classes), ("cells", _cells)):
        if part in parts:
            found |= measure(sample)
    return found


def draws(
    sample: Sample, found: dict[str, float], replicates: int, seed: int, parts: frozenset[str] = PARTS
) -> dict[str, Draws]:
    """What a bootstrap tells about every metric of these parts but the p-value.

    The same seed resamples the same examples, whoever's predictions they are: differences are paired.

    Args:
        sample: what to resample.
        found: the `values` of the sample.
        replicates: $B$.
        seed: of the bootstrap.
        parts: as of `values`.
    """
    tally = sample.tally
    counts = replicate_counts(tally.blocks, positive_integer("replicates", replicates), seed)
    told: dict[str, Draws] = {}
    if "means" in parts:
        told |= _draws_of_means(tally, found, counts)
    if "bins" in parts:
        told |= _draws_of_bins(tally, counts, seed)
    if "classes" in parts:
        fewer = tally.class_blocks < tally.blocks
        told |= _draws_of_classes(tally, replicate_counts(tally.class_blocks, replicates, seed, "classes") if fewer else counts)
    if "cells" in parts:
        told |= _draws_of_cells(sample, found, counts)
    return told


def part_of(metric: str) -> str:
    """Which part a metric belongs to."""
    return next((part for part, names in _NAMES.items() if metric in names), "cells")


def _means(sample: Sample) -> dict[str, float]:
    means = sample.tally.totals
    return {
        "accuracy": means["right"],
        "top_k": means["top"],
        "confidence": means["confidence"],
        "overconfidence": means["confidence"] - means["right"],
        "nll": math.inf if means["impossible"] > 0 else means["nll"],
        "brier": means["brier"],
    }


def _bins(sample: Sample) -> dict[str, float]:
    bins = sample.tally.reliability
    return {
        "ece": bins.ece,
        "mce": largest_gap(bins),
        "rms_calibration_error": rms_gap(bins),
        "ece_squared_debiased": debiased(bins),
    }


def _classes(sample: Sample) -> dict[str, float]:
    bins = sample.tally.classwise()
    return {
        "brier_reliability": float(bins.reliability.square().sum()),
        "brier_resolution": float(bins.resolution.square().sum()),
        "brier_uncertainty": float(bins.uncertainty),
        "ece_classwise": float(bins.ece_by_class.mean()),
    }


def _cells(sample: Sample) -> dict[str, float]:
    tally, cells, width = sample.tally, sample.cells, sample.kernel_width
    features = residual_features(cells, width)
    return {
        "ece_equal_mass": float(equal_mass_residuals(cells, tally.bins).abs().sum()),
        "smooth_ece": float(Spectrum(cells).fixed_point()),
        "mmce": float(features.norm()),
        "wmmce": float(weighted_features(cells, width).norm()),
        "kce_squared": unbiased(float(features.square().sum()), *tally.own_pairs),
        "kce_p_value": tally.pairs.p_value(),
        "aurc": float(area(cells, tally.n)),
        "coverage_at_target": float(largest_coverage(cells, sample.target_accuracy)),
    }


def _draws_of_means(tally: Tally, found: dict[str, float], counts: Tensor) -> dict[str, Draws]:
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
    return {name: Plain(found[name], each, found[name]) for name, each in replicated.items()}


def _draws_of_bins(tally: Tally, counts: Tensor, seed: int) -> dict[str, Draws]:
    table = tally.by_bin.view(2, tally.blocks, tally.bins)
    (weight, residual), (weights, residuals) = table.sum(1), counts @ table
    share, shares = weight / weight.sum(), weights / weights.sum(-1, keepdim=True)
    gaps, replicated = residual / weight.sum(), residuals / weights.sum(-1, keepdim=True)
    # In an empty bin there is no gap to speak of; in one that a replicate leaves empty, no news of it.
    gap = torch.where(share > 0, gaps / share, 0.0)
    each = torch.where(shares > 0, replicated / shares, gap)
    rms = Norm(Euclid(gap * share.sqrt(), each * shares.sqrt()))
    return {
        "ece": Norm(Length(gaps, replicated, _sum_of_sizes)),
        "mce": Norm(LargestGap(tally.reliability, len(counts), seed)),
        "rms_calibration_error": rms,
        "ece_squared_debiased": Squared(rms),
    }


def _draws_of_classes(tally: Tally, counts: Tensor) -> dict[str, Draws]:
    whole, each, even = tally.classwise(), tally.classwise(counts), 1 / tally.classes
    return {
        "brier_reliability": Squared(Norm(Euclid(whole.reliability.flatten(), each.reliability.flatten(1)))),
        "brier_resolution": Squared(Norm(Euclid(whole.resolution.flatten(), each.resolution.flatten(1)))),
        # It is largest, 1 - 1/K, where all classes are equally frequent, and chance makes no two frequencies equal.
        "brier_uncertainty": Below(1 - even, Squared(Norm(Euclid(whole.frequency - even, each.frequency - even)))),
        "ece_classwise": Norm(
            Length(whole.residual.flatten() / tally.classes, each.residual.flatten(1) / tally.classes, _sum_of_sizes)
        ),
    }


def _draws_of_cells(sample: Sample, found: dict[str, float], counts: Tensor) -> dict[str, Draws]:
    tally, width, accuracy = sample.tally, sample.kernel_width, sample.target_accuracy
    each = sample.resampled(counts)
    whole = sample.cells if sample.block is not None else tally.cells()
    places = cell_places(whole, tally.bins)
    mmce = Norm(Euclid(residual_features(whole, width), residual_features(each, width)))
    return {
        "ece_equal_mass": Norm(
            Length(
                equal_mass_residuals(whole, tally.bins, places), equal_mass_residuals(each, tally.bins, places), _sum_of_sizes
            )
        ),
        "smooth_ece": Norm(SmoothWorlds(whole, each)),
        "mmce": mmce,
        "wmmce": Norm(Euclid(weighted_features(whole, width), weighted_features(each, width))),
        "kce_squared": Squared(mmce),
        "aurc": Plain(found["aurc"], area(each, tally.n), float(area(whole, tally.n))),
        "coverage_at_target": Plain(
            found["coverage_at_target"], largest_coverage(each, accuracy), float(largest_coverage(whole, accuracy))
        ),
    }


def _sum_of_sizes(gaps: Tensor) -> Tensor:
    return gaps.abs().sum(-1)
