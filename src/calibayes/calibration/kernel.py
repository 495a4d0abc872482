r"""The exact quadratic form of the Laplace kernel on scalars, in O(n log n) time and O(n) memory.

For confidences $r_i$ and coefficients $u_i$, all kernel calibration measures are

$$ q = u^\top K u = \sum_{ij} u_i u_j \, e^{-|r_i - r_j|/\gamma}. $$

Sorted by $r$, the kernel factorises on either side of the diagonal, $K_{kj} = e^{-z_k} e^{z_j}$ for $j < k$ with
$z = (r - \mathrm{mid})/\gamma$, so one sort and a prefix sum from the left and one from the right give $Ku$, and with it both
derivatives:

$$ \frac{\partial q}{\partial u} = 2Ku, \qquad
   \frac{\partial q}{\partial r_k} = -\frac{2}{\gamma} u_k \sum_j \operatorname{sign}(r_k - r_j) K_{kj} u_j . $$

The kernel is the covariance of a Markov process, so the form is also a sum of squares, which needs the left sums
$a_k = \sum_{j \le k} K_{kj} u_j$ alone and, unlike $\sum_k u_k (Ku)_k$, loses no digits where the form is near zero:

$$ q = a_n^2 + \sum_{k<n} \big(1 - e^{-2(z_{k+1} - z_k)}\big) \, a_k^2 . $$

For a batch of a hundred or so, the matrix of all pairs is less work than the sort; it is used where the inputs are float32,
whose digits sums in float64 keep.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from calibayes.device_precision import widest_float
from calibayes.errors import InvalidArgumentError

__all__ = ["kernel_features", "kernel_norm", "quadratic_form"]

# e^{±range/(2γ)} must stay within float64: for confidences in [0, 1], γ = 0.001 reaches e^{±500}.
_LARGEST_EXPONENT = 650.0
_FEW = 192  # examples: up to there all pairs are less work than sorting


def quadratic_form(scores: Tensor, coefficients: Tensor, width: float) -> Tensor:
    r"""$u^\top K u$ for the Laplace kernel, exact and differentiable in both arguments.

    Tied scores contribute nothing to each other's derivative, the mean of the two one-sided ones. The sums are taken in
    float64 whatever the inputs are (on the CPU for devices that have no float64).

    Args:
        scores: the confidences $r$, shape ``[..., n]``; leading axes are independent batches.
        coefficients: $u$, of the same shape.
        width: the kernel width $\gamma$.

    Examples:
        >>> r = torch.tensor([0.2, 0.9, 0.9])
        >>> quadratic_form(r, torch.tensor([1.0, -1.0, 1.0]), 0.4)  # the tied pair cancels
        tensor(1.)
    """
    value: Tensor = _QuadraticForm.apply(scores, coefficients, width)  # type: ignore[no-untyped-call]
    return value


def kernel_norm(scores: Tensor, coefficients: Tensor, width: float) -> Tensor:
    r"""$\sqrt{u^\top K u}$, with gradient zero where the value is zero.

    A norm below what rounding alone can make of zero, in the coefficients and in the sums, counts as zero: the quotient of
    two rounding errors is not a gradient.
    """
    value: Tensor = _KernelNorm.apply(scores, coefficients, width)  # type: ignore[no-untyped-call]
    return value


def kernel_features(scores: Tensor, coefficients: Tensor, width: float) -> Tensor:
    r"""A vector $\varphi(u)$, linear in $u$, with $\varphi(u) \cdot \varphi(v) = u^\top K v$, for scores in ascending order.

    For many coefficients ``[..., n]`` over the same scores ``[n]``, both float64, as in resampling: the form becomes a scalar
    product.

    Examples:
        >>> r, u = torch.tensor([0.2, 0.9], dtype=torch.float64), torch.tensor([1.0, -1.0], dtype=torch.float64)
        >>> bool((kernel_features(r, u, 0.4).square().sum() - quadratic_form(r, u, 0.4)).abs() < 1e-12)
        True
    """
    _check_spread(float(scores[-1] - scores[0]), width)
    rise = ((scores - 0.5 * (scores[0] + scores[-1])) / width).exp_()
    up_to = torch.cumsum(coefficients * rise, -1).div_(rise)
    steps = scores.diff().mul_(-2 / width).expm1_().neg_().sqrt_()
    return up_to.mul_(torch.cat((steps, steps.new_ones(1))))


def _check_spread(spread: float, width: float) -> None:
    if spread > 2 * width * _LARGEST_EXPONENT:
        raise InvalidArgumentError(
            f"Expected `kernel_width` to be at least {spread / (2 * _LARGEST_EXPONENT):.3g} for scores that spread over "
            f"{spread:.3g}, but got {width!r}."
        )


class _QuadraticForm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, coefficients: Tensor, width: float) -> Tensor:
        value, *derivatives = _solved(scores, coefficients, width, any(ctx.needs_input_grad[:2]))
        ctx.save_for_backward(*derivatives)
        return value

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        return *_pulled(ctx, 2 * grad), None


class _KernelNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, coefficients: Tensor, width: float) -> Tensor:
        form, *derivatives = _solved(scores, coefficients, width, any(ctx.needs_input_grad[:2]))
        rounding = torch.finfo(coefficients.dtype).eps + coefficients.shape[-1] * torch.finfo(torch.float64).eps
        value = form.sqrt()
        value = value * (value > coefficients.abs().sum(-1).mul_(rounding))
        ctx.save_for_backward(value, *derivatives)
        return value

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        value = ctx.saved_tensors[0]
        return *_pulled(ctx, grad / torch.where(value > 0, value, torch.inf)), None


def _pulled(ctx: Any, factor: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """The saved derivatives, those of half the form, times what comes from above."""
    of_scores, of_coefficients = ctx.saved_tensors[-2:]
    needs_r, needs_u, _ = ctx.needs_input_grad
    factor = factor.unsqueeze(-1)
    return factor * of_scores if needs_r else None, factor * of_coefficients if needs_u else None


def _solved(scores: Tensor, coefficients: Tensor, width: float, derivatives: bool) -> tuple[Tensor, ...]:
    """The form and, if they are wanted, half its derivatives with respect to scores and coefficients."""
    few = scores.shape[-1] <= _FEW and coefficients.dtype != torch.float64 and scores.device.type == "cpu"
    return (_by_matrix if few else _by_sorting)(scores, coefficients, width, derivatives)


def _by_matrix(scores: Tensor, coefficients: Tensor, width: float, derivatives: bool) -> tuple[Tensor, ...]:
    """The sum over all pairs, which for few examples is less work than sorting; float64 keeps all of float32's digits."""
    r, u = scores.double(), coefficients.double().unsqueeze(-1)
    apart = r.unsqueeze(-1) - r.unsqueeze(-2)
    kernel = apart.abs().mul_(-1 / width).exp_()
    kernel_times_u = kernel @ u
    value = (u * kernel_times_u).sum((-1, -2)).clamp_min_(0).to(coefficients)
    if not derivatives:
        return (value,)
    pull = (kernel.mul_(apart.sign_()) @ u).mul_(u).mul_(-1 / width)
    return value, pull.squeeze(-1).to(scores), kernel_times_u.squeeze(-1).to(coefficients)


def _by_sorting(scores: Tensor, coefficients: Tensor, width: float, derivatives: bool) -> tuple[Tensor, ...]:
    device = scores.device if widest_float(scores.device) == torch.float64 else torch.device("cpu")
    r, order = scores.to(device).sort(dim=-1)
    r, u = r.double(), coefficients.to(device).gather(-1, order).double()
    low, high = r[..., :1], r[..., -1:]
    _check_spread(float((high - low).amax()), width)
    rise = ((r - 0.5 * (low + high)) / width).exp_()
    fall = rise.reciprocal()
    left = _sums_before(u * rise).mul_(fall)
    gaps = r.diff(dim=-1)
    up_to = left + u
    value = _sum_of_squares(up_to, gaps * (-2 / width)).to(coefficients)
    if not derivatives:
        return (value,)
    right = _sums_before((u * fall).flip(-1)).flip(-1).mul_(rise)
    del r, rise, fall
    kernel_times_u = _unsorted(up_to.add_(right), order, coefficients)
    if not bool(gaps.all()):
        left = _strictly_before(left, gaps)
        right = _strictly_before(right.flip(-1), gaps.flip(-1)).flip(-1)
    pull = _unsorted(right.sub_(left).mul_(u).div_(width), order, scores)
    return value, pull, kernel_times_u


def _sums_before(terms: Tensor) -> Tensor:
    """Exclusive prefix sums, without the subtraction of the last term that would cancel digits."""
    sums = torch.zeros_like(terms)
    torch.cumsum(terms[..., :-1], -1, out=sums[..., 1:])
    return sums


def _sum_of_squares(up_to: Tensor, exponents: Tensor) -> Tensor:
    return up_to[..., -1].square() - up_to[..., :-1].square().mul_(exponents.expm1_()).sum(-1)


def _strictly_before(left: Tensor, gaps: Tensor) -> Tensor:
    """Every tied run takes the left sum of its first member: what lies strictly below it."""
    first = torch.zeros(left.shape, dtype=torch.long, device=left.device)
    index = torch.arange(1, left.shape[-1], device=left.device)
    torch.mul(index, gaps != 0, out=first[..., 1:])
    return left.gather(-1, first.cummax(-1).values)


def _unsorted(values: Tensor, order: Tensor, like: Tensor) -> Tensor:
    values = values.to(like.dtype)
    return torch.empty_like(values).scatter_(-1, order, values).to(like.device)
