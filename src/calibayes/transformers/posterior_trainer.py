"""A ``Trainer`` whose model is a posterior: it saves, loads and describes it."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from torch import nn
from transformers import Trainer

from calibayes.posterior.abstract_posterior import Posterior
from calibayes.training.training_hooks import TrainingHooks
from calibayes.training.weight_averaging import Averaging
from calibayes.transformers import pretrained_folder

__all__ = ["PosteriorModel", "PosteriorTrainer"]


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
    """Keeps posteriors where ``transformers.Trainer`` keeps networks."""

    model: Any
    optimizer: Any
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
        """Write all but ``training_args.bin``, a pickle; with an average, also the weights that training goes on from."""
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
