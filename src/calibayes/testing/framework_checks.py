"""Checks of posteriors under Lightning and transformers: they end with the weights of `fit`."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from calibayes.extras import require_package
from calibayes.posterior.abstract_posterior import Posterior
from calibayes.testing.check_runner import Check, run_checks
from calibayes.testing.comparisons import close
from calibayes.testing.network_cases import NetworkCase
from calibayes.testing.posterior_subject import Factory, PosteriorSubject, sgd, soft_objective
from calibayes.testing.prediction_checks import ExampleRows
from calibayes.training.training_hooks import cloned_state

__all__ = ["check_under_lightning", "check_under_transformers"]


class _Perceptron(nn.Module):
    """A network whose input has a name, by which transformers finds it in the data."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)  # type: ignore[no-any-return]


def check_under_lightning(factory: Factory) -> None:
    """Check that Lightning's Trainer ends with the weights of `calibayes.fit`, and predicts as `calibayes.predict` does.

    Args:
        factory: makes the posterior of a network; an AssertionError says what differed.
    """
    _run(check_training_and_prediction_with_lightning, factory, "Lightning")


def check_under_transformers(factory: Factory) -> None:
    """Check that a step of `calibayes.transformers.CalibayesTrainer` is one of `calibayes.fit`, and its predictions too.

    ``factory`` is that of `check_under_lightning`.
    """
    _run(check_a_step_and_prediction_with_transformers, factory, "transformers")


def _run(check: Check, factory: Factory, framework: str) -> None:
    inputs = torch.randn(22, 4, generator=torch.Generator().manual_seed(2))
    subject = PosteriorSubject(factory, NetworkCase(_Perceptron, inputs))
    run_checks([check], subject, f"{subject.title} under {framework}")


def check_training_and_prediction_with_lightning(subject: PosteriorSubject) -> None:
    """Two epochs end with the weights of `fit`, and the Trainer predicts what `predict` does."""
    trainer_class = require_package("lightning.pytorch", "check_under_lightning", "lightning").Trainer
    from calibayes.lightning import CalibayesModule

    data = ExampleRows(*subject.case.data(double=True))
    expected = subject.posterior(double=True)
    settings: dict[str, Any] = {"optimizer": sgd, "samples": 2, "seed": 3}
    subject.fit(expected, double=True, train=DataLoader(data, batch_size=8), epochs=2, sample_chunk=1, **settings)
    module = CalibayesModule(subject.posterior(double=True), soft_objective(), prediction_samples=4, **settings)
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
    with _silence("lightning.pytorch"):
        trainer = trainer_class(max_epochs=2, accelerator="cpu", devices=1, **quiet)
        trainer.fit(module, DataLoader(data, batch_size=8))
        predicted = trainer.predict(module, DataLoader(data, batch_size=5))
    _compare(subject, module.posterior, expected, torch.cat([batch["probs"] for batch in predicted]), seed=3)


def check_a_step_and_prediction_with_transformers(subject: PosteriorSubject) -> None:
    """A step is that of `fit`, and the Trainer predicts what `predict` does."""
    arguments_class = require_package("transformers", "check_under_transformers").TrainingArguments
    from calibayes.transformers import CalibayesTrainer

    x, y = subject.case.data(double=True)
    data = [{"x": example, "labels": label} for example, label in zip(x, y, strict=True)]
    expected = subject.posterior(double=True)
    subject.fit(expected, double=True, batch_size=len(y), epochs=1, samples=2, seed=42, optimizer=sgd)
    with TemporaryDirectory() as folder, _silence("transformers"):
        one_step = {"per_device_train_batch_size": len(y), "max_steps": 1, "max_grad_norm": 0.0, "use_cpu": True}
        like_sgd = {"optim": "sgd", "learning_rate": 0.05, "lr_scheduler_type": "constant"}
        quiet = {"report_to": "none", "save_strategy": "no", "disable_tqdm": True, "dataloader_pin_memory": False}
        settings: dict[str, Any] = {"objective": soft_objective(), "samples": 2, "prediction_samples": 4}
        arguments = arguments_class(output_dir=folder, **one_step, **like_sgd, **quiet)
        posterior = subject.posterior(double=True)
        trainer = CalibayesTrainer(args=arguments, posterior=posterior, train_dataset=data, **settings)
        trainer.train()
        probs = torch.as_tensor(trainer.predict(data).predictions)
    _compare(subject, posterior, expected, probs, seed=42)


def _compare(subject: PosteriorSubject, posterior: Posterior, expected: Posterior, probs: Tensor, seed: int) -> None:
    close(cloned_state(posterior), cloned_state(expected), "the state, compared with that of `fit`,", 1e-8)
    wanted = subject.predict(posterior, seed=seed).probs
    close(probs.double(), wanted.double(), "what `Trainer.predict` gives, compared with `predict`,", 1e-6)


@contextmanager
def _silence(logger: str) -> Iterator[None]:
    """Suppress a trainer's log, and its advice on workers, loggers and the length of an epoch."""
    log = logging.getLogger(logger)
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(level)
