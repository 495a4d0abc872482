"""Structured matrix scaling: every class's score from all of them, as far as the data can support."""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor

from calibayes.metrics.prediction_arrays import Predictions
from calibayes.posthoc.convex_fit import Part, WholeMatrix, minimize
from calibayes.posthoc.log_scores import blocks
from calibayes.posthoc.smoothed_temperature import PenalizedScaling, SmoothedTemperature

__all__ = ["StructuredMatrixScaling"]


@final
class StructuredMatrixScaling(PenalizedScaling):
    r"""Give every class a score from the probabilities of all: the best for three classes or more, also with little data.

    After a temperature, $q = \frac{n}{n+1} p_T + \frac{1}{n+1} \cdot \frac1K$, it is logistic regression on $\log q$,
    $$\tilde p(\cdot|x) = \mathrm{softmax}\big((I + \mathrm{diag}(v) + M) \log q(x) + b\big)$$
    with a matrix $M$ of zero diagonal. It minimises the mean NLL plus
    $$s \left( \frac{K}{n} \lVert b \rVert^2 + \frac{K}{n} \lVert v \rVert^2 + \frac{K(K-1)}{n} \lVert M \rVert^2 \right)$$
    in which $n$ is the number of examples (their total weight): with little data all that is left is the temperature, with
    more come a bias and a scale for each class, and at last the confusions between them. The problem is convex. Decisions may
    change. See Berta, Holzmüller, Jordan and Bach, "Structured Matrix Scaling for Multi-Class Calibration" (2025,
    https://arxiv.org/abs/2511.03685).

    Args:
        strength: $s$, positive; the paper's is 1.

    Examples:
        >>> logits = torch.randn(2000, 3, generator=torch.Generator().manual_seed(0))
        >>> truth = (logits @ torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.5], [0.0, 0.0, 0.5]])).softmax(-1)
        >>> labels = torch.multinomial(truth, 1, generator=torch.Generator().manual_seed(1))[:, 0]
        >>> scaling = StructuredMatrixScaling().fit(logits.softmax(-1), labels)
        >>> bool((scaling.transform(logits.softmax(-1)) - truth).abs().mean() < 0.02)
        True
    """

    _parameters: Tensor | None = None

    @property
    def matrix(self) -> Tensor:
        r"""$I + \mathrm{diag}(v) + M$, shape ``[K, K]``."""
        return self._known(self._parameters)[:, :-1]

    @property
    def bias(self) -> Tensor:
        """$b$, shape ``[K]``."""
        return self._known(self._parameters)[:, -1]

    def __repr__(self) -> str:
        shown = "not fitted" if self._parameters is None else f"{len(self._parameters)} classes, strength={self.strength:g}"
        return f"StructuredMatrixScaling({shown})"

    def _fit(self, predictions: Predictions, logits: bool) -> str | None:
        start, message = SmoothedTemperature.fit(predictions, logits)
        parts = [
            Part(start.log_probs(part.probs, logits), part.targets[:, None], part.mass[:, None] / start.total)
            for part in blocks(predictions)
        ]
        classes = predictions.classes
        identity = torch.eye(classes, classes + 1, dtype=torch.float64)
        # The penalty is a sum of squares without the half that is usual in a ridge.
        ridge = torch.full_like(identity, classes * (classes - 1))
        ridge[:, :-1].fill_diagonal_(classes)
        ridge[:, -1] = classes
        self._parameters = minimize(WholeMatrix(), parts, identity, 2 * self.strength / start.total * ridge)
        self._start = start
        return message

    def _scaled(self, values: Tensor, logits: bool) -> Tensor:
        parameters = self._known(self._parameters)
        return WholeMatrix().scores(self._known(self._start).log_probs(values, logits), parameters).softmax(-1)
