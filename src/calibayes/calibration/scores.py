r"""Confidence and correctness scores, $r$ and $c$: hard, and smoothed so that gradient flows through both."""

from __future__ import annotations

import torch
from torch import Tensor

from calibayes.checks import check_predictions, check_probabilities, class_indices, positive

__all__ = ["confidence", "correctness", "widened"]


def confidence(probs: Tensor, tau: float | None = None, *, check: bool = True) -> Tensor:
    r"""The confidence of the classifier in its decision, one number per example.

    With ``tau=None`` this is the largest probability, $r = \max_y p(y|x)$, and its gradient is that of the decided class
    alone. With a temperature it is the smoothed maximum of eq. (rhat),
    $\hat r = \sum_y p_y \, e^{p_y/\tau} / \sum_{y'} e^{p_{y'}/\tau}$, which sends gradient to every class and tends to $r$
    as $\tau \to 0$.

    Args:
        probs: class probabilities, shape ``[..., n, K]``; half precision is computed in float32.
        tau: temperature $\tau_r > 0$ of the smoothed maximum; the paper uses 0.001.
        check: whether to verify that ``probs`` are probabilities.

    Examples:
        >>> confidence(torch.tensor([[0.7, 0.2, 0.1]]))
        tensor([0.7000])
        >>> confidence(torch.tensor([[0.7, 0.2, 0.1]]), tau=0.5)
        tensor([0.4815])
    """
    if check:
        check_probabilities(probs)
    probs = widened(probs)
    if tau is None:
        return probs.max(-1).values
    return (probs * torch.softmax(probs / positive("tau", tau), dim=-1)).sum(-1)


def correctness(probs: Tensor, targets: Tensor, tau: float | None = None, *, check: bool = True) -> Tensor:
    r"""The correctness of the decision, one number in $[0, 1]$ per example.

    With ``tau=None`` this is $c = 1(\hat y = y)$, which has no gradient. With a temperature it is eq. (chat),
    $\hat c = \mathrm{ReLU}(2 - [\hat R]_y)$, with the soft rank of eq. (Rhat),
    $[\hat R]_y = 1 + \sum_{y' \ne y} \sigma\big((p_{y'} - p_y)/\tau\big)$.

    With many classes and small probabilities every term of the soft rank is near ½ and $\hat c$ fades to zero even for
    right decisions (with $K = 1000$ and a winning probability of 0.05, $\tau = 0.01$ gives $\hat c = 0$): choose a
    smaller ``tau`` there.

    Args:
        probs: class probabilities, shape ``[..., n, K]``; half precision is computed in float32.
        targets: labels in $0 … K-1$, shape ``[..., n]`` or ``[n]``.
        tau: temperature $\tau_c > 0$ of the soft rank; the paper uses 0.01.
        check: whether to verify the inputs.

    Examples:
        >>> correctness(torch.tensor([[0.7, 0.2, 0.1], [0.5, 0.4, 0.1]]), torch.tensor([0, 1]))
        tensor([1., 0.])
        >>> correctness(torch.tensor([[0.51, 0.49]]), torch.tensor([0]), tau=0.01)
        tensor([0.8808])
    """
    if check:
        check_predictions(probs, targets)
    probs = widened(probs)
    if tau is None:
        return (probs.argmax(-1) == targets).to(probs.dtype)
    index = class_indices(targets).expand(probs.shape[:-1]).unsqueeze(-1)
    margins = (probs - probs.gather(-1, index)) / positive("tau", tau)
    rivals = torch.sigmoid(margins).sum(-1) - 0.5  # the class itself has margin 0 and counts ½ in the sum
    return torch.relu(1 - rivals)


def widened(values: Tensor) -> Tensor:
    """Half precision as float32: it overflows in losses, and has too few digits near 1, where confidences lie."""
    return values.float() if values.dtype in (torch.float16, torch.bfloat16) else values
