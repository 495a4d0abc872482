"""What the scalings for two classes share: log-odds, checks, and logistic regression with few parameters."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import softplus

from calibayes.errors import InvalidProbabilitiesError
from calibayes.metrics.prediction_arrays import Predictions
from calibayes.posthoc.log_scores import log_scores

__all__ = ["check_two_classes", "fit_logistic", "log_odds", "one_class_warning", "probability_of_one"]


def log_odds(values: Tensor, logits: bool) -> Tensor:
    """The log-odds of class 1, ``[m]``."""
    scores = log_scores(values, logits)
    return scores[:, 1] - scores[:, 0]


def probability_of_one(values: Tensor, logits: bool) -> Any:
    """The probability of class 1 as an array ``[m]``."""
    # Probabilities as they are: through logarithms, neighbours could become equal.
    return (log_odds(values, logits).sigmoid() if logits else values[:, 1].double()).numpy()


def check_two_classes(predictions: Predictions, name: str) -> None:
    """Raise `InvalidProbabilitiesError` unless there are two classes."""
    if predictions.classes != 2:
        raise InvalidProbabilitiesError(
            f"{name} is for two classes, but `probs` have {predictions.classes}. "
            "Use TemperatureScaling or StructuredMatrixScaling."
        )


def one_class_warning(predictions: Predictions, result: str) -> str | None:
    """The warning if all labels are the same."""
    present = predictions.targets[predictions.mass > 0].unique()
    if len(present) > 1:
        return None
    return f"Every held-out label is {int(present[0])}, so {result}. Fit on examples of both classes."


def fit_logistic(inputs: Tensor, labels: Tensor, share: Tensor, start: Tensor, ridge: Tensor) -> Tensor:
    r"""The parameters $\theta$ at the minimum of mean NLL of $\sigma(x \cdot \theta)$ plus a ridge, by Newton's method.

    scikit-learn's logistic regression has no ridge but towards zero, and its solvers stumble, with warnings, over
    predictions that are all the same.

    Args:
        inputs: $x$, ``[n, F]``, each column of about unit size.
        labels: between 0 and 1, ``[n]``.
        share: each example's weight; they sum to 1.
        start: where to begin, and what the ridge pulls to, ``[F]``.
        ridge: $\rho \ge 0$ of $\frac12 \sum_j \rho_j (\theta_j - \theta^0_j)^2$, ``[F]``.
    """

    def loss(parameters: Tensor) -> float:
        z = inputs @ parameters
        return float((share * (softplus(z) - labels * z)).sum() + (ridge * (parameters - start).square()).sum() / 2)

    parameters, value = start, loss(start)
    for _ in range(100):
        predicted = (inputs @ parameters).sigmoid()
        gradient = inputs.T @ (share * (predicted - labels)) + ridge * (parameters - start)
        if float(gradient.abs().amax()) < 1e-12:
            break
        curvature = inputs.T @ (inputs * (share * predicted * (1 - predicted))[:, None])
        step = -torch.linalg.solve(curvature + (ridge + 1e-12).diag(), gradient)
        slope, length = float(gradient @ step), 1.0
        # Sums of many terms are right to about 1e-15: below that, a decrease cannot be seen.
        while not (lower := loss(parameters + length * step)) <= value + 1e-4 * length * slope + 1e-15 and length > 1e-9:
            length /= 2
        parameters, value = parameters + length * step, lower
    return parameters
