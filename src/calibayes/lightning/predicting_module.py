"""The part of `CalibayesModule` that looks at a posterior: validation, test, prediction and checkpoints."""

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
from calibayes.lightning.gathered_metrics import Evaluation
from calibayes.metrics.score_table import Scores
from calibayes.posterior.abstract_posterior import Posterior
from calibayes.predictive import Predictive, Samples, predict, samples_for
from calibayes.training.framework_run import FrameworkRun, check_saved_average
from calibayes.training.weight_averaging import Averaging

__all__ = ["PredictingModule"]

_PRIOR, _AVERAGING, _PREFIX = "calibayes_prior", "calibayes_averaging", "posterior."
_METRICS = ("nll", "accuracy", "ece", "brier")
_FIELDS = ("probs", "confidence", "decision", "entropy", "epistemic", "aleatoric")


class PredictingModule(LightningModule):  # type: ignore[misc]
    """A posterior that a Trainer validates, tests, predicts with and writes to checkpoints.

    Args:
        posterior: the posterior.
        averaging: the rule by which its weights are averaged in training, or ``None``.
        evaluation_samples: $S$ of validation and test.
        prediction_samples: $S$ of prediction.
        seed: of the samples.
    """

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
        self._evaluation: Evaluation | None = None
        self._run: FrameworkRun | None = None
        self._saved_average: dict[str, Any] | None = None
        self._looking = ExitStack()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The network's output at the mean weights."""
        return self.posterior(*args, **kwargs)

    # --- validation, test and prediction ---

    def on_validation_epoch_start(self) -> None:
        """Start anew, with the average of the weights if there is one."""
        self._evaluation = Evaluation(self.trainer.val_dataloaders)
        if self._run is not None:
            self._looking.enter_context(self._run.averaged())

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
        self._looking.close()  # now, since checkpoints are written before the next hook is called
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
        return predict(self.posterior, inputs, samples=wanted, seed=self.seed, dtype=widest_float(self.posterior.device))

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

    # --- checkpoints ---

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Note the prior, which is no part of the weights; with an average, that is what the weights are.

        The weights that training goes on from lie beside it.
        """
        checkpoint[_PRIOR] = self.posterior.prior()
        if self.averaging is None:
            return
        if self._run is None:
            checkpoint[_AVERAGING] = {"rule": repr(self.averaging), "average": None, "weights": None}
            return
        with self._run.averaged():
            values = {name: value.clone() for name, value in self.posterior.state_dict().items()}
        checkpoint["state_dict"].update({f"{_PREFIX}{name}": value for name, value in values.items()})
        checkpoint[_AVERAGING] = self._run.state()

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Check that the weights were trained with the same prior; to go on with training, take those of the training."""
        if _PRIOR in checkpoint:
            check_prior(checkpoint[_PRIOR], self.posterior, "The checkpoint")
        if self._trainer is None or self.trainer.state.fn != TrainerFn.FITTING:
            return
        self._saved_average = checkpoint.get(_AVERAGING)
        check_saved_average(self._saved_average, self.averaging, "The checkpoint")
        if self._saved_average is not None and self._saved_average["weights"] is not None:
            weights = self._saved_average["weights"].items()
            checkpoint["state_dict"].update({f"{_PREFIX}{name}": value for name, value in weights})
