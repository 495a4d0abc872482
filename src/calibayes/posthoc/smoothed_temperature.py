"""Temperature scaling mixed with a little of the uniform distribution: what the structured scalings start from."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from calibayes.checks import positive
from calibayes.metrics.prediction_arrays import Predictions
from calibayes.posthoc.abstract_scaling import Scaling
from calibayes.posthoc.log_scores import log_scores
from calibayes.posthoc.temperature import fitted_temperature

__all__ = ["PenalizedScaling", "SmoothedTemperature"]


@dataclass(frozen=True)
class SmoothedTemperature:
    r"""$q = \frac{n}{n+1}\, p_T + \frac{1}{n+1} \cdot \frac1K$, fitted on predictions of total weight $n$.

    So no logarithm is below $-\log((n+1)K)$, whatever underflowed: examples in that number cannot tell smaller
    probabilities apart, and one outlier would otherwise decide what is fitted to the logarithms.
    """

    temperature: float
    total: float

    @classmethod
    def fit(cls, predictions: Predictions, logits: bool) -> tuple[SmoothedTemperature, str | None]:
        """The best temperature, and the warning if it is at a bound."""
        value, message = fitted_temperature(predictions, logits)
        return cls(value, float(predictions.mass.sum())), message

    def log_probs(self, values: Tensor, logits: bool) -> Tensor:
        r"""$\log q$, ``[m, K]``."""
        probs = (log_scores(values, logits) / self.temperature).softmax(-1)
        return probs.mul_(self.total).add_(1 / probs.shape[1]).div_(self.total + 1).log_()


class PenalizedScaling(Scaling):
    """The base of scalings that correct a temperature by more parameters, which a penalty keeps small."""

    _start: SmoothedTemperature | None = None

    def __init__(self, *, strength: float = 1.0) -> None:
        self.strength = positive("strength", strength)

    @property
    def temperature(self) -> float:
        """$T$."""
        return self._known(self._start).temperature
