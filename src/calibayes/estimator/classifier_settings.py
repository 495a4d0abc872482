"""The settings of a classifier's training on all rows at once, checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Self

import numpy as np
import torch

from calibayes.calibration.measures import Measure
from calibayes.checks import fraction, is_real, moderate_positive, positive_integer
from calibayes.errors import InvalidArgumentError
from calibayes.estimator.classifier_network import NetworkChoice
from calibayes.methods import method_named
from calibayes.methods.term_weights import check_method_settings, check_weights, has_beta, has_lam, takes_lam
from calibayes.objective import SCHEMES
from calibayes.recipes.choosing import BETAS, LAMS, ChoiceMonitor, check_monitor
from calibayes.schedules import Schedule
from calibayes.training import EarlyStopping

__all__ = ["ClassifierSettings", "OptimizerClass", "Weight"]

Weight = float | Literal["auto"]
OptimizerClass = Callable[..., torch.optim.Optimizer]
_PATIENCE = 10
_DEFAULTS = {"epochs": 100, "batch_size": 64, "learning_rate": 0.01, "optimizer": torch.optim.Adam, "early_stopping": False}
_USUAL = {"lam": 1.0, "beta": 0.1, "prior_std": 0.3, "init_std": 0.02}  # of the paper's four schemes, for tables
_OWN = {name: f"`{name}` of CalibayesClassifier" for name in (*_USUAL, "calibration", "samples", "learning_rate")}


@dataclass(frozen=True, kw_only=True)
class ClassifierSettings:
    """The settings of a classifier's training; `CalibayesClassifier` says what each means."""

    method: str
    network: NetworkChoice
    method_settings: Mapping[str, Any] | None
    lam: Weight | None
    beta: Weight | None
    prior_std: float | None
    init_std: float | None
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

    @classmethod
    def of(cls, estimator: Any, method: str) -> Self:
        """The settings of an estimator, with the usual ones in place of ``None``."""
        given = {field.name: getattr(estimator, field.name) for field in fields(cls) if field.name != "method"}
        usual = {name: value for name, value in _DEFAULTS.items() if given[name] is None}
        return cls(method=method, **{**given, **usual})

    def __post_init__(self) -> None:
        method = method_named(self.method)
        object.__setattr__(self, "method", method.name)
        for name in ("prior_std", "init_std", "learning_rate"):
            if name == "learning_rate" or getattr(self, name) is not None:
                object.__setattr__(self, name, moderate_positive(name, getattr(self, name)))
        for name in ("epochs", "batch_size", "samples", "predict_samples"):
            positive_integer(name, getattr(self, name))
        fraction("validation_fraction", self.validation_fraction)
        check_monitor("choose_by", self.choose_by)
        if not callable(self.optimizer):
            raise InvalidArgumentError(
                f"Expected `optimizer` to be a class such as torch.optim.Adam, but got {self.optimizer!r}."
            )
        for name in ("lam", "beta"):
            value = getattr(self, name)
            if value is not None and value != "auto" and not (is_real(value) and 0 <= value < float("inf")):
                raise InvalidArgumentError(
                    f"Expected `{name}` to be a non-negative finite number or 'auto', but got {value!r}."
                )
        if takes_lam(self.method) and self.lam != "auto":
            check_weights(self.method, lam=self.lam)
        self._check_method_settings()
        _ = self.stopping  # raises if it is invalid

    def _check_method_settings(self) -> None:
        given = self.method_settings
        if given is None:
            return
        if not isinstance(given, Mapping):
            raise InvalidArgumentError(f"Expected `method_settings` to be a dict of settings by name, but got {given!r}.")
        check_method_settings(self.method, given, _OWN)
        if given.get("weight_decay") and self.optimizer is not torch.optim.Adam:
            raise InvalidArgumentError(
                f"Expected `weight_decay` of the method only beside Adam, but `optimizer` is {self.optimizer!r}. "
                "Give it to the optimiser itself: functools.partial(torch.optim.AdamW, weight_decay=…)."
            )

    @property
    def lams(self) -> tuple[float, ...]:
        r"""The values of $\lambda$ to choose from; zero for a method without."""
        if not takes_lam(self.method) or (self.lam is None and not has_lam(self.method)):
            return (0.0,)
        return LAMS if self.lam == "auto" else (self._usual("lam") if self.lam is None else float(self.lam),)

    @property
    def betas(self) -> tuple[float, ...]:
        r"""The values of $\beta$ to choose from; zero for a method without."""
        if not has_beta(self.method):
            return (0.0,)
        return BETAS if self.beta == "auto" else (self._usual("beta") if self.beta is None else float(self.beta),)

    def of_method(self, lam: float, beta: Schedule, seed: int) -> dict[str, Any]:
        """All settings of the method, by name; ``seed`` is for the initial weights of an ensemble's members."""
        method = method_named(self.method)
        ours = {
            **{"lam": lam, "beta": beta, "calibration": self.calibration, "samples": self.samples},
            **{"learning_rate": self.learning_rate, "member_seed": seed},
        }
        for name in ("prior_std", "init_std"):
            value = getattr(self, name)
            ours[name] = self._usual(name) if value is None else value
        return {name: value for name, value in ours.items() if method.has(name)} | dict(self.method_settings or {})

    def _usual(self, name: str) -> Any:
        return _USUAL[name] if self.method in SCHEMES else method_named(self.method).default(name)

    def cross_fitted(self, estimator: Any) -> dict[str, Any]:
        """The method's settings that an estimator was given, and for the paper's schemes the usual ones for tables."""
        method, found = method_named(self.method), dict[str, Any]()
        for name in ("lam", "beta", "prior_std", "init_std", "calibration", "learning_rate"):
            value = getattr(estimator, name)
            if value is None and self.method in SCHEMES:
                value = _USUAL.get(name)
            if value is not None and method.has(name) and (name != "lam" or takes_lam(self.method)):
                found[name] = value
        if method.has("samples") and self.samples != 1:
            found["samples"] = self.samples
        return found | dict(self.method_settings or {})

    def with_known(self, lam: float, beta: float) -> ClassifierSettings:
        r"""The same with an earlier choice of $\lambda$ and $\beta$ in place of ``"auto"``, unless they are zero."""
        new_lam = lam if lam and self.lam == "auto" else self.lam
        return replace(self, lam=new_lam, beta=beta if beta and self.beta == "auto" else self.beta)

    @property
    def stopping(self) -> EarlyStopping | None:
        """Return the rule for early stopping, if there is one."""
        rule: Any = bool(self.early_stopping) if isinstance(self.early_stopping, np.bool_) else self.early_stopping
        if rule is None or rule is False:
            return None
        if isinstance(rule, EarlyStopping):
            return rule
        return EarlyStopping(_PATIENCE if rule is True else positive_integer("early_stopping", rule))
