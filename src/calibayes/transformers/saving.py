"""A ``Trainer`` whose model is a posterior: how it is written, read again and described."""

from __future__ import annotations

from typing import Any

from transformers import Trainer

from calibayes.posterior.base import Posterior
from calibayes.transformers import folder

__all__ = ["PosteriorTrainer"]


class PosteriorTrainer(Trainer):  # type: ignore[misc]
    """Keeps posteriors where ``transformers.Trainer`` keeps networks."""

    model: Any
    optimizer: Any

    @property
    def posterior(self) -> Posterior:
        """What is trained; ``trainer.model`` is the same."""
        found: Posterior = self.model
        return found

    def create_model_card(self, *args: Any, **kwargs: Any) -> None:
        """A draft of a model card, as ``transformers.Trainer`` writes it: that of the network."""
        posterior, self.model = self.model, self.posterior.members[0].structure()
        try:
            super().create_model_card(*args, **kwargs)
        finally:
            self.model = posterior

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
        """All but ``training_args.bin``, which is a pickle."""
        place = self.args.output_dir if output_dir is None else output_dir
        folder.write(self.posterior, place)
        processing = self.processing_class or getattr(self.data_collator, "tokenizer", None)
        if processing is not None:
            processing.save_pretrained(place)

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        folder.restore(self.posterior, resume_from_checkpoint)

    def _load_best_model(self) -> None:
        folder.restore(self.posterior, self.state.best_model_checkpoint)
