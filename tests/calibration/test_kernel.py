"""The quadratic form against the n×n matrix that it stands for."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from calibayes.calibration import quadratic_form
from calibayes.calibration.kernel import kernel_norm
from calibayes.errors import InvalidArgumentError

WIDTHS = [0.001, 0.01, 0.4, 10.0]


def oracle(r: Tensor, u: Tensor, width: float) -> Tensor:
    # The derivative of |x| at 0 is 0 in torch, which is the rule for tied pairs.
    kernel = torch.exp(-(r.unsqueeze(-1) - r.unsqueeze(-2)).abs() / width)
    return torch.einsum("...i,...ij,...j", u, kernel, u)


def assert_agrees(r: Tensor, u: Tensor, width: float, rtol: float = 1e-10) -> None:
    """Value and both gradients, each within ``rtol`` of its own largest entry and of every entry that matters."""
    leading = torch.rand(r.shape[:-1], dtype=torch.float64) + 0.5
    result: list[Tensor | None] = []
    expected: list[Tensor | None] = []
    for function, results in ((quadratic_form, result), (oracle, expected)):
        r_, u_ = r.clone().requires_grad_(), u.clone().requires_grad_()
        value = function(r_, u_, width)
        (value.double() * leading).sum().backward()
        results += [value.detach(), r_.grad, u_.grad]
    for ours, theirs in zip(result, expected, strict=True):
        assert ours is not None
        assert theirs is not None
        assert ours.dtype == r.dtype
        torch.testing.assert_close(ours, theirs, rtol=rtol, atol=rtol * 1e-2 * float(theirs.abs().max()))


def normals(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def uniforms(*shape: int) -> Tensor:
    return torch.rand(*shape, dtype=torch.float64)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("n", [1, 2, 3, 128, 700])
def test_equals_the_matrix_form(n: int, width: float) -> None:
    assert_agrees(uniforms(n), normals(n) / n, width)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_whole_range_of_confidences(width: float) -> None:
    r = torch.cat([torch.tensor([0.0, 1.0, 1.0, 0.0], dtype=torch.float64), uniforms(60)])
    assert_agrees(r, normals(64), width)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("levels", [1, 2, 5, 40])
def test_ties(levels: int, width: float) -> None:
    assert_agrees((uniforms(150) * levels).floor() / levels, normals(150), width)


@pytest.mark.parametrize("width", WIDTHS)
def test_leading_axes_are_independent_batches(width: float) -> None:
    r, u = uniforms(2, 3, 50), normals(2, 3, 50)
    r[0, 1] = (r[0, 1] * 4).round() / 4  # ties in one batch only
    assert_agrees(r, u, width)
    together = quadratic_form(r, u, width)
    for i in range(2):
        for j in range(3):
            torch.testing.assert_close(together[i, j], quadratic_form(r[i, j], u[i, j], width), rtol=1e-12, atol=0)


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(-3, 3)), min_size=1, max_size=12),
    st.sampled_from(WIDTHS),
)
@settings(max_examples=60)
def test_any_small_batch(pairs: list[tuple[int, int]], width: float) -> None:
    r = torch.tensor([score / 6 for score, _ in pairs], dtype=torch.float64)
    u = torch.tensor([float(coefficient) for _, coefficient in pairs], dtype=torch.float64)
    assert_agrees(r, u, width)


def test_tied_examples_do_not_move_each_other() -> None:
    r = torch.full((20,), 0.7, dtype=torch.float64, requires_grad=True)
    u = normals(20)
    value = quadratic_form(r, u, 0.4)
    value.backward()
    assert float(value.detach()) == pytest.approx(float(u.sum()) ** 2, rel=1e-12)
    assert r.grad is not None
    assert not r.grad.any()


def test_one_example() -> None:
    r = torch.tensor([0.3], requires_grad=True)
    u = torch.tensor([-2.0], requires_grad=True)
    value = quadratic_form(r, u, 0.4)
    value.backward()
    assert (value.item(), r.grad, u.grad) == (4.0, torch.zeros(1), torch.tensor([-4.0]))


@pytest.mark.parametrize("width", [0.01, 0.4, 10.0])
def test_gradcheck(width: float) -> None:
    # Finite differences need distinct scores, further apart than the step.
    r = (torch.randperm(12).double() / 12 + 0.01).reshape(2, 6).requires_grad_()
    u = normals(2, 6).requires_grad_()
    assert torch.autograd.gradcheck(lambda r, u: quadratic_form(r, u, width), (r, u), eps=1e-7, atol=1e-5)


@pytest.mark.parametrize("needs_r", [True, False])
def test_gradient_of_one_argument_alone(needs_r: bool) -> None:
    r, u = uniforms(30), normals(30)
    ours = [r.clone().requires_grad_(needs_r), u.clone().requires_grad_(not needs_r)]
    theirs = [r.clone().requires_grad_(needs_r), u.clone().requires_grad_(not needs_r)]
    quadratic_form(ours[0], ours[1], 0.4).backward()
    oracle(theirs[0], theirs[1], 0.4).backward()
    for a, b in zip(ours, theirs, strict=True):
        assert (a.grad is None) == (b.grad is None)
        if a.grad is not None:
            torch.testing.assert_close(a.grad, b.grad, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("width", WIDTHS)
def test_order_does_not_matter(width: float) -> None:
    r, u = (uniforms(90) * 30).round() / 30, normals(90)
    order = torch.randperm(90)
    torch.testing.assert_close(quadratic_form(r[order], u[order], width), quadratic_form(r, u, width), rtol=1e-12, atol=0)


@pytest.mark.parametrize(("dtype", "rtol"), [(torch.float32, 3e-7), (torch.float16, 1e-3), (torch.bfloat16, 8e-3)])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("shape", [(300,), (128,), (7, 50)])  # sorted, and few enough for all pairs
def test_low_precision_loses_only_its_own_last_digit(
    shape: tuple[int, ...], dtype: torch.dtype, rtol: float, width: float
) -> None:
    r, u = (uniforms(*shape) * 100).round().div(100).to(dtype), normals(*shape).to(dtype)  # with ties
    value = quadratic_form(r, u, width)
    assert value.dtype == dtype
    torch.testing.assert_close(value.double(), oracle(r.double(), u.double(), width), rtol=rtol, atol=0)
    low = [r.clone().requires_grad_(), u.clone().requires_grad_()]
    wide = [r.double().requires_grad_(), u.double().requires_grad_()]
    quadratic_form(low[0], low[1], width).sum().backward()
    oracle(wide[0], wide[1], width).sum().backward()
    for a, b in zip(low, wide, strict=True):
        assert a.grad is not None
        assert b.grad is not None
        assert a.grad.dtype == dtype
        torch.testing.assert_close(a.grad.double(), b.grad, rtol=2 * rtol, atol=rtol * float(b.grad.abs().max()))


@pytest.mark.parametrize("width", [0.001, 0.4, 10.0])
def test_a_million_float32_examples_with_many_ties(width: float) -> None:
    # On a grid of levels the form is that of the sums over each level, a 500×500 matrix.
    n, levels = 10**6, 500
    place = torch.randint(levels, (n,))
    grid = 0.5 + 0.5 * torch.arange(levels) / levels
    u = ((torch.rand(n) < grid[place]).float() - grid[place]) / n
    r = grid[place].requires_grad_()
    u.requires_grad_()
    sums = torch.zeros(levels, dtype=torch.float64).index_add_(0, place, u.detach().double())
    exact = grid.double()
    value = quadratic_form(r, u, width)
    value.backward()
    expected = oracle(exact, sums, width)
    assert float(value.detach()) == pytest.approx(float(expected), rel=1e-6)
    kernel = torch.exp(-(exact[:, None] - exact).abs() / width)
    assert u.grad is not None
    assert r.grad is not None
    torch.testing.assert_close(u.grad.double(), (2 * kernel @ sums)[place], rtol=1e-6, atol=1e-13)
    pull = (torch.sign(exact[:, None] - exact) * kernel) @ sums
    torch.testing.assert_close(r.grad.double(), -2 / width * u.detach().double() * pull[place], rtol=1e-6, atol=1e-17 / width)


def test_a_form_near_zero_keeps_its_digits() -> None:
    # The terms are near 1 and cancel down to 1e-20: a difference of sums would leave their rounding errors, near 1e-16.
    r = torch.full((3,), 0.8, dtype=torch.float64)
    u = torch.tensor([1.0, -2.0, 1.0 + 2.0**-33], dtype=torch.float64)
    assert float(quadratic_form(r, u, 0.4)) == pytest.approx(2.0**-66, rel=1e-9)


def test_never_negative() -> None:
    u = normals(200, 50)
    u -= u.mean(-1, keepdim=True)
    assert bool((quadratic_form(0.7 + 1e-9 * uniforms(200, 50), u, 10.0) >= 0).all())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("n", [3, 10, 1000])
def test_norm_of_what_is_zero_but_for_rounding(dtype: torch.dtype, n: int) -> None:
    # One example against n others of the same score: the sum is zero in mathematics, not in floating point.
    r = torch.full((n + 1,), 0.6, dtype=dtype, requires_grad=True)
    u = torch.tensor([0.3] + [-0.3 / n] * n, dtype=dtype).requires_grad_()
    norm = kernel_norm(r, u, 0.4)
    norm.backward()
    assert norm.item() == 0.0
    for leaf in (r, u):
        assert leaf.grad is not None
        assert not leaf.grad.any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradient_of_the_norm_is_bounded_by_one(dtype: torch.dtype) -> None:
    # |(Ku)_k| ≤ √(uᵀKu) by Cauchy and Schwarz, however near the norm is to zero.
    for power in range(2, 17):
        r = (0.6 + 10.0**-power * torch.rand(400, 20, dtype=torch.float64)).to(dtype)
        u = torch.randn(400, 20, dtype=dtype)
        u = (u - u.mean(-1, keepdim=True)).requires_grad_()
        kernel_norm(r, u, 0.4).sum().backward()
        assert u.grad is not None
        assert bool(u.grad.isfinite().all())
        # One half is rounding's share where the norm is just above it.
        assert float(u.grad.abs().max()) <= 1.5


def test_too_small_a_width_is_named() -> None:
    r = torch.tensor([0.0, 1.0], dtype=torch.float64)
    with pytest.raises(InvalidArgumentError, match=r"at least 0\.000769 .* spread over 1, but got 0\.0005"):
        quadratic_form(r, torch.ones(2, dtype=torch.float64), 0.0005)
    # What counts is the spread within a batch.
    apart = torch.tensor([[0.0, 0.01], [0.99, 1.0]], dtype=torch.float64)
    assert_agrees(apart, torch.ones(2, 2, dtype=torch.float64), 0.0005)
