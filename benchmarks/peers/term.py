"""(2) The calibration term, forward and backward from logits, over a bare sort; time and peak memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from subprocess import TimeoutExpired

import torch
from torch import Tensor

import calibayes as cb
from benchmarks.peers import netcal
from benchmarks.peers.contest import Entry, Row, contest
from benchmarks.timing import ChildFailedError, peak_memory

__all__ = ["BOUND", "SECONDS", "TERMS", "backward", "term_rows"]

Term = Callable[[Tensor, Tensor], Tensor]
BOUND = 6_000_000_000
SECONDS = 60.0
_CLASSES = 10

_SETUP = """
import torch
from benchmarks.peers.term import backward
torch.set_num_threads({threads})
backward({label!r}, 16)()
call = backward({label!r}, {n})
"""


def _ours(measure: cb.WMMCE | cb.MMCE) -> Term:
    return lambda logits, targets: measure(logits.softmax(-1), targets)


TERMS: dict[str, Callable[[], Term]] = {
    "calibayes WMMCE": lambda: _ours(cb.WMMCE()),
    "calibayes WMMCE, hard scores": lambda: _ours(cb.WMMCE(mode="hard")),
    "calibayes MMCE": lambda: _ours(cb.MMCE()),
    "netcal MMCEPenalty": netcal.penalty,
}


def term_rows(n: int, *, repeats: int) -> list[Row]:
    """Terms of n examples over a sort of n numbers."""
    numbers = torch.rand(n, generator=torch.Generator().manual_seed(0))
    contenders = {label: partial(_ready, label, n) for label in TERMS}
    return contest(f"torch.sort of {n:,} numbers (the limit)", numbers.sort, contenders, repeats=repeats)


def backward(label: str, n: int) -> Callable[[], float]:
    """Value and gradient of a term for n examples of ten classes."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(n, _CLASSES, generator=generator, requires_grad=True)
    targets = torch.randint(_CLASSES, (n,), generator=generator)
    term = TERMS[label]()

    def call() -> float:
        value = term(logits, targets)
        torch.autograd.grad(value, logits)
        return float(value.detach())

    return call


def _ready(label: str, n: int) -> Entry:
    """The call, once another process has shown that it stays within the bounds."""
    try:
        memory = peak_memory(
            _SETUP.format(label=label, n=n, threads=torch.get_num_threads()), "call()", bound=BOUND, seconds=SECONDS
        )
    except TimeoutExpired:
        raise TimeoutError(f"more than {SECONDS:.0f} s") from None
    except ChildFailedError as error:
        if "allocate" in str(error) or "MemoryError" in str(error):
            raise MemoryError(f"more than {BOUND / 1e9:.0f} GB") from None
        raise
    call = backward(label, n)
    value = call()
    return Entry(call, f"{memory / 1e6:8,.1f} MB  value {value:.4f}", {"bytes": memory, "value": value})
