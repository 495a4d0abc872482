r"""The exact quadratic form of the Laplace kernel on scalars, in O(n log n) time and O(n) memory.

For confidences $r_i$ and coefficients $u_i$, all kernel calibration measures are

$$ q = u^\top K u = \sum_{ij} u_i u_j \, e^{-|r_i - r_j|/\gamma}. $$

Sorted by $r$, the kernel factorises on either side of the diagonal, $K_{kj} = e^{-z_k} e^{z_j}$ for $j < k$ with
$z = (r - \mathrm{mid})/\gamma$, so one sort and a prefix sum from the left and one from the right give $Ku$, and with it the
value and both derivatives:

$$ \frac{\partial q}{\partial u} = 2Ku, \qquad
   \frac{\partial q}{\partial r_k} = -\frac{2}{\gamma} u_k \sum_j \operatorname{sign}(r_k - r_j) K_{kj} u_j . $$
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from calibayes.errors import InvalidArgumentError

__all__ = ["kernel_norm", "quadratic_form"]

# e^{±range/(2γ)} must stay within float64: for confidences in [0, 1], γ = 0.001 reaches e^{±500}.
_LARGEST_EXPONENT = 650.0
_WITHOUT_FLOAT64 = {"mps"}


def quadratic_form(scores: Tensor, coefficients: Tensor, width: float) -> Tensor:
    r"""$u^\top K u$ for the Laplace kernel, exact and differentiable in both arguments.

    Tied scores contribute nothing to each other's derivative, the mean of the two one-sided ones. The sums are taken in
    float64 whatever the inputs are (on the CPU for devices that have no float64).

    Args:
        scores: the confidences $r$, shape ``[..., n]``; leading axes are independent batches.
        coefficients: $u$, of the same shape.
        width: the kernel width $\gamma$.

    Example:
        >>> r = torch.tensor([0.2, 0.9, 0.9])
        >>> quadratic_form(r, torch.tensor([1.0, -1.0, 1.0]), 0.4)  # the tied pair cancels
        tensor(1.)
    """
    value: Tensor = _QuadraticForm.apply(scores, coefficients, width)  # type: ignore[no-untyped-call]
    return value


def kernel_norm(scores: Tensor, coefficients: Tensor, width: float) -> Tensor:
    r"""$\sqrt{u^\top K u}$, with gradient zero where the value is zero.

    A form below the rounding error of its own sums counts as zero: the quotient of two rounding errors is no gradient.
    """
    form = quadratic_form(scores, coefficients, width)
    noise = torch.finfo(torch.float64).eps * coefficients.detach().double().square().sum(-1).to(form.dtype)
    above = form.detach() > noise
    return torch.where(above, torch.where(above, form, 1.0).sqrt(), 0.0)


class _QuadraticForm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, coefficients: Tensor, width: float) -> Tensor:
        device = torch.device("cpu") if scores.device.type in _WITHOUT_FLOAT64 else scores.device
        r, order = scores.to(device).double().sort(dim=-1)
        u = coefficients.to(device).double().gather(-1, order)
        z = (r - 0.5 * (r[..., :1] + r[..., -1:])) / width
        if float(z.detach().amax()) > _LARGEST_EXPONENT:
            raise InvalidArgumentError(
                f"Expected `kernel_width` to be at least {width * float(z.amax()) / _LARGEST_EXPONENT:.3g} for scores "
                f"that spread over {float((r[..., -1] - r[..., 0]).amax()):.3g}, but got {width!r}."
            )
        rise = z.exp_()
        fall = rise.reciprocal()
        left = _before((u * rise).cumsum(-1)).mul_(fall)
        value = (u * left).sum(-1).mul_(2).add_((u * u).sum(-1))
        if any(ctx.needs_input_grad[:2]):
            right = _before((u * fall).flip(-1).cumsum(-1)).flip(-1).mul_(rise)
            del rise, fall
            grad_u = (left + right).add_(u).mul_(2)
            grad_u = torch.empty_like(grad_u).scatter_(-1, order, grad_u)
            slope = _strictly_before(left, r).sub_(_strictly_after(right, r)).mul_(u).mul_(-2 / width)
            grad_r = torch.empty_like(slope).scatter_(-1, order, slope)
            ctx.save_for_backward(grad_r.to(scores), grad_u.to(coefficients))
        return value.to(coefficients)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        grad_r, grad_u = ctx.saved_tensors
        needs_r, needs_u, _ = ctx.needs_input_grad
        grad = grad.unsqueeze(-1)
        return grad * grad_r if needs_r else None, grad * grad_u if needs_u else None, None


def _before(sums: Tensor) -> Tensor:
    """Inclusive prefix sums made exclusive by a shift (subtracting the last term would cancel digits)."""
    shifted = torch.zeros_like(sums)
    shifted[..., 1:] = sums[..., :-1]
    return shifted


def _strictly_before(left: Tensor, r: Tensor) -> Tensor:
    """Every tied run takes the left sum of its first member: what lies strictly below it."""
    starts = r[..., 1:] != r[..., :-1]
    if bool(starts.all()):
        return left.clone()
    index = torch.arange(r.shape[-1], device=r.device).expand(r.shape)
    first = torch.zeros_like(index)
    first[..., 1:] = torch.where(starts, index[..., 1:], 0)
    return left.gather(-1, first.cummax(-1).values)


def _strictly_after(right: Tensor, r: Tensor) -> Tensor:
    return _strictly_before(right.flip(-1), r.flip(-1)).flip(-1)
