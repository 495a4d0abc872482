"""Isotonic scaling: the best rising curve of the probability of class 1."""

from __future__ import annotations

from typing import Any, final

import numpy.typing as npt
import torch
from torch import Tensor

from calibayes.metrics.prediction_arrays import Predictions
from calibayes.posthoc.abstract_scaling import Scaling
from calibayes.posthoc.two_class import check_two_classes, one_class_warning, probability_of_one

__all__ = ["IsotonicScaling"]


@final
class IsotonicScaling(Scaling):
    r"""Fit the best rising step curve to the probability of class 1: for two classes and a thousand examples or more.

    It is scikit-learn's ``IsotonicRegression`` of the labels on $p(1|x)$, straight lines between its steps and constant
    beyond the probabilities seen. At its ends the curve is often exactly 0 or 1, where one wrong example makes the NLL
    infinite; probabilities that differed may become equal. See Zadrozny and Elkan, "Transforming Classifier Scores into
    Accurate Multiclass Probability Estimates" (2002).

    Examples:
        >>> scaling = IsotonicScaling().fit(torch.tensor([0.2, 0.4, 0.6, 0.8]), torch.tensor([0, 1, 0, 1]))
        >>> scaling.transform(torch.tensor([0.1, 0.5, 0.7, 0.9]))
        tensor([0.0000, 0.5000, 0.7500, 1.0000])
    """

    _curve: Any = None

    def __repr__(self) -> str:
        shown = "not fitted" if self._curve is None else f"{len(self._curve.X_thresholds_)} thresholds"
        return f"IsotonicScaling({shown})"

    @property
    def curve(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """The corners of the curve: probabilities of class 1 before, and after."""
        fitted = self._known(self._curve)
        return fitted.X_thresholds_, fitted.y_thresholds_

    def _fit(self, predictions: Predictions, logits: bool) -> str | None:
        from sklearn.isotonic import IsotonicRegression

        check_two_classes(predictions, "IsotonicScaling")
        curve = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
        weights = None if predictions.weights is None else predictions.weights.numpy()
        self._curve = curve.fit(
            probability_of_one(predictions.probs, logits), predictions.targets.double().numpy(), sample_weight=weights
        )
        return one_class_warning(predictions, "the curve is constant, at 0 or 1")

    def _scaled(self, values: Tensor, logits: bool) -> Tensor:
        one = torch.from_numpy(self._known(self._curve).predict(probability_of_one(values, logits)))
        return torch.stack((1 - one, one), -1)
