r"""The precision of a Laplace approximation's prior: by its log evidence, or by validation data."""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
from torch import Tensor

from calibayes.checks import moderate_positive
from calibayes.errors import InvalidArgumentError
from calibayes.posterior.laplace_group import LaplaceGroup
from calibayes.randomness import generator_for

__all__ = ["Precision", "checked_precision", "log_evidence", "most_evident", "most_predictive"]

Precision = float | Literal["marginal-likelihood", "validation"]

_DECADES = (-6.0, 6.0)
_POINTS = (25, 9, 9)  # of the grid, and of each finer one around its best point
_SAMPLES = 20


def checked_precision(precision: Precision, validation: Any) -> Precision:
    """The precision, or the way to find it; an error if it does not go with the validation data, or their absence."""
    if not isinstance(precision, str):
        precision = moderate_positive("prior_precision", precision)
    elif precision not in ("marginal-likelihood", "validation"):
        raise InvalidArgumentError(
            f"Expected `prior_precision` to be a positive number, 'marginal-likelihood' or 'validation', but got {precision!r}."
        )
    if precision == "validation" and validation is None:
        raise InvalidArgumentError("`prior_precision='validation'` needs `validation` data, other than the training data.")
    if precision != "validation" and validation is not None:
        raise InvalidArgumentError(
            f"`validation` data are only used with `prior_precision='validation'`, but that is {precision!r}."
        )
    return precision


def log_evidence(group: LaplaceGroup) -> float:
    r"""$\log p(D|\theta^*) + \log p(\theta^*|\delta) - \frac12 \log\det\frac{P}{2\pi}$ with $P = H + \delta I$."""
    values, norm = _wide(group)
    shrunk = torch.log1p(values / group.prior_precision).sum()
    return group.log_likelihood - 0.5 * float(group.prior_precision * norm + shrunk)


def most_evident(group: LaplaceGroup) -> float:
    r"""The prior's precision $\delta$ at which `log_evidence` is highest.

    Its derivative in $\log\delta$ is $\frac12 [\gamma(\delta) - \delta\|\theta^*\|^2]$ with the effective number of parameters
    $\gamma = \sum_i l_i/(l_i + \delta)$ (MacKay 1992), which falls with $\delta$: there is one maximum, found by bisection.
    """
    values, norm = _wide(group)
    if norm == 0 or not bool(values.any()):
        what = "the layer's weights are all zero" if norm == 0 else "every prediction is saturated, so there is no curvature"
        raise InvalidArgumentError(
            f"The marginal likelihood has no maximum: {what}. Pass a number as `prior_precision`, or 'validation'."
        )

    def effective(precision: float) -> float:
        return float((values / (values + precision)).sum())

    highest = math.log(values.numel() / norm)
    lowest = math.log(max(effective(math.exp(highest)) / norm, 1e-300))
    while highest - lowest > 1e-12 * max(1.0, abs(highest)):
        middle = (lowest + highest) / 2
        if not lowest < middle < highest:
            break
        if effective(math.exp(middle)) > math.exp(middle) * norm:
            lowest = middle
        else:
            highest = middle
    return math.exp((lowest + highest) / 2)


def most_predictive(group: LaplaceGroup, features: Tensor, targets: Tensor, weights: Tensor, seed: int) -> float:
    r"""The prior's precision with the lowest NLL of held-out examples, over a logarithmic grid that is refined twice.

    Predictions are averages over 20 samples, whose noise is the same for every precision. The ``features [n, D]`` are the
    inputs of the layer, a one for its bias included.
    """
    values, mean, labels = group.curvature.eigenvalues, group.matrix(), targets.unsqueeze(1)
    generator = generator_for(values.device, seed, "laplace", "validation")
    noise = torch.empty((_SAMPLES, *values.shape), dtype=values.dtype, device=values.device).normal_(generator=generator)

    def nll(decade: float) -> float:
        shifts = group.curvature.scaled(noise, (values + 10.0**decade).rsqrt())
        logs = [(features @ (mean + shift).T).log_softmax(-1).gather(1, labels).squeeze(1) for shift in shifts]
        return -float((torch.stack(logs).logsumexp(0).double() * weights).sum())

    lowest, highest = _DECADES
    best = 0.0
    for points in _POINTS:
        step = (highest - lowest) / (points - 1)
        best = min((lowest + k * step for k in range(points)), key=nll)
        lowest, highest = best - step, best + step
    return float(10.0**best)


def _wide(group: LaplaceGroup) -> tuple[Tensor, float]:
    return group.curvature.eigenvalues.to("cpu", torch.float64), float(group.matrix().double().square().sum())
