"""No scaling at all: what the others have to beat."""

from __future__ import annotations

from typing import final

from torch import Tensor

from calibayes.metrics.prediction_arrays import Predictions
from calibayes.posthoc.abstract_scaling import Scaling

__all__ = ["NoScaling"]


@final
class NoScaling(Scaling):
    """Leave the predictions as they are; logits become probabilities.

    Examples:
        >>> NoScaling().fit(torch.tensor([[0.9, 0.1]]), torch.tensor([1])).transform(torch.tensor([[0.7, 0.3]]))
        tensor([[0.7000, 0.3000]])
    """

    def __repr__(self) -> str:
        return f"NoScaling({'not fitted' if self._classes is None else ''})"

    def _fit(self, predictions: Predictions, logits: bool) -> str | None:
        return None

    def _scaled(self, values: Tensor, logits: bool) -> Tensor:
        return values.double().softmax(-1) if logits else values
