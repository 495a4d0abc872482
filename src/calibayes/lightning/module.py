"""Any network, trained by any method, as a LightningModule."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any, Literal

import torch
from lightning.pytorch.strategies import DDPStrategy
from torch import Tensor, nn

from calibayes.checks import integer, positive_integer
from calibayes.data.sources import Batch, as_batch
from calibayes.errors import InvalidArgumentError
from calibayes.lightning.loaders import number_of_examples, shuffle_by_epoch, training_data
from calibayes.lightning.predicting_module import PredictingModule
from calibayes.lightning.sampled_network import SampledNetwork, idle_parameters
from calibayes.lightning.trainer_callback import LightningPosteriorCallback, planned_epochs
from calibayes.methods import build, method_named
from calibayes.methods.fit_arguments import fit_settings
from calibayes.objective import Objective, check_batch_terms, checked_objective
from calibayes.objective.terms import Terms
from calibayes.posterior import Point
from calibayes.posterior.abstract_posterior import Posterior
from calibayes.posterior.ensemble import member_seed
from calibayes.predictive import Samples
from calibayes.randomness import seed_globally
from calibayes.training.micro_batches import TrainingPosition
from calibayes.training.optimizers import OptimizerFactory, SchedulerFactory, check_interval, handles_kl, made_optimizer
from calibayes.training.training_hooks import TrainingHooks
from calibayes.training.weight_averaging import Averaging, check_averaging
from calibayes.training.weight_checks import check_finite, check_full_precision

__all__ = ["CalibayesModule"]


class CalibayesModule(PredictingModule):
    r"""A posterior and an objective for Lightning's Trainer: Algorithm 1, for every posterior and method.

    Every step draws the same $\theta_r$ in all processes and takes the calibration term, and batch norms, over the batch of
    all of them, so that training under ``strategy="ddp"`` gives the weights of a single process. Batches are
    ``(x, y)``, ``((x1, x2), y)`` or dicts with ``"labels"``. The members of an `Ensemble` are trained on the same batches,
    with separate losses, noise, dropout, running statistics and clipping.

    Logged are ``train_loss`` and its terms by name, say ``cross_entropy``, ``calibration`` and ``kl``, at every step (of an
    `Ensemble` the means over its members), and ``val_nll``, ``val_accuracy``, ``val_ece`` and ``val_brier`` (``test_…``) of
    the predictive ensemble over all examples of all processes. Every term must be taken on the training batch.

    Args:
        posterior: a `Point`, a `MeanField`, an `Ensemble` or any other; a network alone is made a `Point`.
        objective: what is minimised.
        optimizer: a factory, parameters → optimiser; called with named parameter groups, $\rho$ without weight decay. Or a
            `NaturalGradient`.
        scheduler: a factory, optimiser → learning-rate scheduler; one that looks at a metric looks at ``monitor``.
        scheduler_interval: whether the scheduler steps once an ``"epoch"`` or once a ``"step"``.
        monitor: the metric that a ``ReduceLROnPlateau`` looks at.
        samples: $R$, samples of the weights a step.
        dataset_size: $|D|$, which the KL term is divided by; ``"auto"`` asks the Trainer's train dataloader.
        averaging: an average of the weights over training, `EMA(0.99)` say: what validation sees, what the weights in
            checkpoints are, and what the posterior has after training.
        evaluation_samples: $S$ of validation and test, or ``"mean"`` for the mean weights.
        prediction_samples: $S$ of ``Trainer.predict``, likewise.
        seed: of noise, dropout and shuffling. Global generators are seeded from it at every step.

    Attributes:
        posterior: what is trained, ready for `calibayes.predict` and `calibayes.save`.
        scores: every metric of the last validation (``"val"``) and test (``"test"``), as `calibayes.evaluate` returns them.

    Examples:
        >>> from calibayes.lightning import CalibayesModule
        >>> posterior = calibayes.MeanField(torch.nn.Linear(4, 3))
        >>> module = CalibayesModule(posterior, calibayes.Objective(lam=10.0, beta=0.1), samples=2)
        >>> [group["name"] for group in module.configure_optimizers().param_groups]
        ['*.mu', '*.rho']
    """

    def __init__(
        self,
        posterior: Posterior | nn.Module,
        objective: Objective,
        *,
        optimizer: OptimizerFactory = torch.optim.Adam,
        scheduler: SchedulerFactory | None = None,
        scheduler_interval: Literal["epoch", "step"] = "epoch",
        monitor: str = "val_nll",
        samples: int = 1,
        dataset_size: int | Literal["auto"] = "auto",
        averaging: Averaging | None = None,
        evaluation_samples: Samples = 10,
        prediction_samples: Samples = 20,
        seed: int = 0,
    ) -> None:
        check_batch_terms(checked_objective(objective), "CalibayesModule", logged=("train_loss",))
        check_interval(scheduler_interval)
        check_averaging(averaging)
        wrapped = posterior if isinstance(posterior, Posterior) else Point(posterior)
        super().__init__(wrapped, averaging, evaluation_samples, prediction_samples, integer("seed", seed))
        self.objective = objective
        self.samples = positive_integer("samples", samples) if self.posterior.num_bayesian else 1
        self.dataset_size = dataset_size if dataset_size == "auto" else positive_integer("dataset_size", dataset_size)
        self._optimizer, self._scheduler = optimizer, scheduler
        self._plan = {"interval": scheduler_interval, "monitor": monitor}
        self._size = 1
        self._networks: list[SampledNetwork] = []
        self._callback = LightningPosteriorCallback()
        self._idle: list[nn.Parameter] = []
        self._accumulated = 1

    @classmethod
    def from_method(cls, method: str, net: nn.Module | Callable[[], nn.Module], **settings: Any) -> CalibayesModule:
        """The module for a method by name: its posterior, objective, optimiser, samples and average of the weights.

        Args:
            method: one of `calibayes.METHODS`.
            net: a network, or a function that makes one, as for `calibayes.build`.
            settings: those of the method and those of this class, by name; the latter go before what the method chooses.

        Examples:
            >>> from calibayes.lightning import CalibayesModule
            >>> module = CalibayesModule.from_method("ensemble", torch.nn.Linear(4, 3), members=2, dataset_size=100)
            >>> len(module.posterior.members), module.dataset_size
            (2, 100)
        """
        chosen = method_named(method)
        known = [name for name, each in inspect.signature(CalibayesModule).parameters.items() if each.kind is each.KEYWORD_ONLY]
        own = {name: value for name, value in settings.items() if name in known and not chosen.has(name)}
        plan = build(method, net, **{name: value for name, value in settings.items() if name not in own})
        return cls(plan.posterior, plan.objective, **{**fit_settings(plan, known, method, "CalibayesModule"), **own})

    def configure_optimizers(self) -> Any:
        """Make the optimiser and the scheduler from their factories."""
        optimizer = made_optimizer(self._optimizer, self.posterior, self.objective, self._examples)
        if self._scheduler is None:
            return optimizer
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": self._scheduler(optimizer), **self._plan}}

    def configure_callbacks(self) -> list[Any]:
        """The callback that tells the posterior about steps and epochs; a subclass with others adds them to these."""
        return [self._callback]

    # --- training ---

    def on_fit_start(self) -> None:
        """Check that the Trainer's settings and the objective go together."""
        trainer = self.trainer
        if trainer.world_size > 1 and not isinstance(trainer.strategy, DDPStrategy):
            raise InvalidArgumentError(
                f"Expected a Trainer with `strategy='ddp'` for several processes, but got {type(trainer.strategy).__name__}: "
                "each process needs all the weights to draw samples of them."
            )
        instead = f"Use `net.float()`, and `Trainer(precision='bf16-mixed')` instead of {trainer.precision!r}."
        check_full_precision(self.posterior, instead)
        self.posterior.train()
        self._training_hooks = None

    def on_train_start(self) -> None:
        """Find out how many examples there are, and tell the posterior how many epochs."""
        if self.posterior.num_bayesian:
            self._size = self._examples()
        # After its sanity check Lightning sets attributes of modules that it knows, and those of the network are not among
        # them: in evaluation mode its batch norms would pass for frozen ones, which processes need not share.
        self.posterior.train()
        processes = self._processes()
        self._networks = [
            SampledNetwork(member, self.samples, member_seed(self.seed, index), processes)
            for index, member in enumerate(self.posterior.members)
        ]
        trainer = self.trainer
        self._training_hooks = self._callback.hooks = TrainingHooks(
            self.posterior, self.averaging, lambda: training_data(trainer.train_dataloader, trainer.world_size), self.seed
        )
        resumed = trainer.ckpt_path is not None
        self._training_hooks.begin(planned_epochs(trainer), resumed=resumed, saved=self._saved_average if resumed else None)

    def on_train_epoch_start(self) -> None:
        """Let randomness in the data depend on seed and epoch."""
        self._warn_of_accumulation()
        shuffle_by_epoch(self.trainer.train_dataloader, self.seed, self.current_epoch, self.global_rank)
        self._seed_data(0)

    def training_step(self, batch: Any, batch_idx: int) -> Tensor:
        """The loss of one batch of all processes: the sum of the members' own."""
        examples, place = as_batch(batch, "train"), TrainingPosition(self.current_epoch, batch_idx, self.global_step)
        members = [self._terms(network, examples, place) for network in self._networks]
        # One transfer, in the loss's own type: not every device has float64.
        numbers = [[value.detach().to(terms.total.dtype) for value in terms] for terms in members]
        total, *means = torch.stack([torch.stack(each) for each in numbers]).mean(0).tolist()
        values = dict(zip(members[0].values, means, strict=True))
        check_finite(values, place, "`Trainer(gradient_clip_val=1.0)`")
        self.log("train_loss", total, prog_bar=True, batch_size=examples.total)
        self.log_dict(values, batch_size=examples.total)
        loss = sum([terms.total for terms in members[1:]], start=members[0].total)
        if self.trainer.world_size > 1:
            self._idle = idle_parameters(loss, self.posterior.parameters())
            for parameter in self._idle:  # a gradient of zero
                loss = loss + 0.0 * parameter.sum()
        return loss

    def _terms(self, network: SampledNetwork, batch: Batch, place: TrainingPosition) -> Terms:
        """The objective of one member."""
        logits = network.logits(batch, place)
        with torch.autocast(self.device.type, enabled=False):
            kl, group = network.posterior.kl(), self._processes().group
            kl = kl.detach() if handles_kl(self.optimizers()) else kl
            return self.objective(logits, batch.targets, kl, dataset_size=self._size, step=place.step, group=group)

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Let an optimiser that draws noise draw the same in every process."""
        for parameter in self._idle:
            parameter.grad = None
        seed_globally(self.seed, "optimizer", self.global_step)

    def configure_gradient_clipping(
        self, optimizer: Any, gradient_clip_val: float | None = None, gradient_clip_algorithm: str | None = None
    ) -> None:
        """Clip the gradient of each member by its own norm."""
        members = self.posterior.members
        if len(members) == 1 or not gradient_clip_val or gradient_clip_algorithm == "value":
            super().configure_gradient_clipping(optimizer, gradient_clip_val, gradient_clip_algorithm)
            return
        for member in members:
            nn.utils.clip_grad_norm_(member.parameters(), gradient_clip_val)

    def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Let randomness in the next batch depend on its position, and on the process."""
        self._seed_data(batch_idx + 1)

    def on_train_end(self) -> None:
        """Give the posterior the average of the weights, if there is one, and tell it that training is over."""
        assert self._training_hooks is not None
        self._training_hooks.finish()

    def _examples(self) -> int:
        """$|D|$."""
        if self.dataset_size != "auto":
            return self.dataset_size
        if self.trainer.train_dataloader is None:
            # Optimisers are made before dataloaders; asking for the number of steps makes the Trainer set them up.
            assert self.trainer.estimated_stepping_batches
        return number_of_examples(self.trainer.train_dataloader)

    def _seed_data(self, batch: int) -> None:
        seed_globally(self.seed, "data", self.current_epoch, batch, self.global_rank, everything=True)

    def _warn_of_accumulation(self) -> None:
        """Warn of what accumulated batches do to the terms, once for each number of them: a callback may change it."""
        count = self.trainer.accumulate_grad_batches
        names = [term.name for term in self.objective.terms if term.weight(self.global_step, 1) > 0]
        if count > 1 and count != self._accumulated and names:
            warnings.warn(
                f"With accumulate_grad_batches={count} the {' and '.join(names)} term is that of each batch on its own, with "
                "the weight for the size of that batch, and not of the batches that are accumulated.",
                stacklevel=2,
            )
            self._accumulated = count
