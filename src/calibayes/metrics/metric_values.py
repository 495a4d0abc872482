"""From sums and sorted cells to the value of every metric."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from calibayes.metrics.calibration_test import calibration_p_value
from calibayes.metrics.confidence_cells import Cells, equal_mass_bins, equal_mass_residuals
from calibayes.metrics.kernel_errors import residual_features, unbiased, weighted_features
from calibayes.metrics.prediction_arrays import Predictions
from calibayes.metrics.selective import area, largest_coverage
from calibayes.metrics.smooth_error import smooth_error
from calibayes.metrics.tally import PARTS, Tally

__all__ = ["EvaluationSample", "part_of", "values"]

_NAMES = {
    "means": ("accuracy", "top_k", "confidence", "overconfidence", "nll", "brier"),
    "bins": ("ece", "mce", "rms_calibration_error", "ece_squared_debiased"),
    "classes": ("brier_reliability", "brier_resolution", "brier_uncertainty", "ece_classwise"),
}


@dataclass(frozen=True, eq=False)
class EvaluationSample:
    """One set of predictions, ready to be measured and resampled."""

    tally: Tally
    cells: Cells  # its examples in the order of confidence, one by one or gathered into cells
    block: Tensor | None  # the block whose only example each cell is; None if the tally gathers cells
    kernel_width: float
    target_accuracy: float
    seed: int = 0
    predictions: Predictions | None = None  # if each of them has a block of its own

    @property
    def squares(self) -> Tensor:
        """The squared weights of the examples in each cell, added up."""
        alone = len(self.cells.r) == self.tally.n
        return self.cells.mass.square() if alone else self.tally.cell_squares

    def resampled(self, counts: Tensor) -> Cells:
        """The cells of replicates that hold each block ``counts [B, G]`` times."""
        if self.block is None:
            return self.tally.cells(counts)
        times = counts[:, self.block]
        return Cells(self.cells.r, times * self.cells.right, times * self.cells.wrong)


def values(sample: EvaluationSample, parts: frozenset[str] = PARTS) -> dict[str, float]:
    """The metrics of these parts by name."""
    measured: dict[str, float] = {}
    if "means" in parts:
        measured |= {name: float(mean) for name, mean in sample.tally.means().items()}
    if "bins" in parts:
        bins = sample.tally.reliability
        measured |= {name: getattr(bins, name) for name in _NAMES["bins"]}
    if "classes" in parts:
        measured |= _classes(sample)
    if "cells" in parts:
        measured |= _cells(sample)
    return measured


def part_of(metric: str) -> str:
    """Return the part that a metric belongs to."""
    return next((part for part, names in _NAMES.items() if metric in names), "cells")


def _classes(sample: EvaluationSample) -> dict[str, float]:
    bins = sample.tally.classwise()
    return {
        "brier_reliability": float(bins.reliability.square().sum()),
        "brier_resolution": float(bins.resolution.square().sum()),
        "brier_uncertainty": float(bins.uncertainty),
        "ece_classwise": float(bins.ece_by_class.mean()),
    }


def _cells(sample: EvaluationSample) -> dict[str, float]:
    tally, cells, width = sample.tally, sample.cells, sample.kernel_width
    features = residual_features(cells, width)
    equal_mass = equal_mass_residuals(cells.residual, equal_mass_bins(cells, tally.bins), tally.bins)
    return {
        "ece_equal_mass": float(equal_mass.abs().sum()),
        "smooth_ece": smooth_error(cells),
        "mmce": float(features.norm()),
        "wmmce": float(weighted_features(cells, width).norm()),
        "kce_squared": unbiased(float(features.square().sum()), *tally.own_pairs),
        "kce_p_value": calibration_p_value(cells, sample.squares, width, sample.seed),
        "aurc": float(area(cells, tally.n)),
        "coverage_at_target": float(largest_coverage(cells, sample.target_accuracy)),
    }
