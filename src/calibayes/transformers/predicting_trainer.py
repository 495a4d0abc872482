"""The part of `CalibayesTrainer` that looks at a posterior: evaluation and prediction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, IterableDataset

from calibayes import metrics
from calibayes.data.sources import Batch, as_batch
from calibayes.data.sources.datasets import DatasetSource
from calibayes.device_precision import widest_float
from calibayes.errors import DataError
from calibayes.predictive import Predictive, Samples, predict, samples_for
from calibayes.training.framework_run import TrainingData
from calibayes.transformers.posterior_trainer import PosteriorTrainer

__all__ = ["PredictingTrainer"]


class PredictingTrainer(PosteriorTrainer):
    """Evaluates and predicts with the ensemble of a posterior's networks.

    Attributes:
        prediction_samples: $S$.
    """

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
        return _StreamOrder(DataLoader(prepared.dataset, batch_size=size, collate_fn=collate))


class _StreamOrder:
    """Batches as a stream has them."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        self._loader = loader

    def epoch(self, seed: int, epoch: int) -> Iterator[Batch]:
        return self.ordered()

    def ordered(self) -> Iterator[Batch]:
        return (as_batch(batch, "train_dataset") for batch in self._loader)
