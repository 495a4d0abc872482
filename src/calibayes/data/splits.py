"""A data set in three parts."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

__all__ = ["Splits"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Splits:
    """A data set in three disjoint parts, each a pair ``(x, y)`` of tensors with one row per example.

    Attributes:
        train: to learn the weights from.
        validation: to choose settings on.
        test: to report results on, once.
        classes: the name of each class, in the order of the labels.
    """

    train: tuple[Tensor, Tensor]
    validation: tuple[Tensor, Tensor]
    test: tuple[Tensor, Tensor]
    classes: tuple[str, ...]
