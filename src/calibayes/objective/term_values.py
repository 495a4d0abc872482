"""The values of the named terms of a loss."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar, final

from torch import Tensor

__all__ = ["NamedValues", "Terms"]

T = TypeVar("T")


class NamedValues(Generic[T]):
    """Values by name that are attributes too: ``terms.kl`` is ``terms.values["kl"]``."""

    values: dict[str, T]

    def __getattr__(self, name: str) -> T:
        # Asked for what is not an attribute; `values` itself is missing while a copy is being made.
        values = self.__dict__.get("values", {})
        if name not in values:
            known = ", ".join(values)
            raise AttributeError(f"{type(self).__name__} has no {name!r}; the terms are {known}.")
        found: T = values[name]
        return found


@final
@dataclass(frozen=True, eq=False)
class Terms(NamedValues[Tensor]):
    """The loss and what it is made of, before their weights; each by name is an attribute too.

    Iterating gives the total, then the values.

    Attributes:
        total: what is minimised.
        values: the mean loss, every term and ``"kl"`` by name; a term whose weight is zero is not computed, but zero.
    """

    total: Tensor
    values: dict[str, Tensor]

    def __iter__(self) -> Iterator[Tensor]:
        yield self.total
        yield from self.values.values()
