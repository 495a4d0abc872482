r"""Temperature scaling: one number that makes every prediction softer or sharper and changes no decision."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Self, final

import torch
from torch import Tensor

from calibayes.checks import positive, positive_integer
from calibayes.metrics.prediction_arrays import Array, Predictions
from calibayes.posthoc.abstract_scaling import PosthocWarning, Scaling
from calibayes.posthoc.log_scores import blocks, log_scores, read_held_out
from calibayes.predictive import Predictive

__all__ = ["HIGHEST", "LOWEST", "TemperatureScaling", "fitted_temperature", "temperature"]

LOWEST, HIGHEST = 1e-4, 1e4
_BOUNDS = -math.log(HIGHEST), -math.log(LOWEST)  # of the logarithm of the inverse temperature
_SAMPLE = 10_000  # examples that find the neighbourhood of the optimum before all of them are looked at


@final
class TemperatureScaling(Scaling):
    r"""Divide the logits by a temperature that held-out data choose: the usual baseline, and rarely a bad one.

    $$p_T(y|x) = \frac{p(y|x)^{1/T}}{\sum_{y'} p(y'|x)^{1/T}}, \qquad T = \arg\min -\sum_i w_i \log p_T(y_i|x_i)$$
    $T > 1$ means that the classifier was overconfident, $T < 1$ that it was underconfident. Decisions do not change.
    $T$ stays within $10^{-4} \dots 10^4$, and a `PosthocWarning` says when it would leave. See Guo et al., "On Calibration of
    Modern Neural Networks" (2017, https://arxiv.org/abs/1706.04599).

    Examples:
        >>> held_out = torch.tensor([[0.99, 0.01], [0.98, 0.02], [0.01, 0.99], [0.97, 0.03]])
        >>> scaling = TemperatureScaling().fit(held_out, torch.tensor([0, 0, 1, 1]))
        >>> round(scaling.temperature, 2)
        3.15
        >>> scaling.transform(torch.tensor([[0.99, 0.01]]))
        tensor([[0.8113, 0.1887]])
    """

    _temperature: float | None = None

    @classmethod
    def of(cls, temperature: float, classes: int) -> Self:
        """The scaling by a temperature that is known from before.

        Examples:
            >>> TemperatureScaling.of(2.0, classes=2).transform(torch.tensor([[0.9, 0.1]]))
            tensor([[0.7500, 0.2500]])
        """
        made = cls()
        made._temperature, made._classes = positive("temperature", temperature), positive_integer("classes", classes)
        return made

    @property
    def temperature(self) -> float:
        """$T$."""
        return self._known(self._temperature)

    def __repr__(self) -> str:
        shown = "not fitted" if self._temperature is None else f"temperature={self._temperature:.6g}"
        return f"TemperatureScaling({shown})"

    def _fit(self, predictions: Predictions, logits: bool) -> str | None:
        self._temperature, message = fitted_temperature(predictions, logits)
        return message

    def _scaled(self, values: Tensor, logits: bool) -> Tensor:
        out = (log_scores(values, logits) / self.temperature).softmax(-1).to(values.dtype)
        return _keep_decisions(out, values)


def temperature(
    probs: Array | Predictive, targets: Array, *, weights: Array | None = None, logits: bool = False, check: bool = True
) -> float:
    r"""The temperature that fits held-out predictions best: above 1 for an overconfident classifier.

    It minimises the NLL, which is convex in $1/T$, by Newton steps with the exact derivatives inside a bracket. Uniform
    predictions are the same at every temperature: theirs is 1. See `TemperatureScaling` for the bounds.

    Args:
        probs: class probabilities, shape ``[n, K]``, torch or numpy, or a `Predictive`; ``[n]`` for two classes.
        targets: the true classes, integers of shape ``[n]``.
        weights: how much each example counts, non-negative.
        logits: ``probs`` are logits.
        check: look at the values first; ``False`` when they are known to be good.

    Examples:
        >>> logits = torch.randn(20_000, 5, generator=torch.Generator().manual_seed(0))
        >>> labels = torch.multinomial((logits / 2).softmax(-1), 1, generator=torch.Generator().manual_seed(1))[:, 0]
        >>> round(temperature(logits.softmax(-1), labels), 1)
        2.0
    """
    value, message = fitted_temperature(read_held_out(probs, targets, weights, logits, check), logits)
    if message is not None:
        warnings.warn(message, PosthocWarning, stacklevel=2)
    return value


def fitted_temperature(predictions: Predictions, logits: bool) -> tuple[float, str | None]:
    r"""$T$, and the warning if it is at a bound.

    With $\beta = 1/T$ and log-scores $z$ (0 for the decision), the NLL's derivative $\sum_i w_i (E_\beta[z_i] - z_{i,y_i})$
    rises from $\sum_i w_i (\bar z_i - z_{i,y_i})$ at $\beta = 0$ to $-\sum_i w_i z_{i,y_i}$ at infinity: these two sums say
    whether it has a root, with no iteration to mislead.
    """
    of_labels, of_average = _limits(predictions, logits)
    if of_average == 0:
        return 1.0, None
    if of_labels == 0:
        return LOWEST, (
            f"Every held-out example is decided right, so lower temperatures fit ever better: stopped at {LOWEST:g}. "
            "Fit on more held-out examples, some of which the classifier gets wrong."
        )
    if of_average >= of_labels:
        return HIGHEST, (
            "The true classes are no likelier than chance by these predictions, so higher temperatures fit ever better: "
            f"stopped at {HIGHEST:g}. Are the labels in the order of the predictions, and numbered like their columns?"
        )
    stride = len(predictions) // _SAMPLE
    start = 1.0
    if stride > 1:
        weights = None if predictions.weights is None else predictions.weights[::stride]
        start = fitted_temperature(Predictions(predictions.probs[::stride], predictions.targets[::stride], weights), logits)[0]
    root = _root(lambda beta: _slope(predictions, logits, beta), -math.log(start))
    if root not in _BOUNDS:
        return math.exp(-root), None
    value, side = (HIGHEST, "above") if root == _BOUNDS[0] else (LOWEST, "below")
    return value, f"The best temperature lies {side} {value:g}: stopped there. Bring the logits to a usual scale first."


def _limits(predictions: Predictions, logits: bool) -> tuple[float, float]:
    """The weighted sums of the labels' log-scores and of the average log-scores."""
    of_labels = of_average = 0.0
    for part in blocks(predictions):
        scores = log_scores(part.probs, logits)
        of_labels += float((scores.gather(-1, part.targets[:, None])[:, 0] * part.mass).sum())
        of_average += float((scores.mean(-1) * part.mass).sum())
    return of_labels, of_average


def _slope(predictions: Predictions, logits: bool, beta: float) -> tuple[float, float]:
    """The first and second derivative of the NLL with respect to the inverse temperature."""
    first = second = 0.0
    for part in blocks(predictions):
        scores = log_scores(part.probs, logits)
        powers = (beta * scores).exp_()
        total = powers.sum(-1)
        mean = powers.mul_(scores).sum(-1) / total
        variance = powers.mul_(scores).sum(-1) / total - mean.square()
        first += float(((mean - scores.gather(-1, part.targets[:, None])[:, 0]) * part.mass).sum())
        second += float((variance * part.mass).sum())
    return first, max(second, 0.0)


def _root(slope: Callable[[float], tuple[float, float]], start: float) -> float:
    """The logarithm of the inverse temperature at which the slope is zero, or the bound before it."""
    low, high = _BOUNDS
    tested: set[float] = set()
    at, last = start, math.inf
    while True:
        first, second = slope(math.exp(at))
        if first == 0 or (first > 0 and at == _BOUNDS[0]) or (first < 0 and at == _BOUNDS[1]):
            return at
        low, high = (low, at) if first > 0 else (at, high)
        tested.add(at)
        curvature = math.exp(at) * second
        # A step of 3 is a factor of 20 in temperature: further than that the tangent says nothing.
        step = -math.copysign(3.0, first) if abs(first) >= 3 * curvature else -first / curvature
        if abs(step) > abs(last) / 2:
            # Newton is not converging yet: halve the bracket, or look for its other end in growing steps.
            step = (low + high) / 2 - at if {low, high} <= tested else math.copysign(min(3.0, 2 * abs(last)), step)
        following = min(max(at + step, low), high)
        if following in tested:
            following = (low + high) / 2
        # Newton steps converge quadratically: after one of 1e-6, what is left is below rounding.
        if abs(following - at) < 1e-6:
            return following
        at, last = following, following - at


def _keep_decisions(out: Tensor, values: Tensor) -> Tensor:
    """``out`` with the decisions of ``values``, where rounding made equal what was not."""
    one = torch.ones((), dtype=out.dtype)
    if out.shape[1] == 2:
        # One column is all that some callers keep, so it has to tell by itself on which side of ½ it is.
        first = values[:, 0] >= values[:, 1]
        wrong = (out[:, 1] <= 0.5) != first
        out[wrong, 1] = torch.where(first, one / 2, torch.nextafter(one / 2, one))[wrong]
        out[wrong, 0] = 1 - out[wrong, 1]
        return out
    decision = values.argmax(-1)
    wrong = out.argmax(-1) != decision
    if bool(wrong.any()):
        rows, decided = out[wrong], decision[wrong][:, None]
        top = rows.amax(-1, keepdim=True)
        before = torch.arange(out.shape[1]) < decided
        rows = torch.where(before, rows.minimum(torch.nextafter(top, 0 * one)), rows)
        out[wrong] = rows.scatter(-1, decided, top)
    return out
