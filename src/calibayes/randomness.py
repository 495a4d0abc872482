"""Seeds derived from a seed and a place, so that every draw can be repeated on its own."""

from __future__ import annotations

import hashlib
import operator
import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

_MPS = torch.backends.mps.is_available()

__all__ = ["derived_seed", "generator_for", "preserved_global_state", "seed_globally", "seeded"]


def derived_seed(seed: int, *place: int | str) -> int:
    """A seed in ``0 … 2**63 - 1`` that depends only on ``seed`` and every part of ``place``."""
    digest = hashlib.blake2b(repr((operator.index(seed), *place)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def generator_for(device: torch.device, seed: int, *place: int | str) -> torch.Generator:
    """A generator on ``device`` that starts at the derived seed."""
    return torch.Generator(device).manual_seed(derived_seed(seed, *place))


def seed_globally(seed: int, *place: int | str, everything: bool = False) -> None:
    """Seed PyTorch's global generators (dropout, samplers); with ``everything`` NumPy's and Python's too (augmentation)."""
    derived = derived_seed(seed, *place)
    # Not torch.manual_seed: without a GPU in use it records a traceback, which takes a millisecond.
    torch.default_generator.manual_seed(derived)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(derived)
    if _MPS:
        torch.mps.manual_seed(derived)
    if everything:
        np.random.seed(derived % 2**32)
        random.seed(derived)


@contextmanager
def preserved_global_state(device: torch.device) -> Iterator[None]:
    """Restore the caller's global generators at the end."""
    numpy_state, python_state = np.random.get_state(), random.getstate()
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        try:
            yield
        finally:
            np.random.set_state(numpy_state)
            random.setstate(python_state)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed PyTorch's global generator, and restore it at the end: for initial weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield
