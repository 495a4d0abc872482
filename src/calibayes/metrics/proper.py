"""Proper scores, which only the true probabilities minimise on average, and accuracy."""

from __future__ import annotations

import torch

from calibayes.metrics.arrays import Array, as_predictions

__all__ = ["accuracy", "brier", "nll"]

_BLOCK = 1 << 20  # numbers converted to float64 at a time


def accuracy(probs: Array, targets: Array, *, check: bool = True) -> float:
    r"""The share of examples whose most probable class is the true one.

    Where several classes share the largest probability, the first of them is the decision, as in ``torch.argmax``.

    Args:
        probs: class probabilities, shape ``[n, K]``, torch or numpy.
        targets: the true classes, integers of shape ``[n]``.
        check: look at the values first; ``False`` when they are known to be good.

    Example:
        >>> accuracy(torch.tensor([[0.9, 0.1], [0.5, 0.5]]), torch.tensor([0, 1]))
        0.5
    """
    probs, targets = as_predictions(probs, targets, check=check)
    return float((probs.argmax(-1) == targets).double().mean())


def nll(probs: Array, targets: Array, *, check: bool = True) -> float:
    r"""How surprised the classifier is by the true classes: the mean negative log-likelihood, in nats.

    $$\mathrm{NLL} = -\frac{1}{n} \sum_i \log p(y_i | x_i)$$
    A single true class with probability zero makes it infinite. That is the honest value, so nothing is clipped; an
    infinite result usually means that ``probs`` came from a softmax in float16 or float32 that underflowed.

    Args:
        probs: class probabilities, shape ``[n, K]``, torch or numpy.
        targets: the true classes, integers of shape ``[n]``.
        check: look at the values first; ``False`` when they are known to be good.

    Example:
        >>> round(nll(torch.tensor([[0.5, 0.5], [0.25, 0.75]]), torch.tensor([0, 0])), 4)
        1.0397
        >>> nll(torch.tensor([[1.0, 0.0]]), torch.tensor([1]))
        inf
    """
    probs, targets = as_predictions(probs, targets, check=check)
    true = probs.gather(-1, targets[:, None]).double()
    # Subtracted rather than negated: a perfect classifier scores 0.0, not -0.0.
    return 0.0 - float(true.log().mean())


def brier(probs: Array, targets: Array, *, check: bool = True) -> float:
    r"""The mean squared distance between the probabilities and the truth, from 0 (perfect) to 2 (sure and wrong).

    $$\mathrm{Brier} = \frac{1}{n} \sum_i \sum_{k=1}^{K} (p(k | x_i) - 1[k = y_i])^2$$
    The sum runs over all classes, so for two classes it is twice the score of the one-column form.

    Args:
        probs: class probabilities, shape ``[n, K]``, torch or numpy.
        targets: the true classes, integers of shape ``[n]``.
        check: look at the values first; ``False`` when they are known to be good.

    Example:
        >>> round(brier(torch.tensor([[0.8, 0.2]]), torch.tensor([0])), 6)
        0.08
    """
    probs, targets = as_predictions(probs, targets, check=check)
    rows = max(1, _BLOCK // probs.shape[-1])
    total = 0.0
    for start in range(0, len(probs), rows):
        labels = targets[start : start + rows]
        distance = probs[start : start + rows].to(torch.float64, copy=True)
        distance[torch.arange(len(labels)), labels] -= 1
        total += float(distance.square_().sum())
    return total / len(probs)
