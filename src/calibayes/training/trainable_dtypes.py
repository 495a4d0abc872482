"""Check that weights have a type that can be trained."""

from __future__ import annotations

import torch

from calibayes.errors import InvalidArgumentError
from calibayes.posterior.abstract_posterior import Posterior

__all__ = ["check_full_precision"]


def check_full_precision(posterior: Posterior, instead: str) -> None:
    """Raise `InvalidArgumentError` if weights to be trained are of half precision; ``instead`` is what to do about it.

    Frozen weights may be: no step is taken on them.
    """
    for group in (group for member in posterior.members for group in member.groups):
        kind = group.mean().dtype
        if kind in (torch.float16, torch.bfloat16):
            raise InvalidArgumentError(
                f"Expected weights in full precision, but {group.layout.names[0][0]!r} is {kind}: steps of the size of a "
                f"learning rate are rounded away. {instead}"
            )
