"""The parts of `CalibayesModule` that do not train: validation, test, prediction and checkpoints."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import torch.distributed as dist
from lightning.pytorch import LightningModule
from lightning.pytorch.trainer.states import TrainerFn
from torch import Tensor

from calibayes.checkpoint import check_prior
from calibayes.checks import number_of_samples
from calibayes.data.sources import as_batch
from calibayes.data.sources.input_blocks import inputs_of
from calibayes.device_precision import widest_float
from calibayes.distributed import ALONE, Processes
from calibayes.lightning.loaders import flat, own_examples
from calibayes.metrics import Stream
from calibayes.metrics.score_table import Scores
from calibayes.posterior.abstract_posterior import Posterior
from calibayes.predictive import Predictive, Samples, predict, samples_for
from calibayes.training.training_hooks import TrainingHooks, check_saved_average, cloned_state
from calibayes.training.weight_averaging import Averaging

__all__ = ["PredictingModule"]

_PRIOR, _AVERAGING, _PREFIX = "calibayes_prior", "calibayes_averaging", "posterior."
_METRICS = ("nll", "accuracy", "ece", "brier")
_FIELDS = ("probs", "confidence", "decision", "entropy", "epistemic", "aleatoric")


class PredictingModule(LightningModule):  # type: ignore[misc]
    """A posterior that a Trainer validates, tests, predicts with and writes to checkpoints."""

    def __init__(
        self,
        posterior: Posterior,
        averaging: Averaging | None,
        evaluation_samples: Samples,
        prediction_samples: Samples,
        seed: int,
    ) -> None:
        super().__init__()
        self.posterior = posterior
        self.averaging = averaging
        self.evaluation_samples = number_of_samples("evaluation_samples", evaluation_samples)
        self.prediction_samples = number_of_samples("prediction_samples", prediction_samples)
        self.seed = seed
        self.scores: dict[str, Scores] = {}
        self._unread: list[int | None] = []  # for each dataloader, the examples of this process that are still to come
        self._streams: list[Stream] = []
        self._training_hooks: TrainingHooks | None = None
        self._saved_average: dict[str, Any] | None = None
        self._averaged = ExitStack()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The network's output at the mean weights."""
        return self.posterior(*args, **kwargs)

    # --- validation, test and prediction ---

    def on_validation_epoch_start(self) -> None:
        """Start with empty metrics, and with the average of the weights if there is one."""
        self._start_metrics(self.trainer.val_dataloaders)
        if self._training_hooks is not None:
            self._averaged.enter_context(self._training_hooks.averaged())

    def on_test_epoch_start(self) -> None:
        """Start with empty metrics."""
        self._start_metrics(self.trainer.test_dataloaders)

    def validation_step(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> None:
        """Predict a batch."""
        self._evaluate(batch, dataloader_idx, "validation")

    def test_step(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> None:
        """Predict a batch."""
        self._evaluate(batch, dataloader_idx, "test")

    def on_validation_epoch_end(self) -> None:
        """Log the metrics of all examples."""
        self._averaged.close()  # now, since checkpoints are written before the next hook is called
        self._log_scores("val")

    def on_test_epoch_end(self) -> None:
        """Log the metrics of all examples."""
        self._log_scores("test")

    def predict_step(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> dict[str, Tensor]:
        """The fields of a `calibayes.Predictive` by name; labels in the batch are ignored."""
        predictive = self._predicted(inputs_of(batch), self.prediction_samples)
        return {name: getattr(predictive, name) for name in _FIELDS}

    def _start_metrics(self, loaders: Any) -> None:
        self._unread = [own_examples(loader) for loader in flat(loaders)]
        self._streams = [Stream() for _ in self._unread]

    def _evaluate(self, batch: Any, loader: int, name: str) -> None:
        """Add a batch of a dataloader; examples that a sampler repeats to make the processes' shares equal are left out."""
        inputs, targets, *_ = as_batch(batch, name)
        probs, left = self._predicted(inputs, self.evaluation_samples).probs, self._unread[loader]
        if left is not None:
            probs, targets = probs[:left], targets[:left]
            self._unread[loader] = left - len(targets)
        if len(targets):
            self._streams[loader].update(probs, targets)

    def _predicted(self, inputs: Any, samples: Samples) -> Predictive:
        wanted = samples_for(self.posterior, samples)
        return predict(self.posterior, inputs, samples=wanted, seed=self.seed, dtype=widest_float(self.posterior.device))

    def _log_scores(self, stage: str) -> None:
        """Log the metrics of the examples of all processes, under the names that Lightning gives several dataloaders."""
        group = self._processes().group
        results = [stream.together(group).scores(intervals=False) for stream in self._streams]
        self._streams = []
        for number, scores in enumerate(results):
            suffix = f"/dataloader_idx_{number}" if len(results) > 1 else ""
            self.scores[f"{stage}{suffix}"] = scores
            values = {f"{stage}_{name}{suffix}": float(getattr(scores, name)) for name in _METRICS}
            # All processes have the same values; Lightning warns unless `sync_dist` is set.
            self.log_dict(values, sync_dist=True, add_dataloader_idx=False)

    def _processes(self) -> Processes:
        return Processes.of(dist.group.WORLD) if self.trainer.world_size > 1 else ALONE

    # --- checkpoints ---

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Add the prior, which is not part of the weights.

        With an average, the weights in the checkpoint are the average; those that training continues from are beside it.
        """
        checkpoint[_PRIOR] = self.posterior.prior()
        if self.averaging is None:
            return
        if self._training_hooks is None:
            checkpoint[_AVERAGING] = {"rule": repr(self.averaging), "average": None, "weights": None}
            return
        with self._training_hooks.averaged():
            values = cloned_state(self.posterior)
        checkpoint["state_dict"].update({f"{_PREFIX}{name}": value for name, value in values.items()})
        checkpoint[_AVERAGING] = self._training_hooks.state()

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Check that the weights were trained with the same prior; to resume training, restore those it had reached."""
        if _PRIOR in checkpoint:
            check_prior(checkpoint[_PRIOR], self.posterior, "The checkpoint")
        if self._trainer is None or self.trainer.state.fn != TrainerFn.FITTING:
            return
        self._saved_average = checkpoint.get(_AVERAGING)
        check_saved_average(self._saved_average, self.averaging, "The checkpoint")
        if self._saved_average is not None and self._saved_average["weights"] is not None:
            weights = self._saved_average["weights"].items()
            checkpoint["state_dict"].update({f"{_PREFIX}{name}": value for name, value in weights})
