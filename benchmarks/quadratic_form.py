"""(b) The quadratic form, forward and backward: over a bare sort, over the n×n form, and the whole measure beside it."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.timing import Timing, interleaved, peak_memory
from calibayes.calibration import quadratic_form, wmmce

__all__ = ["SIZES", "bytes_per_example", "measure"]

SIZES = (100, 1_000, 10_000, 100_000, 1_000_000)
_LARGEST_PAIRWISE = 10_000
_WIDTH = 0.4

_SETUP = """
import torch
from calibayes.calibration import quadratic_form
torch.set_num_threads(2)
def run(n):
    r, u = torch.rand(n, requires_grad=True), torch.randn(n, requires_grad=True)
    def go():
        quadratic_form(r, u, 0.4).backward()
    return go
run(1000)()
go = run({n})
"""


def measure(n: int) -> dict[str, Timing]:
    """Times for n examples."""
    torch.manual_seed(0)
    r, u = torch.rand(n, requires_grad=True), torch.randn(n, requires_grad=True)
    logits = torch.randn(n, 10, requires_grad=True)
    targets = torch.randint(10, (n,))
    runs: dict[str, Callable[[], object]] = {
        "torch.sort": lambda: r.detach().sort(),
        "quadratic form": lambda: _backward(quadratic_form(r, u, _WIDTH), r, u),
        "whole wmmce": lambda: _backward(wmmce(logits.softmax(-1), targets), logits),
    }
    if n <= _LARGEST_PAIRWISE:
        runs["n×n form"] = lambda: _backward(_pairwise(r, u), r, u)
    return interleaved(runs, repeats=9 if n >= 100_000 else 21)


def bytes_per_example(n: int = 10_000_000) -> float:
    """Peak memory of the quadratic form, forward and backward, beyond its inputs."""
    return peak_memory(_SETUP.format(n=n), "go()") / n


def _pairwise(r: Tensor, u: Tensor) -> Tensor:
    kernel = torch.exp(-(r[:, None] - r[None, :]).abs() / _WIDTH)
    value: Tensor = u @ kernel @ u
    return value


def _backward(value: Tensor, *inputs: Tensor) -> None:
    torch.autograd.grad(value, inputs)
