"""The settings of a classifier's training, checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch

from calibayes.calibration.measures import Measure
from calibayes.checks import is_real, moderate, positive_integer, share
from calibayes.errors import InvalidArgumentError
from calibayes.estimator.network import NetworkChoice
from calibayes.recipes.choosing import BETAS, LAMS, ChoiceMonitor, check_monitor
from calibayes.recipes.schemes import check_scheme
from calibayes.training import EarlyStopping

__all__ = ["OptimizerClass", "Settings", "Weight"]

Weight = float | Literal["auto"]
OptimizerClass = Callable[..., torch.optim.Optimizer]
_PATIENCE = 10


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a classifier is trained; `CalibayesClassifier` says what each means."""

    scheme: str
    network: NetworkChoice
    lam: Weight
    beta: Weight
    prior_std: float
    init_std: float
    calibration: Measure | None
    epochs: int
    batch_size: int
    learning_rate: float
    optimizer: OptimizerClass
    samples: int
    predict_samples: int
    early_stopping: bool | int | EarlyStopping
    validation_fraction: float
    choose_by: ChoiceMonitor
    device: str | torch.device | None
    verbose: bool

    def __post_init__(self) -> None:
        check_scheme(self.scheme)
        for name in ("prior_std", "init_std", "learning_rate"):
            object.__setattr__(self, name, moderate(name, getattr(self, name)))
        for name in ("epochs", "batch_size", "samples", "predict_samples"):
            positive_integer(name, getattr(self, name))
        share("validation_fraction", self.validation_fraction)
        check_monitor("choose_by", self.choose_by)
        if not callable(self.optimizer):
            raise InvalidArgumentError(
                f"Expected `optimizer` to be a class such as torch.optim.Adam, but got {self.optimizer!r}."
            )
        for name in ("lam", "beta"):
            value = getattr(self, name)
            if value != "auto" and not (is_real(value) and 0 <= value < float("inf")):
                raise InvalidArgumentError(
                    f"Expected `{name}` to be a non-negative finite number or 'auto', but got {value!r}."
                )
        _ = self.stopping  # raises if it cannot be

    @property
    def lams(self) -> tuple[float, ...]:
        r"""The values of $\lambda$ to choose from."""
        return LAMS if self.lam == "auto" else (float(self.lam),)

    @property
    def betas(self) -> tuple[float, ...]:
        r"""The values of $\beta$ to choose from."""
        return BETAS if self.beta == "auto" else (float(self.beta),)

    def with_known(self, lam: float, beta: float) -> Settings:
        r"""The same where $\lambda$ and $\beta$ were chosen before: ``"auto"`` stands for these, unless they are zero."""
        return replace(
            self,
            lam=lam if lam and self.lam == "auto" else self.lam,
            beta=beta if beta and self.beta == "auto" else self.beta,
        )

    @property
    def stopping(self) -> EarlyStopping | None:
        """When to stop early, if at all."""
        rule: Any = bool(self.early_stopping) if isinstance(self.early_stopping, np.bool_) else self.early_stopping
        if rule is None or rule is False:
            return None
        if isinstance(rule, EarlyStopping):
            return rule
        return EarlyStopping(_PATIENCE if rule is True else positive_integer("early_stopping", rule))
