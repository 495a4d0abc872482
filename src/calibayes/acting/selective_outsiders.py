r"""Selective classification with outsiders: the errors that are left when unsure answers are withheld, outsiders being errors.

A classifier in use meets inputs of none of its classes, and any answer to these is wrong. See Xia and Bouganis, "Augmenting
Softmax Information for Selective Classification with Out-of-Distribution Data" (2022, https://arxiv.org/abs/2207.07506).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from calibayes.acting.acting_inputs import read_correct, read_numbers
from calibayes.checks import fraction, positive, positive_integer
from calibayes.metrics import RiskCoverage, risk_coverage
from calibayes.metrics.intervals import Interval
from calibayes.metrics.prediction_arrays import Array
from calibayes.randomness import derived_seed

__all__ = ["SelectiveWithOutsiders", "selective_with_outsiders"]


@dataclass(frozen=True, eq=False)
class SelectiveWithOutsiders:
    """The risk among answered inputs, insiders and outsiders together.

    Attributes:
        curve: risk over coverage; its thresholds are confidences.
        aurc: the area under the curve; with its interval from a bootstrap of insiders and outsiders apart.
        outsider_share: of the inputs that the curve stands for.
        level: of the interval.
    """

    curve: RiskCoverage
    aurc: float
    aurc_interval: Interval
    outsider_share: float
    level: float


def selective_with_outsiders(
    confidence: Array,
    correct: Array,
    outsider_confidence: Array,
    *,
    outsider_share: float | None = None,
    outsider_cost: float = 1.0,
    level: float = 0.95,
    replicates: int = 200,
    seed: int = 0,
) -> SelectiveWithOutsiders:
    """The risk-coverage curve of a classifier that also meets outsiders, every answer to which is an error.

    Args:
        confidence: of insiders, any number per example: inputs of a higher one are answered first. Negate outsider scores.
        correct: whether the decision of each insider is right.
        outsider_confidence: of outsiders.
        outsider_share: of the inputs in use; that of the examples by default.
        outsider_cost: the weight of an outsider relative to that of an insider, in coverage and risk.
        level: of the interval.
        replicates: of the bootstrap.
        seed: of the bootstrap.

    Examples:
        >>> confident, right = torch.tensor([0.9, 0.8, 0.6]), torch.tensor([1, 1, 0])
        >>> measured = selective_with_outsiders(confident, right, torch.tensor([0.7]))
        >>> [round(value, 2) for value in measured.curve.risk.tolist()]
        [0.0, 0.0, 0.33, 0.5]
    """
    fraction("level", level)
    positive("outsider_cost", outsider_cost)
    positive_integer("replicates", replicates)
    inside = read_numbers("confidence", confidence)
    right = read_correct(correct, len(inside))
    outside = read_numbers("outsider_confidence", outsider_confidence)
    share = (
        len(outside) / (len(inside) + len(outside)) if outsider_share is None else fraction("outsider_share", outsider_share)
    )
    weight = outsider_cost * share / (1 - share) * len(inside) / len(outside)

    # Only the order matters: ranks stand for the confidences, so that any number may be one.
    ranks = torch.cat((inside, outside)).unique(return_inverse=True)
    place = 0.5 + 0.5 * (1 + ranks[1].double()) / (1 + len(ranks[0]))
    wrong = torch.cat((~right, torch.ones(len(outside), dtype=torch.bool)))
    weights = torch.cat(
        (torch.ones(len(inside), dtype=torch.float64), torch.full((len(outside),), weight, dtype=torch.float64))
    )

    def curve(rows: Tensor) -> RiskCoverage:
        chosen = place[rows]
        return risk_coverage(torch.stack((chosen, 1 - chosen), -1), wrong[rows].long(), weights=weights[rows], check=False)

    whole = curve(torch.arange(len(place)))
    generator = np.random.default_rng(derived_seed(seed, "selective with outsiders"))
    draws = []
    for _ in range(replicates):
        first = generator.integers(len(inside), size=len(inside))
        second = len(inside) + generator.integers(len(outside), size=len(outside))
        draws.append(curve(torch.from_numpy(np.concatenate((first, second)))).aurc)
    low, high = np.quantile(draws, ((1 - level) / 2, (1 + level) / 2))
    values = ranks[0][((whole.threshold - 0.5) * 2 * (1 + len(ranks[0]))).round().long() - 1]
    named = RiskCoverage(whole.coverage, whole.risk, values, whole.aurc)
    return SelectiveWithOutsiders(named, whole.aurc, Interval(float(low), float(high)), share, level)
