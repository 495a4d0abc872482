"""The two classics for two classes: Platt's sigmoid and isotonic regression."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import softplus

from calibayes.errors import InvalidProbabilitiesError
from calibayes.metrics.prediction_arrays import Predictions
from calibayes.posthoc.abstract_scaling import Scaling
from calibayes.posthoc.log_scores import log_scores

__all__ = ["IsotonicScaling", "PlattScaling"]


class PlattScaling(Scaling):
    r"""Fit a sigmoid to the log-odds of two classes: scale and shift, for a classifier that favours one of them.

    $$\tilde p(1|x) = \sigma\Big(a \log\frac{p(1|x)}{p(0|x)} + b\Big)$$
    minimises the NLL with Platt's smoothed labels, $(n_1 + 1)/(n_1 + 2)$ for class 1 and $1/(n_0 + 2)$ for class 0, which
    keep it finite. Constant predictions become the (smoothed) share of class 1. See Platt, "Probabilistic Outputs for Support
    Vector Machines and Comparisons to Regularized Likelihood Methods" (1999).

    Examples:
        >>> scaling = PlattScaling().fit(torch.tensor([0.9, 0.8, 0.95, 0.7, 0.6]), torch.tensor([1, 0, 1, 0, 0]))
        >>> scaling.transform(torch.tensor([0.8, 0.95]))
        tensor([0.3522, 0.7936])
    """

    _parameters: tuple[float, float] | None = None

    @property
    def slope(self) -> float:
        """$a$."""
        return self._known(self._parameters)[0]

    @property
    def intercept(self) -> float:
        """$b$."""
        return self._known(self._parameters)[1]

    def __repr__(self) -> str:
        shown = "not fitted" if self._parameters is None else "slope={:.6g}, intercept={:.6g}".format(*self._parameters)
        return f"PlattScaling({shown})"

    def _fit(self, found: Predictions, logits: bool) -> str | None:
        _two_classes(found, "PlattScaling")
        odds, share = _log_odds(found.probs, logits), found.mass / found.mass.sum()
        of_one = (found.mass * found.targets).sum()
        smoothed = torch.where(found.targets == 1, (of_one + 1) / (of_one + 2), 1 / (found.mass.sum() - of_one + 2))
        counted = odds[found.mass > 0]
        if bool(counted.amin() == counted.amax()):
            center, width = counted[0], torch.ones_like(counted[0])
        else:
            center = (odds * share).sum()
            width = ((odds - center).square() * share).sum().sqrt()
        steepness, height = _newton((odds - center) / width, smoothed, share).tolist()
        slope = steepness / float(width)
        self._parameters = slope, height - slope * float(center)
        return _one_class(found, "the sigmoid is flat")

    def _scaled(self, values: Tensor, logits: bool) -> Tensor:
        scaled = self.slope * _log_odds(values, logits) + self.intercept
        # Each by a sigmoid of its own: 1 - p would lose what is small.
        return torch.stack(((-scaled).sigmoid(), scaled.sigmoid()), -1)


def _newton(x: Tensor, smoothed: Tensor, share: Tensor) -> Tensor:
    """The slope and intercept of the sigmoid of ``x``, which has mean 0 and variance 1, or is 0."""
    # scikit-learn's own Platt scaling is private and for classifiers, and the solvers of its logistic regression stumble,
    # with warnings, over predictions that are all the same. With two parameters, Newton's method is as short as the detour.
    inputs = torch.stack((x, torch.ones_like(x)), -1)

    def loss(parameters: Tensor) -> float:
        z = inputs @ parameters
        return float((share * (softplus(z) - smoothed * z)).sum())

    parameters = torch.stack((torch.zeros(()), torch.logit((share * smoothed).sum()))).double()
    value = loss(parameters)
    for _ in range(100):
        predicted = (inputs @ parameters).sigmoid()
        gradient = inputs.T @ (share * (predicted - smoothed))
        if float(gradient.abs().amax()) < 1e-12:
            break
        curvature = inputs.T @ (inputs * (share * predicted * (1 - predicted))[:, None])
        step = -torch.linalg.solve(curvature + 1e-12 * torch.eye(2, dtype=torch.float64), gradient)
        slope, length = float(gradient @ step), 1.0
        # Sums of many terms are right to about 1e-15: below that, a decrease cannot be seen.
        while not (lower := loss(parameters + length * step)) <= value + 1e-4 * length * slope + 1e-15 and length > 1e-9:
            length /= 2
        parameters, value = parameters + length * step, lower
    return parameters


class IsotonicScaling(Scaling):
    r"""Fit the best rising step curve to the probability of class 1: for two classes and a thousand examples or more.

    It is scikit-learn's ``IsotonicRegression`` of the labels on $p(1|x)$, straight lines between its steps and constant
    beyond the probabilities seen. At its ends the curve is often exactly 0 or 1, where one wrong example makes the NLL
    infinite; probabilities that differed may become equal. See Zadrozny and Elkan, "Transforming Classifier Scores into
    Accurate Multiclass Probability Estimates" (2002).

    Examples:
        >>> scaling = IsotonicScaling().fit(torch.tensor([0.2, 0.4, 0.6, 0.8]), torch.tensor([0, 1, 0, 1]))
        >>> scaling.transform(torch.tensor([0.1, 0.5, 0.7, 0.9]))
        tensor([0.0000, 0.5000, 0.7500, 1.0000])
    """

    _curve: Any = None

    def __repr__(self) -> str:
        shown = "not fitted" if self._curve is None else f"{len(self._curve.X_thresholds_)} thresholds"
        return f"IsotonicScaling({shown})"

    def _fit(self, found: Predictions, logits: bool) -> str | None:
        from sklearn.isotonic import IsotonicRegression

        _two_classes(found, "IsotonicScaling")
        curve = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
        weights = None if found.weights is None else found.weights.numpy()
        self._curve = curve.fit(_of_class_one(found.probs, logits), found.targets.double().numpy(), sample_weight=weights)
        return _one_class(found, "the curve is constant, at 0 or 1")

    def _scaled(self, values: Tensor, logits: bool) -> Tensor:
        one = torch.from_numpy(self._known(self._curve).predict(_of_class_one(values, logits)))
        return torch.stack((1 - one, one), -1)


def _log_odds(values: Tensor, logits: bool) -> Tensor:
    scores = log_scores(values, logits)
    return scores[:, 1] - scores[:, 0]


def _of_class_one(values: Tensor, logits: bool) -> Any:
    # Probabilities as they are: through logarithms, neighbours could become equal.
    return (_log_odds(values, logits).sigmoid() if logits else values[:, 1].double()).numpy()


def _two_classes(found: Predictions, name: str) -> None:
    if found.classes != 2:
        raise InvalidProbabilitiesError(
            f"{name} is for two classes, but `probs` have {found.classes}. Use TemperatureScaling or VectorScaling."
        )


def _one_class(found: Predictions, result: str) -> str | None:
    present = found.targets[found.mass > 0].unique()
    if len(present) > 1:
        return None
    return f"Every held-out label is {int(present[0])}, so {result}. Fit on examples of both classes."
