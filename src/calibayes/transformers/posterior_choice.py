"""The posterior that a `CalibayesTrainer` trains, with its method and settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn

from calibayes.checks import positive
from calibayes.errors import InvalidArgumentError
from calibayes.methods import METHODS, Method, Plan, build, method_named
from calibayes.methods.fit_arguments import fit_settings
from calibayes.posterior.abstract_posterior import Posterior
from calibayes.posterior.mean_field import PriorMean
from calibayes.posterior.weight_selection import Where
from calibayes.wording import did_you_mean, shortened

__all__ = ["PosteriorChoice"]

_SHORT = {"point": "fnn", "mean-field": "bnn"}
# Fine-tuning starts from weights that have learned something.
_FINE_TUNING = {"prior_mean": "initial", "reinitialize": False}
_OPTIMIZER = ("learning_rate", "weight_decay")


@dataclass(frozen=True)
class PosteriorChoice:
    """The posterior to make from a network, or one that exists already.

    Attributes:
        kind: the name of a method, ``"point"`` or ``"mean-field"``, or a posterior.
        where: as in `MeanField`, like those that follow.
        prior_std: likewise.
        init_std: likewise.
        prior_mean: likewise.
        settings: the method's settings, by name.
    """

    kind: str | Posterior
    where: Where = None
    prior_std: float | Mapping[str, float] | None = None
    init_std: float | Mapping[str, float] | None = None
    prior_mean: PriorMean = "initial"
    settings: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.kind, Posterior) and (not isinstance(self.kind, str) or self.kind not in (*_SHORT, *METHODS)):
            known = [*_SHORT, *METHODS]
            raise InvalidArgumentError(
                f"Expected `posterior` to be one of {', '.join(known)}, or a posterior, but got {self.kind!r}. "
                f"{did_you_mean(self.kind, known, 'Other methods are registered with `register_method`.')}"
            )
        given, settings = self._given(), dict(self.settings or {})
        for name, value in given.items():
            self._check_used(name, value)
        if self.method is None:
            if settings:
                shown = shortened(settings)
                raise InvalidArgumentError(
                    f"A posterior that is given has its settings, but `method_settings` is {shown}. Leave it out."
                )
            return
        for name in given:
            if name in settings:
                raise InvalidArgumentError(f"`{name}` is given twice, once in `method_settings`. Leave one of the two out.")
        self.method.configured(**given, **settings)

    @property
    def ready(self) -> Posterior | None:
        """The posterior that is there already."""
        return self.kind if isinstance(self.kind, Posterior) else None

    @property
    def method(self) -> Method[Any] | None:
        """The method; ``None`` for a posterior that is there already."""
        return None if isinstance(self.kind, Posterior) else method_named(_SHORT.get(self.kind, self.kind))

    def rho_rate(self, rate: float | None, optimizer: Any) -> float | None:
        r"""The learning rate of $\rho$, if one is given: refused where there is no $\rho$, and beside a ready optimiser."""
        if rate is None:
            return None
        if self.ready is None or not self.ready.num_bayesian:
            self._check_used("rho_learning_rate", rate)
        if optimizer is not None:
            raise InvalidArgumentError(
                f"An optimiser that is given has its learning rates, but `rho_learning_rate` is {rate!r}. Leave it out, and "
                "give the groups of `posterior.parameter_groups()` whose names end in '.rho' their own `lr`."
            )
        return positive("rho_learning_rate", rate)

    def __call__(self, network: nn.Module) -> Plan:
        """The method applied to this network; the optimiser is there only where the method is one of its own."""
        if isinstance(network, Posterior):
            raise InvalidArgumentError(
                f"Expected `model` to be a network, but got a {type(network).__name__}. Pass it as `posterior`."
            )
        method, settings = self.method, dict(self.settings or {})
        assert method is not None
        usual = {name: value for name, value in _FINE_TUNING.items() if method.has(name)}
        plan = build(method.name, network, **{**usual, **self._given(), **settings})
        fit = dict(fit_settings(plan, ("optimizer", "samples", "averaging"), method.name, "CalibayesTrainer"))
        if not hasattr(fit.get("optimizer"), "bind"):
            fit.pop("optimizer", None)
            for name in _OPTIMIZER:
                if name in settings:
                    raise InvalidArgumentError(
                        f"The optimiser is that of `args`, but `method_settings` has {name!r}. Pass it to TrainingArguments."
                    )
        return plan._replace(fit=fit)

    def _given(self) -> dict[str, Any]:
        """The settings of `MeanField` that are not left out."""
        found = {"where": self.where, "prior_std": self.prior_std, "init_std": self.init_std}
        given: dict[str, Any] = {name: value for name, value in found.items() if value is not None}
        return given if self.prior_mean == "initial" else {**given, "prior_mean": self.prior_mean}

    def _check_used(self, name: str, value: Any) -> None:
        shown = f"`{name}` is {shortened(value)}"
        bayesian = (
            bool(self.ready.num_bayesian) if self.ready is not None else self.method is not None and self.method.has("where")
        )
        if not bayesian:
            what = "a point" if self.ready is not None or self.kind == "point" else f"posterior={self.kind!r}"
            raise InvalidArgumentError(
                f"No weight of {what} is Bayesian, but {shown}. Use posterior='mean-field', or leave it out."
            )
        if self.ready is not None:
            raise InvalidArgumentError(f"A posterior that is given has its settings, but {shown}. Leave it out.")
