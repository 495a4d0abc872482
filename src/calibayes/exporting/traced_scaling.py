"""Post-hoc scalings as operations of a graph: no decision in Python depends on a probability."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from calibayes.posthoc import AutoScaling, IsotonicScaling, Scaling, SharpenedScaling, TemperatureScaling, VennAbersScaling
from calibayes.posthoc.log_scores import log_scores
from calibayes.posthoc.two_class import log_odds

__all__ = ["TracedScaling", "traced_scaling"]

TracedScaling = Callable[[Tensor, bool], Tensor]
"""A function of probabilities ``[n, K]`` in float64, or of logits if its second argument says so."""


def traced_scaling(scaling: Scaling) -> TracedScaling:
    """What `Scaling.transform` does, as a function of tensors; decisions that tie but for rounding may change.

    Examples:
        >>> traced_scaling(TemperatureScaling.of(2.0, classes=2))(torch.tensor([[0.9, 0.1]], dtype=torch.float64), False)
        tensor([[0.7500, 0.2500]], dtype=torch.float64)
    """
    match scaling:
        case AutoScaling():
            return traced_scaling(scaling.scaling)
        case SharpenedScaling():
            inner, sharpness = traced_scaling(scaling.inner), _double(scaling.sharpness)
            return lambda values, logits: inner(sharpness * log_scores(values, logits), True)
        case TemperatureScaling():
            temperature = _double(scaling.temperature)
            return lambda values, logits: (log_scores(values, logits) / temperature).softmax(-1)
        case IsotonicScaling():
            return _isotonic(scaling)
        case VennAbersScaling():
            return _venn_abers(scaling)
    return scaling._scaled


def _double(value: float) -> Tensor:
    """A number as a tensor: a plain one would be in float32 in ONNX."""
    return torch.tensor(value, dtype=torch.float64)


def _isotonic(scaling: IsotonicScaling) -> TracedScaling:
    """Straight lines between the corners of the curve, constant beyond the first and the last."""
    at, high = (torch.from_numpy(each).double() for each in scaling.curve)

    def function(values: Tensor, logits: bool) -> Tensor:
        x = log_odds(values, logits).sigmoid() if logits else values[:, 1]
        if len(at) == 1:
            one = high.expand_as(x)
        else:
            x = x.maximum(at[0]).minimum(at[-1])
            left = (x.unsqueeze(1) >= at[1:-1]).sum(1)
            one = high[left] + (x - at[left]) / (at[left + 1] - at[left]) * (high[left + 1] - high[left])
        return torch.stack((1 - one, one), -1)

    return function


def _venn_abers(scaling: VennAbersScaling) -> TracedScaling:
    known, low, high = (torch.from_numpy(each) for each in scaling.curves)
    low, high = torch.cat([low.new_zeros(1), low]), torch.cat([high, high.new_ones(1)])

    def function(values: Tensor, logits: bool) -> Tensor:
        scores = scaling.rounded(log_odds(values, logits)).unsqueeze(1)
        of_zero, of_one = low[(known <= scores).sum(1)], high[(known < scores).sum(1)]
        total = 1 - of_zero + of_one
        return torch.stack(((1 - of_zero) / total, of_one / total), -1)

    return function
