"""`CalibayesTrainer`: the ``Trainer`` of transformers, with an objective and a posterior."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sized
from typing import Any

import torch
from torch import Tensor, nn

from calibayes.checks import number_of_samples, positive_integer
from calibayes.data.sources import Batch, labelled
from calibayes.distributed import Processes
from calibayes.errors import DataError, InvalidArgumentError
from calibayes.objective import Objective
from calibayes.posterior.abstract_posterior import Posterior
from calibayes.posterior.mean_field import PriorMean
from calibayes.posterior.weight_selection import Where
from calibayes.predictive import Samples
from calibayes.randomness import preserved_global_state
from calibayes.training.micro_batches import MicroBatch, TrainingPosition
from calibayes.training.optimizers import OptimizerFactory, check_optimizer, made_optimizer, set_rho_rate
from calibayes.training.step import StepSettings
from calibayes.training.training_hooks import TrainingHooks
from calibayes.training.weight_averaging import Averaging
from calibayes.training.weight_checks import check_full_precision
from calibayes.transformers import pretrained_folder
from calibayes.transformers.member_steps import MemberSteps
from calibayes.transformers.posterior_trainer import PosteriorModel, PosteriorTrainer
from calibayes.transformers.posterior_trainer import compute_metrics as default_metrics
from calibayes.transformers.trainer_callback import TrainerPosteriorCallback
from calibayes.transformers.trainer_choices import TrainerChoices, check_arguments

__all__ = ["CalibayesTrainer"]

_ITS_LOSS = (
    "The loss is that of `objective`: for a loss of your own pass Objective(loss=…), or add `objective.term(...)` to it in a "
    "`transformers.Trainer`."
)


class CalibayesTrainer(PosteriorTrainer):
    r"""Fine-tunes a classifier of Hugging Face by any method; the rest is ``transformers.Trainer``.

    A step takes the loss of the whole batch: all processes and all micro-batches of ``gradient_accumulation_steps``
    together, the calibration term too. Members of an ensemble are trained on the same batches, with separate losses, noise,
    dropout and clipping; means over them are logged. Evaluation and ``predict`` give the ensemble's probabilities in the
    place of logits, and ``eval_loss`` is their NLL, averaged over batches. Checkpoints resume to the same bits. Weight decay
    reaches $\mu$ and all point weights, never $\rho$.

    Args:
        model: a network that returns logits, or an object with ``logits``; it is copied.
        args: the ``TrainingArguments``; those that a posterior cannot be trained with are rejected by name. Their ``seed`` is
            that of the noise too.
        objective: what is minimised; that of the method by default.
        posterior: the name of a method (`calibayes.METHODS`), ``"point"`` for one value per weight, ``"mean-field"`` for a
            Gaussian over the weights, or a posterior that is there already, in the place of ``model``.
        method_settings: the settings of the method, by name. Members of an ensemble start from the weights of ``model``.
        where: which weights are Bayesian, as in `MeanField`: ``"classifier.*"`` for the head, ``"*lora_*"`` for adapters. The
            other trainable ones are trained as points; frozen ones stay as they are.
        samples: $R$, samples of the weights a step; that of the method by default. A point always has one.
        prediction_samples: $S$, samples of evaluation and prediction, or ``"mean"`` for the mean weights.
        prior_std: as in `MeanField`, and by default what the method chooses.
        init_std: likewise.
        prior_mean: as in `MeanField`, but by default the weights of ``model``, from which fine-tuning starts.
        rho_learning_rate: the learning rate of $\rho$, that of the others by default. Rates that suit weights hardly move
            $\rho$, a logarithm: 0.01 lets the standard deviations learn.
        optimizer: as in `fit`, a `NaturalGradient` say, in the place of the one that ``args`` names and its learning rate.
        averaging: an average of the weights over training, `EMA(0.99)` say: what evaluation sees, what is saved, and what the
            posterior has after training; that of the method by default.
        dataset_size: $|D|$, which the KL term is divided by; the length of the training data by default.
        model_init: makes a new network for every training, in the place of ``model``.
        compute_metrics: of an ``EvalPrediction`` whose predictions are probabilities; by default
            `calibayes.transformers.compute_metrics`.
        others: those of ``transformers.Trainer``: ``train_dataset``, ``eval_dataset``, ``processing_class`` and so on.
    """

    objective: Objective
    samples: int

    def __init__(
        self,
        model: nn.Module | None = None,
        args: Any = None,
        *,
        objective: Objective | None = None,
        posterior: str | Posterior = "point",
        method_settings: Mapping[str, Any] | None = None,
        where: Where = None,
        samples: int | None = None,
        prediction_samples: Samples = 20,
        prior_std: float | Mapping[str, float] | None = None,
        init_std: float | Mapping[str, float] | None = None,
        prior_mean: PriorMean = "initial",
        rho_learning_rate: float | None = None,
        optimizer: OptimizerFactory | None = None,
        averaging: Averaging | None = None,
        dataset_size: int | None = None,
        model_init: Callable[..., nn.Module] | None = None,
        compute_metrics: Callable[[Any], dict[str, float]] | None = default_metrics,
        **others: Any,
    ) -> None:
        if others.get("compute_loss_func") is not None:
            raise InvalidArgumentError("CalibayesTrainer takes its loss from `objective`: leave `compute_loss_func` out.")
        if type(self).compute_loss is not CalibayesTrainer.compute_loss:
            raise InvalidArgumentError(f"{type(self).__name__} has a `compute_loss` that is never called. {_ITS_LOSS}")
        if args is not None:
            check_arguments(args)
        self.prediction_samples = number_of_samples("prediction_samples", prediction_samples)
        self.dataset_size = None if dataset_size is None else positive_integer("dataset_size", dataset_size)
        self._choices = TrainerChoices(
            posterior,
            method_settings,
            where,
            prior_std,
            init_std,
            prior_mean,
            objective,
            samples,
            averaging,
            optimizer,
            others.get("optimizers", (None,))[0],
            rho_learning_rate,
        )
        self.rho_learning_rate = rho_learning_rate
        ready = isinstance(posterior, Posterior)
        if ready and (model is not None or model_init is not None):
            raise InvalidArgumentError("A posterior that is given has its network: leave `model` and `model_init` out.")
        wrapped = self._posterior_model(model) if ready or model is not None else None
        self._steps: MemberSteps | None = None
        self._window: list[Batch] = []
        super().__init__(model=wrapped, args=args, model_init=model_init, compute_metrics=compute_metrics, **others)
        check_arguments(self.args)
        self.callback_handler.callbacks.insert(0, TrainerPosteriorCallback(self._begin, self._finish))
        # The Trainer would look for these in the posterior, not in its network.
        network = pretrained_folder.base_network(self.posterior.members[0].structure())
        self.label_names = self.args.label_names or ["labels"]
        self._signature_columns = [*inspect.signature(network.forward).parameters, "label", "label_ids", *self.label_names]
        self.model_accepts_loss_kwargs = False

    def _posterior_model(self, network: nn.Module | None) -> PosteriorModel:
        """Return the posterior as a model for the Trainer, and adopt the choices that go with it."""
        plan = self._choices.plan(network)
        self.objective, self.samples, self.averaging = plan.objective, plan.fit["samples"], plan.fit["averaging"]
        self._factory = plan.fit["optimizer"]
        return PosteriorModel(plan.posterior)

    # --- methods that the Trainer calls ---

    def call_model_init(self, trial: Any = None) -> PosteriorModel:
        """A posterior over the network that ``model_init`` makes."""
        return self._posterior_model(super().call_model_init(trial))

    def train(self, *args: Any, **kwargs: Any) -> Any:
        """Train, as ``transformers.Trainer.train`` does."""
        self._steps = self._hooks = None
        self._resumed = self._best_loaded = False
        return super().train(*args, **kwargs)

    def _begin(self, epochs: int) -> TrainingHooks:
        self._hooks = TrainingHooks(self.posterior, self.averaging, self._data, self.args.seed)
        self.posterior.train()
        self._hooks.begin(epochs, resumed=self._resumed, saved=self._saved_average if self._resumed else None)
        return self._hooks

    def _finish(self) -> None:
        assert self._hooks is not None
        self._hooks.finish(keep_weights=self._best_loaded)

    def get_batch_samples(self, *args: Any, **kwargs: Any) -> Any:
        """The micro-batches of the next step."""
        self._window = []
        return super().get_batch_samples(*args, **kwargs)

    def training_step(self, model: nn.Module, inputs: dict[str, Any], num_items_in_batch: Any = None) -> Tensor:
        """The gradient of the loss of the whole batch, taken when its last micro-batch is there."""
        self.posterior.train()
        if callable(getattr(self.optimizer, "train", None)):
            self.optimizer.train()
        features, targets = self._separated(self._prepare_inputs(inputs))
        if targets is None:
            raise DataError(f"A training batch must have {self.label_names[0]!r}, but it has {sorted(inputs)}.")
        self._window.append(labelled(features, targets, "train_dataset"))
        if not self.accelerator.sync_gradients:
            return torch.zeros((), device=self.args.device)
        window, self._window = self._window, []
        self._steps = steps = self._steps or self._new_steps()
        total = self._total(sum(batch.total for batch in window), steps.processes)
        parts = [MicroBatch(batch.inputs, batch.targets, batch.total, total) for batch in window]
        place = TrainingPosition(int(self.state.epoch or 0), self.state.global_step, self.state.global_step)
        with preserved_global_state(self.posterior.device):
            return torch.tensor(steps.gradients(parts, place), device=self.args.device)

    def compute_loss(self, *args: Any, **kwargs: Any) -> Any:
        """Raise: a step takes the loss of the whole batch, which is not a sum over its micro-batches."""
        raise InvalidArgumentError(f"CalibayesTrainer does not compute losses one by one. {_ITS_LOSS}")

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log, with the terms of the loss since the last time."""
        if "loss" in logs and self._steps is not None:
            logs.update(self._steps.take_means())
        super().log(logs, start_time)

    def get_decay_parameter_names(self, model: nn.Module) -> list[str]:
        """All of the posterior's parameters but those that its groups want without weight decay."""
        groups = [group for group in self.posterior.parameter_groups() if group.get("weight_decay") == 0.0]
        without = {id(parameter) for group in groups for parameter in group["params"]}
        return [name for name, parameter in self.model.named_parameters() if id(parameter) not in without]

    def create_optimizer(self, *args: Any) -> Any:
        """The optimiser of the posterior's parameters."""
        check_full_precision(
            self.posterior,
            "Convert the network with `model.float()`, or load it with `dtype=torch.float32`; bf16=True runs it in half.",
        )
        new = self.optimizer is None
        if new and self._factory is not None:
            self.optimizer = made_optimizer(self._factory, self.posterior, self.objective, self._examples)
        optimizer = super().create_optimizer(*args)
        check_optimizer(optimizer, self.posterior)
        if new and self.rho_learning_rate is not None:
            set_rho_rate(optimizer, self.posterior, float(self.rho_learning_rate))
        return optimizer

    def _clip_grad_norm(self, model: nn.Module) -> Any:
        """Clip the gradient of each member by its own norm; returns that of all of them."""
        members = self.posterior.members
        if len(members) == 1:
            return super()._clip_grad_norm(model)
        largest = self.args.max_grad_norm
        return torch.stack([self.accelerator.clip_grad_norm_(member.parameters(), largest) for member in members]).norm()

    # --- the parts of a step ---

    def _examples(self) -> int:
        """$|D|$."""
        if self.dataset_size is not None:
            return self.dataset_size
        if isinstance(self.train_dataset, Sized):
            return len(self.train_dataset)
        if self.posterior.num_bayesian:
            raise DataError("The training data has no length, but the KL is weighed by it. Pass `dataset_size`.")
        return 1

    def _new_steps(self) -> MemberSteps:
        settings = StepSettings(samples=self.samples, precision=torch.bfloat16 if self.args.bf16 else None, seed=self.args.seed)
        processes = Processes.of("auto" if self.args.world_size > 1 else None)
        optimizer = getattr(self.optimizer, "optimizer", self.optimizer)  # without what accelerate wraps around it
        return MemberSteps(self.posterior, self.objective, optimizer, self._examples(), settings, processes)

    def _total(self, own: int, processes: Processes) -> int:
        """Return the number of examples in the batch of all processes."""
        counts = processes.counts(own, self.posterior.device)
        if counts != processes.sizes(sum(counts)):
            raise DataError(
                f"Processes must have equal shares of every batch, but have {counts} examples. Leave `even_batches` as it is."
            )
        return sum(counts)
