"""The caller's function that looks at the posterior after every epoch."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from torch import Tensor

from calibayes.checks import is_real
from calibayes.errors import InvalidArgumentError
from calibayes.posterior.abstract_posterior import Posterior

__all__ = ["OnEpoch", "called"]

OnEpoch = Callable[[Posterior, int], Mapping[str, float] | bool | None]

_EXPECTED = "Expected `on_epoch` to return numbers by name, False to stop, or None"


def called(on_epoch: OnEpoch | None, posterior: Posterior, epoch: int) -> tuple[dict[str, float], bool]:
    """Call ``on_epoch``; returns the numbers that it gave, by name, and whether it asked to stop."""
    result: Any = None if on_epoch is None else on_epoch(posterior, epoch)
    if result is None:
        return {}, False
    if isinstance(result, bool | np.bool_):
        return {}, not result
    if not isinstance(result, Mapping):
        raise InvalidArgumentError(f"{_EXPECTED}, but after epoch {epoch} it returned {result!r}.")
    return {_name(name, epoch): _number(name, value, epoch) for name, value in result.items()}, False


def _name(name: object, epoch: int) -> str:
    if not isinstance(name, str):
        raise InvalidArgumentError(f"{_EXPECTED}, but after epoch {epoch} it returned {name!r} as a name. Use text.")
    return name


def _number(name: object, value: Any, epoch: int) -> float:
    if isinstance(value, Tensor | np.ndarray | np.generic) and math.prod(value.shape) == 1:
        value = value.item()
    if isinstance(value, bool) or is_real(value):
        return float(value)
    raise InvalidArgumentError(f"{_EXPECTED}, but after epoch {epoch} it returned {value!r} for {name!r}.")
