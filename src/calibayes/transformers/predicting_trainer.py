"""The parts of `CalibayesTrainer` that do not train: evaluation and prediction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, IterableDataset

from calibayes import metrics
from calibayes.data.sources.datasets import DatasetSource
from calibayes.device_precision import widest_float
from calibayes.errors import DataError
from calibayes.predictive import Predictive, Samples, predict, samples_for
from calibayes.training.training_hooks import LoaderData, TrainingData
from calibayes.transformers.posterior_trainer import PosteriorTrainer

__all__ = ["PredictingTrainer", "compute_metrics"]


def compute_metrics(prediction: Any) -> dict[str, float]:
    """Accuracy, NLL, Brier score and ECE: what `CalibayesTrainer` computes unless it is given something else.

    Args:
        prediction: the ``EvalPrediction`` of a `CalibayesTrainer`, whose predictions are probabilities.

    Examples:
        >>> from transformers import EvalPrediction
        >>> probs = torch.tensor([[0.9, 0.1], [0.4, 0.6]]).numpy()
        >>> scores = compute_metrics(EvalPrediction(predictions=probs, label_ids=torch.tensor([0, 0]).numpy()))
        >>> {name: round(value, 4) for name, value in scores.items()}
        {'accuracy': 0.5, 'nll': 0.5108, 'brier': 0.37, 'ece': 0.35}
    """
    # With `eval_do_concat_batches=False` there is an array for each batch.
    given = (prediction.predictions, prediction.label_ids)
    probs, targets = (np.concatenate(each) if isinstance(each, list) else each for each in given)
    return {
        "accuracy": metrics.accuracy(probs, targets),
        "nll": metrics.nll(probs, targets, check=False),
        "brier": metrics.brier(probs, targets, check=False),
        "ece": metrics.ece(probs, targets, check=False),
    }


class PredictingTrainer(PosteriorTrainer):
    """Evaluates and predicts with the ensemble of a posterior's networks."""

    prediction_samples: Samples
    label_names: list[str]

    def predictive(self, dataset: Any, *, samples: Samples | None = None, keep_samples: bool = False) -> Predictive:
        """The ensemble's prediction with its uncertainties; several processes share the work, and each gets the whole.

        Args:
            dataset: as for ``predict``; labels in it are ignored.
            samples: $S$; ``prediction_samples`` by default, ``"mean"`` for the mean weights alone.
            keep_samples: also return every sample's probabilities.
        """
        prepared = self.get_test_dataloader(dataset)

        def inputs(examples: list[Any]) -> dict[str, Any]:
            return self._separated(prepared.collate_fn(examples))[0]

        loader = DataLoader(prepared.dataset, batch_size=self.args.eval_batch_size, collate_fn=inputs)
        with self._averaged():
            return self._predict(loader, self.prediction_samples if samples is None else samples, keep_samples, shared=True)

    def evaluation_loop(self, *args: Any, **kwargs: Any) -> Any:
        """Evaluate or predict, with the average of the weights if there is one."""
        with self._averaged():
            return super().evaluation_loop(*args, **kwargs)

    def prediction_step(
        self, model: nn.Module, inputs: dict[str, Any], prediction_loss_only: bool, ignore_keys: list[str] | None = None
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        """The ensemble's NLL and probabilities, and the labels."""
        features, targets = self._separated(self._prepare_inputs(inputs))
        probs = self._predict(features, self.prediction_samples).probs
        loss = None if targets is None else torch.tensor(metrics.nll(probs, targets), device=probs.device)
        return loss, None if prediction_loss_only else probs, targets

    def _separated(self, inputs: Mapping[str, Any]) -> tuple[dict[str, Any], Tensor | None]:
        """The network's inputs, and the labels."""
        label = self.label_names[0]
        return {name: value for name, value in inputs.items() if name != label}, inputs.get(label)

    def _predict(self, x: Any, samples: Samples, keep_samples: bool = False, *, shared: bool = False) -> Predictive:
        with self.accelerator.autocast():
            return predict(
                self.posterior,
                x,
                samples=samples_for(self.posterior, samples),
                batch_size=self.args.eval_batch_size,
                seed=self.args.seed,
                keep_samples=keep_samples,
                dtype=widest_float(self.posterior.device),
                group="auto" if shared and self.args.world_size > 1 else None,
            )

    def _data(self) -> TrainingData:
        """The training data, to be read once more by every process."""
        prepared = self.get_test_dataloader(self.train_dataset)
        size = self.args.train_batch_size * self.args.world_size * self.args.gradient_accumulation_steps

        def collate(examples: list[Any]) -> dict[str, Any]:
            features, targets = self._separated(prepared.collate_fn(examples))
            return {**features, "labels": targets}

        if not isinstance(self.train_dataset, IterableDataset):
            return DatasetSource(prepared.dataset, size, collate, "train_dataset")
        if self.args.world_size > 1:
            raise DataError(
                f"The posterior needs all training examples once more, but each of {self.args.world_size} processes has a part "
                f"of a stream ({type(self.train_dataset).__name__}). Use a Dataset with `__len__`."
            )
        return LoaderData(DataLoader(prepared.dataset, batch_size=size, collate_fn=collate), "train_dataset")
