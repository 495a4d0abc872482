"""The choices of the caller of a `CalibayesTrainer`: checked, and completed by those of the method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn

from calibayes.checks import positive, positive_integer
from calibayes.errors import InvalidArgumentError
from calibayes.methods import NETWORK_METHODS, Method, Plan, build, method_named
from calibayes.methods.fit_arguments import fit_settings
from calibayes.objective import Objective, check_batch_terms, checked_objective
from calibayes.posterior.abstract_posterior import Posterior
from calibayes.posterior.mean_field import PriorMean
from calibayes.posterior.weight_selection import Where
from calibayes.training.optimizers import OptimizerFactory
from calibayes.training.weight_averaging import Averaging, check_averaging
from calibayes.wording import did_you_mean, shortened

__all__ = ["TrainerChoices", "check_arguments"]

_SHORT = {"point": "fnn", "mean-field": "bnn"}
# Fine-tuning starts from weights that have learned something.
_FINE_TUNING = {"prior_mean": "initial", "reinitialize": False}
_LOGGED = ("loss", "learning_rate", "grad_norm")
# What each would do to a network whose weights are elsewhere, and what to do instead.
_REJECTED = {
    "fp16": "losses would need scaling; use bf16=True",
    "fp16_full_eval": "weights would lose their digits, and their standard deviations with them; use bf16=True",
    "bf16_full_eval": "weights would lose their digits, and their standard deviations with them; use bf16=True",
    "label_smoothing_factor": "the loss is the objective's; leave it at 0",
    "neftune_noise_alpha": "its noise would be drawn for weights that the network does not hold; leave it out",
    "gradient_checkpointing": "layers would run again after the sampled weights are gone; to save memory, use a smaller "
    "per_device_train_batch_size with gradient_accumulation_steps, which leaves the loss as it is",
    "torch_compile": "every sample of the weights would be compiled again; leave it out",
    "use_liger_kernel": "its kernels replace the loss, which is the objective's; leave it out",
    "fsdp": "the weights are flat vectors, which are not sharded; start it with torchrun alone",
    "deepspeed": "the weights are flat vectors, which are not sharded; start it with torchrun alone",
}


def check_arguments(arguments: Any) -> None:
    """Raise `InvalidArgumentError` for ``TrainingArguments`` that would have no effect here, or a wrong one."""
    for name, why in _REJECTED.items():
        value = getattr(arguments, name, None)
        if value:
            raise InvalidArgumentError(f"CalibayesTrainer cannot train with {name}={value!r}: {why}.")
    if arguments.n_gpu > 1:
        raise InvalidArgumentError(
            f"CalibayesTrainer cannot use {arguments.n_gpu} GPUs from one process. Start one process for each: "
            f"torchrun --nproc-per-node={arguments.n_gpu} …, or choose one with CUDA_VISIBLE_DEVICES."
        )


@dataclass(frozen=True)
class TrainerChoices:
    """The arguments of a `CalibayesTrainer` of the same names; ``None`` leaves a choice to the method."""

    posterior: str | Posterior
    method_settings: Mapping[str, Any] | None
    where: Where
    prior_std: float | Mapping[str, float] | None
    init_std: float | Mapping[str, float] | None
    prior_mean: PriorMean
    objective: Objective | None
    samples: int | None
    averaging: Averaging | None
    optimizer: OptimizerFactory | None
    ready_optimizer: Any  # the first of transformers' ``optimizers``
    rho_learning_rate: float | None

    def __post_init__(self) -> None:
        known = [*_SHORT, *NETWORK_METHODS]
        if not isinstance(self.posterior, Posterior) and (not isinstance(self.posterior, str) or self.posterior not in known):
            raise InvalidArgumentError(
                f"Expected `posterior` to be one of {', '.join(known)}, or a posterior, but got {self.posterior!r}. "
                f"{did_you_mean(self.posterior, known, 'Other methods are registered with `register_method`.')}"
            )
        self._check_method_settings()
        self._check_optimizers()
        if self.objective is not None:
            check_batch_terms(checked_objective(self.objective), "CalibayesTrainer", logged=_LOGGED)
        if self.samples is not None:
            positive_integer("samples", self.samples)
        check_averaging(self.averaging)

    def plan(self, network: nn.Module | None = None) -> Plan:
        """The posterior, its objective, and ``samples``, ``averaging`` and ``optimizer`` of the training.

        ``network`` is what a method makes its posterior of. Without an ``optimizer``, the one of ``TrainingArguments`` is used.
        """
        if isinstance(self.posterior, Posterior):
            if self.objective is None:
                raise InvalidArgumentError("A posterior that is given comes without an objective. Pass `objective`.")
            plan = Plan(self.posterior, self.objective, {})
        else:
            plan = self._method_plan(network, method_named(_SHORT.get(self.posterior, self.posterior)))
        objective = plan.objective if self.objective is None else self.objective
        check_batch_terms(objective, "CalibayesTrainer", logged=_LOGGED)
        own = plan.fit.get("optimizer")
        if own is not None and (self.optimizer is not None or self.ready_optimizer is not None):
            raise InvalidArgumentError(
                f"The method trains with its own optimiser, {own!r}. Leave `optimizer` and `optimizers` out."
            )
        if own is not None and self.rho_learning_rate is not None:
            raise InvalidArgumentError(
                f"The method's optimiser, {own!r}, has its learning rates. Leave `rho_learning_rate` out."
            )
        fit = {
            "samples": plan.fit.get("samples", 1) if self.samples is None else self.samples,
            "averaging": plan.fit.get("averaging") if self.averaging is None else self.averaging,
            "optimizer": own if self.optimizer is None else self.optimizer,
        }
        return Plan(plan.posterior, objective, fit)

    def _method_plan(self, network: nn.Module | None, method: Method[Any]) -> Plan:
        """The method applied to a network; an optimiser is part of it only if the method needs a particular one."""
        if isinstance(network, Posterior):
            raise InvalidArgumentError(
                f"Expected `model` to be a network, but got a {type(network).__name__}. Pass it as `posterior`."
            )
        assert network is not None
        settings = dict(self.method_settings or {})
        usual = {name: value for name, value in _FINE_TUNING.items() if method.has(name)}
        plan = build(method.name, network, **{**usual, **self._mean_field_settings(), **settings})
        fit = dict(fit_settings(plan, ("optimizer", "samples", "averaging"), method.name, "CalibayesTrainer"))
        if not hasattr(fit.get("optimizer"), "bind"):
            fit.pop("optimizer", None)
            for name in ("learning_rate", "weight_decay"):
                if name in settings:
                    raise InvalidArgumentError(
                        f"The optimiser is that of `args`, but `method_settings` has {name!r}. Pass it to TrainingArguments."
                    )
        return plan._replace(fit=fit)

    def _mean_field_settings(self) -> dict[str, Any]:
        """The settings of `MeanField` that the caller chose."""
        settings: dict[str, Any] = {"where": self.where, "prior_std": self.prior_std, "init_std": self.init_std}
        chosen = {name: value for name, value in settings.items() if value is not None}
        return chosen if self.prior_mean == "initial" else {**chosen, "prior_mean": self.prior_mean}

    def _check_method_settings(self) -> None:
        given, settings = self._mean_field_settings(), dict(self.method_settings or {})
        for name, value in given.items():
            self._check_used(name, value)
        if isinstance(self.posterior, Posterior):
            if settings:
                raise InvalidArgumentError(
                    f"A posterior that is given has its settings, but `method_settings` is {shortened(settings)}. Leave it out."
                )
            return
        for name in given:
            if name in settings:
                raise InvalidArgumentError(f"`{name}` is given twice, once in `method_settings`. Leave one of the two out.")
        method_named(_SHORT.get(self.posterior, self.posterior)).configured(**given, **settings)

    def _check_optimizers(self) -> None:
        r"""Check that there is at most one optimiser, and a learning rate of $\rho$ only where it has an effect."""
        if self.optimizer is not None and self.ready_optimizer is not None:
            raise InvalidArgumentError("There can be one optimiser: pass `optimizer` or `optimizers`, and leave the other out.")
        rate = self.rho_learning_rate
        if rate is None:
            return
        if not isinstance(self.posterior, Posterior) or not self.posterior.num_bayesian:
            self._check_used("rho_learning_rate", rate)
        if self.optimizer is not None or self.ready_optimizer is not None:
            raise InvalidArgumentError(
                f"An optimiser that is given has its learning rates, but `rho_learning_rate` is {rate!r}. Leave it out, and "
                "give the groups of `posterior.parameter_groups()` whose names end in '.rho' their own `lr`."
            )
        positive("rho_learning_rate", rate)

    def _check_used(self, name: str, value: Any) -> None:
        """Raise for a setting of Bayesian weights where there are none, or where the posterior has been made already."""
        shown, given = f"`{name}` is {shortened(value)}", self.posterior
        if isinstance(given, Posterior):
            if given.num_bayesian:
                raise InvalidArgumentError(f"A posterior that is given has its settings, but {shown}. Leave it out.")
        elif method_named(_SHORT.get(given, given)).has("where"):
            return
        what = "a point" if isinstance(given, Posterior) or given == "point" else f"posterior={given!r}"
        raise InvalidArgumentError(
            f"No weight of {what} is Bayesian, but {shown}. Use posterior='mean-field', or leave it out."
        )
