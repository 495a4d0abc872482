r"""Confidence and correctness scores, $r$ and $c$: hard, and smoothed so that gradient flows through both."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from calibayes.checks import check_predictions, check_probabilities, class_indices, positive

__all__ = ["confidence", "correctness"]


def confidence(probs: Tensor, tau: float | None = None, *, check: bool = True) -> Tensor:
    r"""How sure the classifier is of its decision, one number per example.

    With ``tau=None`` this is the largest probability, $r = \max_y p(y|x)$, and its gradient is that of the decided class
    alone. With a temperature it is the smoothed maximum of eq. (rhat),
    $\hat r = \sum_y p_y \, e^{p_y/\tau} / \sum_{y'} e^{p_{y'}/\tau}$, which sends gradient to every class and tends to $r$
    as $\tau \to 0$.

    Args:
        probs: class probabilities, shape ``[..., n, K]``; half precision is computed in float32.
        tau: temperature $\tau_r > 0$ of the smoothed maximum; the paper uses 0.001.
        check: whether to verify that ``probs`` are probabilities.

    Example:
        >>> confidence(torch.tensor([[0.7, 0.2, 0.1]]))
        tensor([0.7000])
        >>> confidence(torch.tensor([[0.7, 0.2, 0.1]]), tau=0.5)
        tensor([0.4815])
    """
    if check:
        check_probabilities(probs)
    probs = _widened(probs)
    if tau is None:
        return probs.max(-1).values
    soft: Tensor = _SoftMaximum.apply(probs, positive("tau", tau))  # type: ignore[no-untyped-call]
    return soft


def correctness(probs: Tensor, targets: Tensor, tau: float | None = None, *, check: bool = True) -> Tensor:
    r"""Whether the decision is right, one number in $[0, 1]$ per example.

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

    Example:
        >>> correctness(torch.tensor([[0.7, 0.2, 0.1], [0.5, 0.4, 0.1]]), torch.tensor([0, 1]))
        tensor([1., 0.])
        >>> correctness(torch.tensor([[0.51, 0.49]]), torch.tensor([0]), tau=0.01)
        tensor([0.8808])
    """
    if check:
        check_predictions(probs, targets)
    probs = _widened(probs)
    if tau is None:
        return (probs.argmax(-1) == targets).to(probs.dtype)
    index = class_indices(targets).expand(probs.shape[:-1]).unsqueeze(-1)
    soft: Tensor = _SoftCorrectness.apply(probs, index, positive("tau", tau))  # type: ignore[no-untyped-call]
    return soft


class _SoftMaximum(torch.autograd.Function):
    r"""$\hat r = \sum p_y s_y$ with $s$ a softmax of $p/\tau$; $\partial\hat r/\partial p_y = s_y(1 + (p_y - \hat r)/\tau)$."""

    @staticmethod
    def forward(ctx: Any, probs: Tensor, tau: float) -> Tensor:
        shares = torch.softmax(probs / tau, dim=-1)
        soft = (probs * shares).sum(-1)
        ctx.save_for_backward(probs, shares, soft)
        ctx.tau = tau
        return soft

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        probs, shares, soft = ctx.saved_tensors
        slope = (probs - soft.unsqueeze(-1)).div_(ctx.tau).add_(1).mul_(shares)
        return slope.mul_(grad.unsqueeze(-1)), None


class _SoftCorrectness(torch.autograd.Function):
    r"""$\hat c$, which the rivals' logistic functions pull down and the label's own probability pushes up."""

    @staticmethod
    def forward(ctx: Any, probs: Tensor, index: Tensor, tau: float) -> Tensor:
        ahead = (probs - probs.gather(-1, index)).div_(tau).sigmoid_()
        soft = (1.5 - ahead.sum(-1)).clamp_min_(0)  # the class itself has margin 0 and counts ½ in the sum
        ctx.save_for_backward(ahead, index, soft)
        ctx.tau = tau
        return soft

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        ahead, index, soft = ctx.saved_tensors
        factor = (grad * (soft > 0)).div_(-ctx.tau).unsqueeze(-1)
        slope = (1 - ahead).mul_(ahead).mul_(factor)
        return slope.scatter_add_(-1, index, -slope.sum(-1, keepdim=True)), None, None


def _widened(probs: Tensor) -> Tensor:
    return probs.float() if probs.dtype in (torch.float16, torch.bfloat16) else probs
