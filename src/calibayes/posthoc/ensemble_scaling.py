"""A scaling for a cross-fitted ensemble, from the out-of-fold predictions of its members."""

from __future__ import annotations

import math
from itertools import combinations
from typing import final

import torch
from torch import Tensor

from calibayes.checks import positive_integer
from calibayes.errors import InvalidArgumentError, InvalidProbabilitiesError
from calibayes.metrics.prediction_arrays import Array, Predictions
from calibayes.numpy_arrays import from_numpy
from calibayes.posthoc.abstract_scaling import Scaling
from calibayes.posthoc.auto_scaling import ScalingMethod, scaling_named
from calibayes.posthoc.log_scores import log_scores
from calibayes.posthoc.temperature import TemperatureScaling
from calibayes.posthoc.temperature_choice import temperature_or_identity

__all__ = ["SharpenedScaling", "ensemble_scaling"]


def ensemble_scaling(
    out_of_fold: Array,
    targets: Array,
    *,
    members: int,
    method: ScalingMethod = "temperature",
    weights: Array | None = None,
    logits: bool = False,
) -> Scaling:
    r"""Fit a scaling for the average of cross-fitted members, from what each member says of the rows it has not seen.

    A row has one out-of-fold prediction for each round of folds, from one member, but the average of all members is less
    overconfident than any of them: a scaling that was fitted on members and is applied to their average makes it too soft. With
    $R \ge 2$ rounds, the scaling is fitted on the row's average of $R$ members. How much sharper the average of all $M$
    must be made first follows from the temperatures $T_1$ of single members and $T_R$ of averages of $R$: what members add
    by chance is averaged out in proportion to the inverse of their number, so $\log T$ is continued along $1/M$,
    $$\log T_M = \log T_R - \frac{1/R - 1/M}{1 - 1/R} (\log T_1 - \log T_R)$$
    and the logarithms of the ensemble's probabilities are multiplied by $T_R / T_M$, never by less than 1. With $R = 1$ nothing
    tells how much members differ; then $T_M = \sqrt{T_1}$, half-way between what one member needs and nothing.
    `results/benchmarks/ensemble-scaling.txt` has the measurements that led to these two rules.

    Args:
        out_of_fold: class probabilities ``[R, n, K]`` of $R$ rounds of folds; ``[n, K]`` for one round.
        targets: the true classes, integers of shape ``[n]``.
        members: $M$, how many members the ensemble averages: those of all rounds together.
        method: a scaling's name as in `AutoScaling`, ``"auto"``, or a class or function that makes a `Scaling`.
        weights: how much each example counts, non-negative.
        logits: ``out_of_fold`` are log-probabilities or logits.

    Returns:
        A fitted scaling, to be applied to the ensemble's averaged probabilities.

    Examples:
        >>> generator = torch.Generator().manual_seed(0)
        >>> truth = 2 * torch.randn(2000, 3, generator=generator)
        >>> labels = torch.multinomial(truth.softmax(-1), 1, generator=generator)[:, 0]
        >>> members = (truth + 1.5 * torch.randn(10, 2000, 3, generator=generator)).softmax(-1)
        >>> scaling = ensemble_scaling(members[:2], labels, members=10)
        >>> naive = TemperatureScaling().fit(members[0], labels)
        >>> best = TemperatureScaling().fit(members.mean(0), labels)
        >>> [round(each.temperature, 1) for each in (naive, scaling, best)]
        [2.1, 0.9, 0.8]
    """
    rounds = _rounds(out_of_fold, logits)
    members = positive_integer("members", members)
    if members < len(rounds):
        raise InvalidArgumentError(
            f"Expected `members` to count those of all {len(rounds)} rounds of folds, but got {members}."
        )
    averaged = rounds.mean(0)
    sharpness = _sharpness(rounds, targets, weights, members)
    inner = scaling_named(method)
    if isinstance(inner, TemperatureScaling):
        inner, _ = temperature_or_identity(averaged, targets, weights)
        return TemperatureScaling.of(inner.temperature / sharpness, averaged.shape[1])
    inner.fit(averaged, targets, weights=weights)
    return SharpenedScaling(inner, sharpness)


@final
class SharpenedScaling(Scaling):
    r"""Multiply the logarithms of probabilities by a number, then apply a scaling that is fitted already.

    Args:
        inner: the scaling.
        sharpness: the number.

    Examples:
        >>> SharpenedScaling(TemperatureScaling.of(2.0, classes=2), 2.0).transform(torch.tensor([[0.9, 0.1]]))
        tensor([[0.9000, 0.1000]])
    """

    def __init__(self, inner: Scaling, sharpness: float) -> None:
        self.inner, self.sharpness = inner, sharpness
        self._classes = inner._classes

    def __repr__(self) -> str:
        return f"SharpenedScaling({self.inner!r}, sharpness={self.sharpness:.6g})"

    def _fit(self, predictions: Predictions, logits: bool) -> str | None:
        raise InvalidArgumentError("A SharpenedScaling comes fitted. Call `ensemble_scaling` again.")

    def _scaled(self, values: Tensor, logits: bool) -> Tensor:
        return self.inner._scaled(self.sharpness * log_scores(values, logits), True)


def _rounds(out_of_fold: Array, logits: bool) -> Tensor:
    """Probabilities ``[R, n, K]`` in float64."""
    values = out_of_fold.detach().cpu() if isinstance(out_of_fold, Tensor) else from_numpy(out_of_fold)
    values = values.double()
    if values.dim() == 2:
        values = values[None]
    if values.dim() != 3 or len(values) < 1:
        raise InvalidProbabilitiesError(
            f"Expected `out_of_fold` of shape [R, n, K], or [n, K] for one round of folds, but got {list(values.shape)}."
        )
    return values.softmax(-1) if logits else values


def _sharpness(rounds: Tensor, targets: Array, weights: Array | None, members: int) -> float:
    """Return $T_R / T_M$."""
    number = len(rounds)
    if members == 1:
        return 1.0
    of_one = math.log(_temperature(rounds, 1, targets, weights))
    if number == 1:
        return math.exp(of_one / 2)
    of_all = math.log(_temperature(rounds, number, targets, weights))
    return math.exp(max(0.0, of_one - of_all) * (1 / number - 1 / members) / (1 - 1 / number))


def _temperature(rounds: Tensor, size: int, targets: Array, weights: Array | None) -> float:
    """The temperature for averages of ``size`` rounds, of all such averages together; 1 if the data settle none."""
    averages = [rounds[list(chosen)].mean(0) for chosen in combinations(range(len(rounds)), size)]
    labels = targets if isinstance(targets, Tensor) else from_numpy(targets)
    counts = weights if weights is None or isinstance(weights, Tensor) else from_numpy(weights)
    many = None if counts is None else counts.repeat(len(averages))
    return temperature_or_identity(torch.cat(averages), labels.repeat(len(averages)), many)[0].temperature
