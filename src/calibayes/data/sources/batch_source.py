"""The data that training runs through: batches of examples, and sources that make them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol, runtime_checkable

from torch import Tensor

from calibayes.distributed import ALONE, Processes

__all__ = ["Batch", "HasSource", "Source"]


class Batch(NamedTuple):
    """Examples that are run through together.

    Attributes:
        inputs: a tensor, or a tuple or dict of tensors.
        targets: class indices.
        total: how many examples all processes together have in this batch; these here are one process's.
        weights: how much each example counts; one on average over all the data. ``None`` if all count alike.
    """

    inputs: Any
    targets: Tensor
    total: int
    weights: Tensor | None = None


class Source(Protocol):
    """Data that training can run through: ``size`` examples, in an order that depends on seed and epoch alone.

    Batches are those of all ``processes`` together; each gets its own rows, and where it can be, only those are read.
    """

    size: int

    def steps(self) -> int:
        """Return the number of batches in an epoch."""
        ...

    def epoch(self, seed: int, epoch: int, skip: int = 0, *, processes: Processes = ALONE) -> Iterator[Batch]:
        """The batches of an epoch, without the first ``skip``."""
        ...

    def ordered(self, *, processes: Processes = ALONE) -> Iterator[Batch]:
        """All batches in the data's own order."""
        ...

    def draw(self, count: int, seed: int, *place: int | str, processes: Processes = ALONE) -> Batch:
        """``count`` examples at random (with repetition only where there are not enough)."""
        ...


@runtime_checkable
class HasSource(Protocol):
    """Data that knows best how to make batches of itself."""

    def source(self, batch_size: int, name: str) -> Source:
        """Itself as a `Source`; ``name`` is what error messages call it."""
        ...
