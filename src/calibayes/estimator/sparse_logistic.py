"""Logistic regression on a sparse matrix with many columns, such as TF-IDF, which is never made dense as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from calibayes.crossfit import ChosenClassifier, CrossFit, Fold, choose_classifier
from calibayes.methods import Examples
from calibayes.methods.logistic_regression import LinearLearner, LogisticRegressionSettings
from calibayes.posterior import Ensemble, Point

__all__ = ["SparseColumns", "choose_on_sparse", "dense_blocks"]

_PENALTIES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)  # inverse strengths, from the strongest
_CELLS = 2**24  # of a dense block


@dataclass(frozen=True)
class SparseColumns:
    """One number that all values are divided by, so that a row has a length of about 1, as penalties expect."""

    length: float

    @classmethod
    def fit(cls, x: Any) -> SparseColumns:
        """Learn the typical length of a row."""
        lengths = np.sqrt(x.multiply(x).sum(axis=1))
        return cls(float(np.mean(lengths)) or 1.0)

    def rows(self, x: Any) -> Any:
        """The rows, still sparse."""
        return (x / self.length).astype(np.float32).tocsr()


def dense_blocks(x: Any) -> Iterator[Tensor]:
    """The rows of a sparse matrix, a dense block at a time."""
    size = max(1, _CELLS // x.shape[1])
    for start in range(0, x.shape[0], size):
        yield torch.from_numpy(x[start : start + size].toarray())


def choose_on_sparse(x: Any, targets: Tensor, weights: Tensor | None, classes: int, folds: Sequence[Fold]) -> ChosenClassifier:
    """Cross-fit logistic regression on sparse rows, with the scaling of its ensemble; members take dense rows."""
    learner = LinearLearner(_SparseRows(x), LogisticRegressionSettings(penalties=_PENALTIES))
    examples = Examples(torch.arange(x.shape[0])[:, None], targets, weights)
    chosen = choose_classifier([CrossFit(learner, examples, classes, folds)], budget=np.inf)
    layers = [member.network().get_submodule("1") for member in chosen.posterior.members]
    return replace(chosen, posterior=Ensemble([Point(layer).eval() for layer in layers]))


class _SparseRows(nn.Module):
    """The rows of a matrix by their numbers; copies of the network share the matrix."""

    def __init__(self, rows: Any) -> None:
        super().__init__()
        self.rows = rows

    def __deepcopy__(self, memo: Any) -> _SparseRows:
        return self

    def forward(self, places: Tensor) -> Tensor:
        """Dense rows ``[n, columns]`` of numbers ``[n, 1]``."""
        return torch.from_numpy(self.matrix(places).toarray())

    def matrix(self, places: Tensor) -> Any:
        """The same rows, sparse."""
        return self.rows[places[:, 0].cpu().numpy()]
