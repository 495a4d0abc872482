"""A ``Trainer`` whose model is a posterior: the parts of `CalibayesTrainer` that do not train."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, IterableDataset
from transformers import Trainer

from calibayes import metrics
from calibayes.data.sources.datasets import DatasetSource
from calibayes.device_precision import widest_float
from calibayes.errors import DataError
from calibayes.posterior.abstract_posterior import Posterior
from calibayes.predictive import Predictive, Samples, predict, samples_for
from calibayes.training.norm_statistics import TrainingData
from calibayes.training.training_hooks import LoaderData, TrainingHooks
from calibayes.training.weight_averaging import Averaging
from calibayes.transformers import pretrained_folder

__all__ = ["PosteriorModel", "PosteriorTrainer", "compute_metrics"]


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


class PosteriorModel(nn.Module):
    """The module that the ``Trainer`` has in the place of a network.

    The ``Trainer`` and its loggers would take `Posterior.config` for the configuration of a Hugging Face network.
    """

    def __init__(self, posterior: Posterior) -> None:
        super().__init__()
        self.posterior = posterior

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The network's output at the mean weights."""
        return self.posterior(*args, **kwargs)


class PosteriorTrainer(Trainer):  # type: ignore[misc]
    """Saves, loads, evaluates and predicts with posteriors where ``transformers.Trainer`` does so with networks."""

    model: Any
    optimizer: Any
    prediction_samples: Samples
    label_names: list[str]
    averaging: Averaging | None = None
    _hooks: TrainingHooks | None = None
    _resumed = False
    _best_loaded = False
    _saved_average: dict[str, Any] | None = None

    @property
    def posterior(self) -> Posterior:
        """The posterior that is trained."""
        return self.model.posterior  # type: ignore[no-any-return]

    def create_model_card(self, *args: Any, **kwargs: Any) -> None:
        """A draft of a model card, as ``transformers.Trainer`` writes it: that of the network."""
        model, self.model = self.model, self.posterior.members[0].structure()
        try:
            super().create_model_card(*args, **kwargs)
        finally:
            self.model = model

    def _averaged(self) -> AbstractContextManager[None]:
        """The average in place of the weights, while training has one."""
        return nullcontext() if self._hooks is None else self._hooks.averaged()

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
        """Write all but ``training_args.bin``, a pickle; with an average, also the weights that training continues from."""
        place = Path(self.args.output_dir if output_dir is None else output_dir)
        with self._averaged():
            pretrained_folder.write(self.posterior, place)
        if self.is_in_train and self._hooks is not None:
            pretrained_folder.write_average(self._hooks.state(), place)
        processing = self.processing_class or getattr(self.data_collator, "tokenizer", None)
        if processing is not None:
            processing.save_pretrained(place)

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        pretrained_folder.restore(self.posterior, resume_from_checkpoint)
        self._saved_average = pretrained_folder.restore_average(self.posterior, self.averaging, resume_from_checkpoint)
        self._resumed = True

    def _load_best_model(self) -> None:
        pretrained_folder.restore(self.posterior, self.state.best_model_checkpoint)
        self._best_loaded = True

    # --- evaluation and prediction ---

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
