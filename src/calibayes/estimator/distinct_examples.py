"""Rows of a table as examples: the same row twice is one example that counts for two."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from calibayes.estimator.validation_split import held_out

__all__ = ["Examples", "distinct"]

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]


class Examples(NamedTuple):
    """Examples for training.

    Attributes:
        x: inputs, one row each.
        y: class indices.
        counts: how many times each is there.
        weights: how much each counts in the loss: ``counts`` times the weight of its class.
    """

    x: npt.NDArray[Any]
    y: Indices
    counts: Floats
    weights: Floats

    @property
    def data(self) -> tuple[Any, ...]:
        """Return the data as `calibayes.fit` takes them: inputs, classes, and weights if they differ."""
        alike = bool((self.weights == self.weights[0]).all())
        return (self.x, self.y) if alike else (self.x, self.y, self.weights)

    @property
    def rows_per_count(self) -> float:
        r"""The factor that turns $\beta/\text{rows}$ into $\beta/|D|$, where $|D|$ counts an example as often as it is there.

        Weights that add up to less than the number of rows say nothing but ratios: then $|D|$ is the number of rows.
        """
        return min(1.0, len(self.y) / float(self.counts.sum()))

    def split(self, fraction: float, seed: int) -> tuple[Examples, Examples]:
        """Training and validation part: about ``fraction`` of each class is for validation, and never all of it."""
        held = held_out(self.x, self.y, self.counts, fraction, seed)
        return self._part(self.counts - held), self._part(held)

    def _part(self, counts: Floats) -> Examples:
        """Fewer of each; those of which none is left are no examples."""
        there = counts > 0
        weights = counts * (self.weights / self.counts)
        return Examples(self.x[there], self.y[there], counts[there], weights[there])


def distinct(x: Floats, y: Indices, weights: Floats) -> Examples:
    """The different rows in an order of their own, each with the sum of its weights; those of weight zero are no examples.

    So a weight of 2 is a row twice, to the last bit, and the order of the rows does not matter.

    Examples:
        >>> x = np.array([[2.0], [1.0], [2.0], [3.0]])
        >>> found = distinct(x, np.array([1, 0, 1, 0]), np.array([1.0, 1.0, 2.0, 0.0]))
        >>> found.x[:, 0].tolist(), found.y.tolist(), found.counts.tolist()
        ([1.0, 2.0], [0, 1], [1.0, 3.0])
    """
    there = weights > 0
    rows, index = np.unique(np.column_stack([x[there], y[there]]), axis=0, return_inverse=True)
    counts = np.bincount(index.reshape(-1), weights=weights[there]).astype(np.float64)
    return Examples(rows[:, :-1], rows[:, -1].astype(np.intp), counts, counts)
