"""Quadratic scaling: a parabola of the log-odds of two classes, as far as the data can support."""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor

from calibayes.metrics.prediction_arrays import Predictions
from calibayes.posthoc.smoothed_temperature import PenalizedScaling, SmoothedTemperature
from calibayes.posthoc.two_class import check_two_classes, fit_logistic

__all__ = ["QuadraticScaling"]


@final
class QuadraticScaling(PenalizedScaling):
    r"""Fit a parabola to the log-odds of two classes: for errors that differ between them, also with little data.

    After a temperature, $q = \frac{n}{n+1} p_T + \frac{1}{n+1} \cdot \frac12$ with log-odds $z$, it is
    $$\tilde p(1|x) = \sigma(a z^2 + (1 + v) z + b)$$
    and minimises the mean NLL plus $s \frac{2}{n} (a^2 + v^2 + b^2)$, in which $n$ is the number of examples (their total
    weight): with little data all that is left is the temperature. Scores of two classes that are normal with different
    variances have log-odds that are a parabola. Decisions may change, and so may the order of the examples. See Berta,
    Holzmüller, Jordan and Bach, "Structured Matrix Scaling for Multi-Class Calibration" (2025,
    https://arxiv.org/abs/2511.03685).

    Args:
        strength: $s$, positive.

    Examples:
        >>> odds = 3 * torch.randn(4000, generator=torch.Generator().manual_seed(0)).double()
        >>> truth = (0.2 * odds.square() + odds - 1).sigmoid()
        >>> labels = torch.bernoulli(truth, generator=torch.Generator().manual_seed(1)).long()
        >>> scaling = QuadraticScaling().fit(odds, labels, logits=True)
        >>> bool((scaling.transform(odds, logits=True) - truth).abs().mean() < 0.02)
        True
    """

    _parameters: tuple[float, float, float] | None = None

    @property
    def curvature(self) -> float:
        """$a$."""
        return self._known(self._parameters)[0]

    @property
    def slope(self) -> float:
        """$1 + v$."""
        return self._known(self._parameters)[1]

    @property
    def intercept(self) -> float:
        """$b$."""
        return self._known(self._parameters)[2]

    def __repr__(self) -> str:
        if self._parameters is None:
            return "QuadraticScaling(not fitted)"
        shown = "curvature={:.6g}, slope={:.6g}, intercept={:.6g}".format(*self._parameters)
        return f"QuadraticScaling(temperature={self.temperature:.6g}, {shown})"

    def _fit(self, predictions: Predictions, logits: bool) -> str | None:
        check_two_classes(predictions, "QuadraticScaling")
        start, message = SmoothedTemperature.fit(predictions, logits)
        z = _log_odds(start, predictions.probs, logits)
        # Newton's method works in units of each column, in which rounding does the same harm to all.
        inputs = torch.stack((z.square(), z, torch.ones_like(z)), -1)
        unit = inputs.square().mean(0).sqrt().clamp_min(1e-3)
        identity = torch.tensor([0.0, 1.0, 0.0], dtype=torch.float64)
        ridge = torch.full_like(identity, 4 * self.strength / start.total)
        scaled = fit_logistic(
            inputs / unit, predictions.targets.double(), predictions.mass / start.total, identity * unit, ridge / unit.square()
        )
        curvature, slope, intercept = (scaled / unit).tolist()
        self._start, self._parameters = start, (curvature, slope, intercept)
        return message

    def _scaled(self, values: Tensor, logits: bool) -> Tensor:
        curvature, slope, intercept = self._known(self._parameters)
        z = _log_odds(self._known(self._start), values, logits)
        scaled = (curvature * z + slope) * z + intercept
        return torch.stack(((-scaled).sigmoid(), scaled.sigmoid()), -1)


def _log_odds(start: SmoothedTemperature, values: Tensor, logits: bool) -> Tensor:
    log_probs = start.log_probs(values, logits)
    return log_probs[:, 1] - log_probs[:, 0]
