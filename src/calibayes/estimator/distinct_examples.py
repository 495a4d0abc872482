"""Rows of a table as examples: a repeated row is one example with a count."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from calibayes.estimator.validation_split import held_out

__all__ = ["Examples", "distinct"]

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]


class Examples(NamedTuple):
    """Examples for training."""

    x: npt.NDArray[Any]  # inputs, one row each
    y: Indices  # class indices
    counts: Floats  # how many times each row occurs
    weights: Floats  # in the loss: ``counts`` times the weight of the class

    @property
    def data(self) -> tuple[Any, ...]:
        """The data for `calibayes.fit`: inputs, classes, and weights if they differ."""
        same = bool((self.weights == self.weights[0]).all())
        return (self.x, self.y) if same else (self.x, self.y, self.weights)

    @property
    def rows_per_count(self) -> float:
        r"""The factor that turns $\beta/\text{rows}$ into $\beta/|D|$, where $|D|$ is the sum of the counts.

        If that is less than the number of rows, weights are only ratios, and $|D|$ is the number of rows.
        """
        return min(1.0, len(self.y) / float(self.counts.sum()))

    def split(self, fraction: float, seed: int) -> tuple[Examples, Examples]:
        """Training and validation part, with about ``fraction`` of each class, and never all of it."""
        held = held_out(self.x, self.y, self.counts, fraction, seed)
        return self._part(self.counts - held), self._part(held)

    def _part(self, counts: Floats) -> Examples:
        positive = counts > 0
        weights = counts * (self.weights / self.counts)
        return Examples(self.x[positive], self.y[positive], counts[positive], weights[positive])


def distinct(x: Floats, y: Indices, weights: Floats) -> Examples:
    """The distinct rows, sorted, each with the sum of its weights; those of weight zero are left out.

    So a weight of 2 is exactly a row twice, and the order of the rows does not matter.

    Examples:
        >>> x = np.array([[2.0], [1.0], [2.0], [3.0]])
        >>> examples = distinct(x, np.array([1, 0, 1, 0]), np.array([1.0, 1.0, 2.0, 0.0]))
        >>> examples.x[:, 0].tolist(), examples.y.tolist(), examples.counts.tolist()
        ([1.0, 2.0], [0, 1], [1.0, 3.0])
    """
    positive = weights > 0
    rows, index = np.unique(np.column_stack([x[positive], y[positive]]), axis=0, return_inverse=True)
    counts = np.bincount(index.reshape(-1), weights=weights[positive]).astype(np.float64)
    return Examples(rows[:, :-1], rows[:, -1].astype(np.intp), counts, counts)
