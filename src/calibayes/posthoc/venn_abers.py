"""Venn–Abers scaling: isotonic regression that is told both labels in turn, and says how far they are apart."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, final, overload

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from calibayes.metrics.prediction_arrays import Array, Predictions
from calibayes.posthoc.abstract_scaling import Scaling
from calibayes.posthoc.two_class import check_two_classes, log_odds, one_class_warning
from calibayes.predictive import Predictive

__all__ = ["VennAbersScaling"]

_STEP = 2.0**-30


@final
class VennAbersScaling(Scaling):
    r"""Put every prediction between two isotonic fits: for two classes; never 0 or 1, and its interval tells what is unknown.

    To predict for $x$, isotonic regression is fitted twice on the held-out examples and $x$ itself, with label 0 and with
    label 1. Its values there are $p_0 \le p_1$: one of the two is calibrated, if all examples come from one distribution.
    `transform` gives $p = p_1 / (1 - p_0 + p_1)$, which minimises the larger of its two regrets in NLL, and `interval` both.
    All fits are computed at once in $O(n \log n)$. See Vovk, Petej and Fedorova, "Large-scale probabilistic predictors with
    and without guarantees of validity" (2015, https://arxiv.org/abs/1511.00213).

    Examples:
        >>> scaling = VennAbersScaling().fit(torch.tensor([0.2, 0.4, 0.6, 0.8]), torch.tensor([0, 1, 0, 1]))
        >>> scaling.transform(torch.tensor([0.1, 0.5, 0.9]))
        tensor([0.3333, 0.5000, 0.6667])
        >>> scaling.interval(torch.tensor([0.1, 0.5, 0.9]))
        (tensor([0.0000, 0.3333, 0.5000]), tensor([0.5000, 0.6667, 1.0000]))
    """

    _curves: tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]] | None = None  # scores, p0 and p1 at each

    def __repr__(self) -> str:
        shown = "not fitted" if self._curves is None else f"{len(self._curves[0])} scores"
        return f"VennAbersScaling({shown})"

    @overload
    def interval(self, probs: Tensor | Predictive, *, logits: bool = False) -> tuple[Tensor, Tensor]: ...

    @overload
    def interval(self, probs: npt.NDArray[Any], *, logits: bool = False) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]: ...

    def interval(self, probs: Array | Predictive, *, logits: bool = False) -> tuple[Array, Array]:
        """The probabilities $p_0$ and $p_1$ of class 1, shape ``[n]``, of the kind of ``probs``.

        Args:
            probs: class probabilities as in `transform`.
            logits: ``probs`` are logits.
        """
        values = self._values(probs, logits)
        low, high = self._bounds(values, logits)
        given = probs.probs if isinstance(probs, Predictive) else probs
        if isinstance(given, Tensor):
            return low.to(given.device, values.dtype), high.to(given.device, values.dtype)
        return low.numpy().astype(given.dtype), high.numpy().astype(given.dtype)

    @property
    def curves(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
        """The scores of the held-out examples in rising order, and $p_0$ and $p_1$ at each."""
        return self._known(self._curves)

    @staticmethod
    def rounded(odds: Tensor) -> Tensor:
        """The scores of log-odds: only their order counts, and what differs by rounding alone is the same."""
        return (odds / _STEP).round() * _STEP

    def _fit(self, predictions: Predictions, logits: bool) -> str | None:
        check_two_classes(predictions, "VennAbersScaling")
        scores, group = np.unique(_scores(predictions.probs, logits), return_inverse=True)
        of_one = np.bincount(group, (predictions.mass * predictions.targets).numpy())
        of_both = np.bincount(group, predictions.mass.numpy())
        high = _with_a_one(of_both, of_one)
        low = 1 - _with_a_one(of_both[::-1], (of_both - of_one)[::-1])[::-1]
        self._curves = scores, low, high
        return one_class_warning(predictions, "one end of every interval is at 0 or 1")

    def _scaled(self, values: Tensor, logits: bool) -> Tensor:
        low, high = self._bounds(values, logits)
        total = 1 - low + high
        return torch.stack(((1 - low) / total, high / total), -1)

    def _bounds(self, values: Tensor, logits: bool) -> tuple[Tensor, Tensor]:
        known, low, high = self.curves
        scores = _scores(values, logits)
        # Between two known scores, a 0 joins the one below and a 1 the one above.
        below, above = np.searchsorted(known, scores, side="right"), np.searchsorted(known, scores, side="left")
        return torch.from_numpy(np.append(0.0, low)[below]), torch.from_numpy(np.append(high, 1.0)[above])


def _scores(values: Tensor, logits: bool) -> npt.NDArray[Any]:
    scores: npt.NDArray[Any] = VennAbersScaling.rounded(log_odds(values, logits)).numpy()
    return scores


def _with_a_one(weights: npt.NDArray[Any], of_one: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The isotonic fit at each score, of rising order, when one more example there has label 1.

    The fit's values are the slopes of the lower convex hull of the path through the sums of weights and of labels. The further
    example is a step (1, 1) that starts before the first score and then changes places with one score after the other. Each
    change moves one corner of the path, and the hull to the left of the step is no longer needed: it only ever stays below.
    """
    path = list(zip(np.append([-1.0, 0.0], np.cumsum(weights)), np.append([-1.0, 0.0], np.cumsum(of_one)), strict=True))
    hull: list[tuple[float, float]] = []  # its left end is last
    for point in reversed(path):
        while len(hull) > 1 and not _turns_left(point, hull[-1], hull[-2]):
            hull.pop()
        hull.append(point)
    fitted = np.empty(len(weights))
    before = path[0]
    for i, (start, end) in enumerate(pairwise(path[1:])):
        (x, y), (next_x, next_y) = hull[-1], hull[-2]
        fitted[i] = (next_y - y) / (next_x - x)
        before = (before[0] + end[0] - start[0], before[1] + end[1] - start[1])
        if _turns_left(hull[-1], before, hull[-2]):
            hull.pop()
            while len(hull) > 1 and not _turns_left(before, hull[-1], hull[-2]):
                hull.pop()
            hull.append(before)
    return fitted


def _turns_left(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    """Return True if the way from ``a`` over ``b`` to ``c`` turns left: ``b`` is below the line from ``a`` to ``c``."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (c[0] - a[0]) * (b[1] - a[1]) > 0
