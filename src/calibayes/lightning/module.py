"""Any network, trained by any of the four schemes, as a LightningModule."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import torch
import torch.distributed as dist
from lightning.pytorch import LightningModule
from lightning.pytorch.strategies import DDPStrategy
from torch import Tensor, nn

from calibayes.checkpoint import check_prior
from calibayes.checks import integer, number_of_samples, positive_integer
from calibayes.data.sources import as_batch
from calibayes.devices import widest
from calibayes.distributed import ALONE, Processes
from calibayes.errors import InvalidArgumentError
from calibayes.lightning.evaluation import Evaluation
from calibayes.lightning.loaders import number_of_examples, shuffle_by_epoch
from calibayes.lightning.sampled import SampledNetwork
from calibayes.metrics.scores import Scores
from calibayes.objective import Objective, check_batch_terms, checked_objective
from calibayes.posterior import Point
from calibayes.posterior.base import Posterior
from calibayes.predictive import Predictive, Samples, inputs_of, predict, samples_for
from calibayes.randomness import seed_globally
from calibayes.training.data_terms import Place
from calibayes.training.optimizers import OptimizerFactory, made_optimizer
from calibayes.training.precision import check_full_precision
from calibayes.training.schedulers import SchedulerFactory
from calibayes.training.step import check_finite, handles_kl

__all__ = ["CalibayesModule"]

_PRIOR = "calibayes_prior"
_METRICS = ("nll", "accuracy", "ece", "brier")
_FIELDS = ("probs", "confidence", "decision", "entropy", "epistemic", "aleatoric")


class CalibayesModule(LightningModule):  # type: ignore[misc]
    r"""A posterior and an objective for Lightning's Trainer: Algorithm 1, for all four schemes.

    Every step draws the same $\theta_r$ in all processes and takes the calibration term, and batch norms, over the batch of
    all of them, so that training under ``strategy="ddp"`` gives the weights of a single process. Batches are
    ``(x, y)``, ``((x1, x2), y)`` or dicts with ``"labels"``.

    Logged are ``train_loss`` and its terms by name, say ``cross_entropy``, ``calibration`` and ``kl``, at every step, and
    ``val_nll``, ``val_accuracy``, ``val_ece`` and ``val_brier`` (``test_…``) of the ensemble over all examples of all
    processes. Every term must be taken on the training batch.

    Args:
        posterior: a `Point` (FNN, CA-FNN) or a `MeanField` (BNN, CA-BNN); a network alone is made a `Point`.
        objective: what is minimised.
        optimizer: a factory, parameters → optimiser; called with named parameter groups, $\rho$ without weight decay. Or a
            `NaturalGradient`.
        scheduler: a factory, optimiser → learning-rate scheduler; one that looks at a metric looks at ``monitor``.
        scheduler_interval: whether the scheduler steps once an ``"epoch"`` or once a ``"step"``.
        monitor: the metric that a ``ReduceLROnPlateau`` looks at.
        samples: $R$, samples of the weights a step.
        dataset_size: $|D|$, which the KL term is divided by; ``"auto"`` asks the Trainer's train dataloader.
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
        evaluation_samples: Samples = 10,
        prediction_samples: Samples = 20,
        seed: int = 0,
    ) -> None:
        super().__init__()
        check_batch_terms(checked_objective(objective), "CalibayesModule", logged=("train_loss",))
        if scheduler_interval not in ("epoch", "step"):
            raise InvalidArgumentError(
                f"Expected `scheduler_interval` to be 'epoch' or 'step', but got {scheduler_interval!r}."
            )
        self.posterior = posterior if isinstance(posterior, Posterior) else Point(posterior)
        self.objective = objective
        self.samples = positive_integer("samples", samples) if self.posterior.num_bayesian else 1
        self.dataset_size = dataset_size if dataset_size == "auto" else positive_integer("dataset_size", dataset_size)
        self.evaluation_samples = number_of_samples("evaluation_samples", evaluation_samples)
        self.prediction_samples = number_of_samples("prediction_samples", prediction_samples)
        self.seed = integer("seed", seed)
        self.scores: dict[str, Scores] = {}
        self._optimizer, self._scheduler = optimizer, scheduler
        self._plan = {"interval": scheduler_interval, "monitor": monitor}
        self._evaluation: Evaluation | None = None
        self._size = 1
        self._network: SampledNetwork | None = None
        self._accumulated = 1

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The network's output at the mean weights."""
        return self.posterior(*args, **kwargs)

    def configure_optimizers(self) -> Any:
        """What the factories make."""
        made = made_optimizer(self._optimizer, self.posterior, self.objective, self._examples)
        if self._scheduler is None:
            return made
        return {"optimizer": made, "lr_scheduler": {"scheduler": self._scheduler(made), **self._plan}}

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

    def on_train_start(self) -> None:
        """Find out how many examples there are."""
        if self.posterior.num_bayesian:
            self._size = self._examples()
        # After its sanity check Lightning sets attributes of modules that it knows, and those of the network are not among
        # them: in evaluation mode its batch norms would pass for frozen ones, which processes need not share.
        self.posterior.train()
        self._network = SampledNetwork(self.posterior, self.samples, self.seed, self._processes())

    def on_train_epoch_start(self) -> None:
        """Let what is random in the data depend on seed and epoch."""
        self._warn_of_accumulation()
        shuffle_by_epoch(self.trainer.train_dataloader, self.seed, self.current_epoch, self.global_rank)
        self._seed_data(0)

    def training_step(self, batch: Any, batch_idx: int) -> Tensor:
        """The loss of one batch of all processes."""
        assert self._network is not None
        found, place = as_batch(batch, "train"), Place(self.current_epoch, batch_idx, self.global_step)
        logits = self._network.logits(found, place)
        with torch.autocast(self.device.type, enabled=False):
            kl, group = self.posterior.kl(), self._processes().group
            kl = kl.detach() if handles_kl(self.optimizers()) else kl
            terms = self.objective(logits, found.targets, kl, dataset_size=self._size, step=place.step, group=group)
        # One transfer, in the loss's own type: not every device has float64.
        total, *numbers = torch.stack([value.detach().to(terms.total.dtype) for value in terms]).tolist()
        values = dict(zip(terms.values, numbers, strict=True))
        check_finite(values, place, "`Trainer(gradient_clip_val=1.0)`")
        self.log("train_loss", total, prog_bar=True, batch_size=found.total)
        self.log_dict(values, batch_size=found.total)
        return terms.total

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Let an optimiser that draws noise draw the same in every process."""
        seed_globally(self.seed, "optimizer", self.global_step)

    def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Let what is random in the next batch depend on its place, and on the process."""
        self._seed_data(batch_idx + 1)

    def _examples(self) -> int:
        """$|D|$."""
        if self.dataset_size != "auto":
            return self.dataset_size
        if self.trainer.train_dataloader is None:
            # Optimisers are made before dataloaders; asking for the number of steps makes the Trainer set them up.
            assert self.trainer.estimated_stepping_batches
        return number_of_examples(self.trainer.train_dataloader)

    def _seed_data(self, batch: int) -> None:
        """Let what is random in a batch of this process depend on its place."""
        seed_globally(self.seed, "data", self.current_epoch, batch, self.global_rank, everything=True)

    def _warn_of_accumulation(self) -> None:
        """Tell what accumulated batches do to the terms, once for each number: a callback may change it."""
        count = self.trainer.accumulate_grad_batches
        names = [term.name for term in self.objective.terms if term.weight(self.global_step, 1) > 0]
        if count > 1 and count != self._accumulated and names:
            warnings.warn(
                f"With accumulate_grad_batches={count} the {' and '.join(names)} term is that of each batch on its own, with "
                "the weight for the size of that batch, and not of the batches that are accumulated.",
                stacklevel=2,
            )
            self._accumulated = count

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Note the prior, which is no part of the weights."""
        checkpoint[_PRIOR] = self.posterior.prior()

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Check that the weights were trained with the same prior."""
        if _PRIOR in checkpoint:
            check_prior(checkpoint[_PRIOR], self.posterior, "The checkpoint")

    # --- validation, test and prediction ---

    def on_validation_epoch_start(self) -> None:
        """Start anew."""
        self._evaluation = Evaluation(self.trainer.val_dataloaders)

    def on_test_epoch_start(self) -> None:
        """Start anew."""
        self._evaluation = Evaluation(self.trainer.test_dataloaders)

    def validation_step(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> None:
        """Predict a batch."""
        self._evaluate(batch, dataloader_idx, "validation")

    def test_step(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> None:
        """Predict a batch."""
        self._evaluate(batch, dataloader_idx, "test")

    def on_validation_epoch_end(self) -> None:
        """Log the metrics of all examples."""
        self._log_scores("val")

    def on_test_epoch_end(self) -> None:
        """Log the metrics of all examples."""
        self._log_scores("test")

    def predict_step(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> dict[str, Tensor]:
        """The fields of a `calibayes.Predictive` by name; labels in the batch are ignored."""
        found = self._predicted(inputs_of(batch), self.prediction_samples)
        return {name: getattr(found, name) for name in _FIELDS}

    def _evaluate(self, batch: Any, loader: int, name: str) -> None:
        found = as_batch(batch, name)
        assert self._evaluation is not None
        self._evaluation.update(self._predicted(found.inputs, self.evaluation_samples).probs, found.targets, loader)

    def _predicted(self, inputs: Any, samples: Samples) -> Predictive:
        wanted = samples_for(self.posterior, samples)
        return predict(self.posterior, inputs, samples=wanted, seed=self.seed, dtype=widest(self.posterior.device))

    def _log_scores(self, stage: str) -> None:
        assert self._evaluation is not None
        for suffix, scores in self._evaluation.scores(self._processes()).items():
            self.scores[f"{stage}{suffix}"] = scores
            values = {f"{stage}_{name}{suffix}": float(getattr(scores, name)) for name in _METRICS}
            # All processes have the same; Lightning warns if it is not told so.
            self.log_dict(values, sync_dist=True, add_dataloader_idx=False)
        self._evaluation = None

    def _processes(self) -> Processes:
        return Processes.of(dist.group.WORLD) if self.trainer.world_size > 1 else ALONE
