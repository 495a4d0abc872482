"""The settings that every method has, and the optimiser and the objective that follow from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import torch

from calibayes.calibration.measures import WMMCE, Measure
from calibayes.checks import positive
from calibayes.errors import InvalidArgumentError
from calibayes.objective import CrossEntropy, Objective
from calibayes.objective.losses import Loss
from calibayes.schedules import Schedule, value_at
from calibayes.training.weight_averaging import EMA

__all__ = ["REGULARISED", "MethodSettings", "UsualOptimizer"]

REGULARISED = {"weight_decay": 0.05, "ema": 0.98}
"""A well-regularised start for any method but SWAG: AdamW with decay on the means alone, and an average of the weights.

Put a `calibayes.InputDropout` in front of the network as well. Both numbers are worth a try on validation data."""


@final
@dataclass(frozen=True)
class UsualOptimizer:
    """Adam, or AdamW where there is weight decay; fused, which is the same update in one pass.

    Methods that need no particular optimiser use it, so a caller that has one may replace it.
    """

    learning_rate: float
    weight_decay: float = 0.0

    def __call__(self, parameters: Any) -> torch.optim.Optimizer:
        """The optimiser of these parameters."""
        if self.weight_decay == 0:
            return torch.optim.Adam(parameters, lr=self.learning_rate, fused=True)
        return torch.optim.AdamW(parameters, lr=self.learning_rate, weight_decay=self.weight_decay, fused=True)


@dataclass(frozen=True, kw_only=True)
class MethodSettings:
    r"""The settings that all methods have; as they stand, nothing but cross-entropy is minimised, by plain Adam.

    Attributes:
        lam: $\lambda$, the weight of the calibration term; 0 for none.
        calibration: the calibration measure; `calibayes.WMMCE` by default.
        loss: the loss; `calibayes.CrossEntropy` by default.
        learning_rate: the optimiser's; that of ``torch.optim.Adam`` by default.
        weight_decay: that of AdamW, on the weights or their means alone; 0 for plain Adam.
        ema: decay of the average of the weights over steps (`calibayes.EMA`); ``None`` for none.
    """

    lam: Schedule = 0.0
    calibration: Measure | None = None
    loss: Loss | None = None
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    ema: float | None = None

    def __post_init__(self) -> None:
        value_at(self.lam, 0, "lam")
        positive("learning_rate", self.learning_rate)
        if not 0 <= self.weight_decay < float("inf"):
            raise InvalidArgumentError(f"Expected `weight_decay` to be at least 0, but got {self.weight_decay!r}.")

    def objective(self, beta: Schedule = 0.0) -> Objective:
        r"""The loss with the calibration term, if there is one, and the KL weighted by $\beta$."""
        measure = WMMCE() if self.calibration is None else self.calibration
        loss = CrossEntropy() if self.loss is None else self.loss
        return Objective(lam=self.lam, beta=beta, calibration=measure, loss=loss)

    def fit(self, **others: Any) -> dict[str, Any]:
        """Arguments of `calibayes.fit`."""
        averaging = {} if self.ema is None else {"averaging": EMA(self.ema)}
        return {"optimizer": UsualOptimizer(self.learning_rate, self.weight_decay), **averaging, **others}
