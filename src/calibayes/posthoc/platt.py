"""Platt scaling: a sigmoid of the log-odds of two classes."""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor

from calibayes.metrics.prediction_arrays import Predictions
from calibayes.posthoc.abstract_scaling import Scaling
from calibayes.posthoc.two_class import check_two_classes, fit_logistic, log_odds, one_class_warning

__all__ = ["PlattScaling"]


@final
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

    def _fit(self, predictions: Predictions, logits: bool) -> str | None:
        check_two_classes(predictions, "PlattScaling")
        odds, share = log_odds(predictions.probs, logits), predictions.mass / predictions.mass.sum()
        of_one = (predictions.mass * predictions.targets).sum()
        smoothed = torch.where(predictions.targets == 1, (of_one + 1) / (of_one + 2), 1 / (predictions.mass.sum() - of_one + 2))
        counted = odds[predictions.mass > 0]
        if bool(counted.amin() == counted.amax()):
            center, width = counted[0], torch.ones_like(counted[0])
        else:
            center = (odds * share).sum()
            width = ((odds - center).square() * share).sum().sqrt()
        x = (odds - center) / width
        start = torch.stack((torch.zeros(()), torch.logit((share * smoothed).sum()))).double()
        inputs = torch.stack((x, torch.ones_like(x)), -1)
        steepness, height = fit_logistic(inputs, smoothed, share, start, torch.zeros_like(start)).tolist()
        slope = steepness / float(width)
        self._parameters = slope, height - slope * float(center)
        return one_class_warning(predictions, "the sigmoid is flat")

    def _scaled(self, values: Tensor, logits: bool) -> Tensor:
        scaled = self.slope * log_odds(values, logits) + self.intercept
        # Each by a sigmoid of its own: 1 - p would lose what is small.
        return torch.stack(((-scaled).sigmoid(), scaled.sigmoid()), -1)
