"""Accuracy, and proper scores, whose expected value only the true probabilities minimise."""

from __future__ import annotations

import torch
from torch import Tensor

from calibayes.checks import positive_integer
from calibayes.metrics.prediction_arrays import Array, Predictions, as_predictions

__all__ = ["accuracy", "brier", "default_k", "losses", "nll", "overconfidence", "ranks", "top_k_accuracy"]

_BLOCK = 1 << 20  # numbers converted to float64 at a time


def accuracy(probs: Array, targets: Array, *, weights: Array | None = None, check: bool = True) -> float:
    r"""The share of examples whose most probable class is the true one.

    Where several classes share the largest probability, the first of them is the decision, as in ``torch.argmax``.

    Args:
        probs: class probabilities, shape ``[n, K]`` or one column for two classes, torch or numpy.
        targets: the true classes, integers of shape ``[n]``.
        weights: how much each example counts.
        check: look at the values first; ``False`` when they are known to be good.

    Examples:
        >>> accuracy(torch.tensor([[0.9, 0.1], [0.5, 0.5]]), torch.tensor([0, 1]))
        0.5
    """
    predictions = as_predictions(probs, targets, weights, check=check)
    return predictions.mean(predictions.correct)


def overconfidence(probs: Array, targets: Array, *, weights: Array | None = None, check: bool = True) -> float:
    """Mean confidence minus accuracy: positive for an overconfident classifier; arguments as `accuracy`.

    Examples:
        >>> round(overconfidence(torch.tensor([[0.9, 0.1], [0.8, 0.2]]), torch.tensor([0, 1])), 6)
        0.35
    """
    predictions = as_predictions(probs, targets, weights, check=check)
    return predictions.mean(predictions.confidence) - predictions.mean(predictions.correct)


def top_k_accuracy(
    probs: Array, targets: Array, k: int | None = None, *, weights: Array | None = None, check: bool = True
) -> float:
    """The share of examples whose true class is among the ``k`` most probable ones; other arguments as `accuracy`.

    Of classes with the same probability, those that come first count as more probable. The default ``k`` is 5, or less where
    there are at most 5 classes.

    Examples:
        >>> top_k_accuracy(torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]]), torch.tensor([1, 0]), k=2)
        0.5
    """
    predictions = as_predictions(probs, targets, weights, check=check)
    k = default_k(predictions.classes) if k is None else positive_integer("k", k)
    rank = torch.cat([ranks(part) for part in predictions.parts(_BLOCK // predictions.classes)])
    return predictions.mean((rank < k).double())


def nll(probs: Array, targets: Array, *, weights: Array | None = None, check: bool = True) -> float:
    r"""The mean negative log-likelihood of the true classes, in nats; arguments as `accuracy`.

    $$\mathrm{NLL} = -\frac{1}{n} \sum_i \log p(y_i | x_i)$$
    A single true class with probability zero makes it infinite. That is the honest value, so nothing is clipped; an
    infinite result usually means that ``probs`` came from a softmax in float16 or float32 that underflowed.

    Examples:
        >>> round(nll(torch.tensor([[0.5, 0.5], [0.25, 0.75]]), torch.tensor([0, 0])), 4)
        1.0397
        >>> nll(torch.tensor([[1.0, 0.0]]), torch.tensor([1]))
        inf
    """
    predictions = as_predictions(probs, targets, weights, check=check)
    true = predictions.probs.gather(-1, predictions.targets[:, None])[:, 0].double()
    # Subtracted rather than negated: a perfect classifier scores 0.0, not -0.0.
    return 0.0 - predictions.mean(true.log())


def brier(probs: Array, targets: Array, *, weights: Array | None = None, check: bool = True) -> float:
    r"""The mean squared distance between the probabilities and the truth, from 0 (perfect) to 2 (certain and wrong).

    $$\mathrm{Brier} = \frac{1}{n} \sum_i \sum_{k=1}^{K} (p(k | x_i) - 1[k = y_i])^2$$
    The sum runs over all classes, so for two classes it is twice the score of the one-column form. Arguments as `accuracy`. See
    Brier, "Verification of Forecasts Expressed in Terms of Probability" (1950).

    Examples:
        >>> round(brier(torch.tensor([[0.8, 0.2]]), torch.tensor([0])), 6)
        0.08
    """
    predictions = as_predictions(probs, targets, weights, check=check)
    return predictions.mean(torch.cat([losses(part)[1] for part in predictions.parts(_BLOCK // predictions.classes)]))


def losses(part: Predictions) -> tuple[Tensor, Tensor]:
    """The negative log-likelihood and the Brier score of each example, in float64."""
    index = part.targets[:, None]
    distance = part.probs.to(torch.float64, copy=True)
    surprise = 0.0 - distance.gather(-1, index)[:, 0].log()
    distance.scatter_add_(-1, index, torch.full_like(index, -1, dtype=torch.float64))
    return surprise, distance.square_().sum(-1)


def ranks(part: Predictions) -> Tensor:
    """Return how many classes are ranked above the true one."""
    true = part.probs.gather(-1, part.targets[:, None])
    earlier = torch.arange(part.classes) < part.targets[:, None]
    return ((part.probs > true) | ((part.probs == true) & earlier)).sum(-1)


def default_k(classes: int) -> int:
    """The default k of `top_k_accuracy`: 5, or one less than the number of classes if that is smaller."""
    return max(1, min(5, classes - 1))
