"""Checks of posteriors trained by other people's trainers: they end where `fit` does."""

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
from torch.utils.data import DataLoader, Dataset

from calibayes.extras import require_package
from calibayes.testing.check_runner import run_checks
from calibayes.testing.comparisons import close
from calibayes.testing.network_cases import NetworkCase
from calibayes.testing.posterior_subject import Factory, PosteriorSubject, sgd, soft_objective, state
from calibayes.testing.prediction_checks import ExampleRows

__all__ = ["check_under_lightning", "check_under_transformers"]


class _Perceptron(nn.Module):
    """Its input has a name, which transformers looks for in the data."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)  # type: ignore[no-any-return]


class _NamedRows(Dataset[dict[str, Tensor]]):
    def __init__(self, x: Tensor, y: Tensor) -> None:
        self.x, self.y = x, y

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        return {"x": self.x[index], "labels": self.y[index]}


def check_under_lightning(factory: Factory) -> None:
    """Check that a Trainer of Lightning ends with the weights of `calibayes.fit`, and predicts what `calibayes.predict` does.

    Args:
        factory: makes the posterior of a network.

    Raises:
        AssertionError: says what differed.
    """
    subject = _subject(factory)
    run_checks((check_training_and_prediction_with_lightning,), subject, f"{subject.title} under Lightning")


def check_under_transformers(factory: Factory) -> None:
    """Check that a step of `calibayes.transformers.CalibayesTrainer` is one of `calibayes.fit`, and so are its predictions.

    Args:
        factory: makes the posterior of a network.

    Raises:
        AssertionError: says what differed.
    """
    subject = _subject(factory)
    run_checks((check_a_step_and_prediction_with_transformers,), subject, f"{subject.title} under transformers")


def _subject(factory: Factory) -> PosteriorSubject:
    inputs = torch.randn(22, 4, generator=torch.Generator().manual_seed(2))
    return PosteriorSubject(factory, NetworkCase(_Perceptron, inputs))


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
    close(state(module.posterior), state(expected), "the state, compared with that of `fit`,", 1e-8)
    probs = torch.cat([batch["probs"] for batch in predicted])
    wanted = subject.predict(module.posterior, seed=3).probs
    close(probs.double(), wanted.double(), "what `Trainer.predict` gives, compared with `predict`,", 1e-6)


def check_a_step_and_prediction_with_transformers(subject: PosteriorSubject) -> None:
    """A step is that of `fit`, and the Trainer predicts what `predict` does."""
    arguments_class = require_package("transformers", "check_under_transformers").TrainingArguments
    from calibayes.transformers import CalibayesTrainer

    x, y = subject.case.data(double=True)
    expected = subject.posterior(double=True)
    subject.fit(expected, double=True, batch_size=len(y), epochs=1, samples=2, seed=42, optimizer=sgd)
    with TemporaryDirectory() as folder, _silence("transformers"):
        arguments = arguments_class(
            output_dir=folder,
            per_device_train_batch_size=len(y),
            max_steps=1,
            optim="sgd",
            learning_rate=0.05,
            lr_scheduler_type="constant",
            max_grad_norm=0.0,
            report_to="none",
            save_strategy="no",
            disable_tqdm=True,
            use_cpu=True,
            dataloader_pin_memory=False,
        )
        trainer = CalibayesTrainer(
            args=arguments,
            objective=soft_objective(),
            posterior=subject.posterior(double=True),
            samples=2,
            prediction_samples=4,
            train_dataset=_NamedRows(x, y),
        )
        trainer.train()
        probs = torch.as_tensor(trainer.predict(_NamedRows(x, y)).predictions)
    close(state(trainer.posterior), state(expected), "the state after a step, compared with that of `fit`,", 1e-8)
    wanted = subject.predict(trainer.posterior, seed=42).probs
    close(probs.double(), wanted.double(), "what `Trainer.predict` gives, compared with `predict`,", 1e-6)


@contextmanager
def _silence(logger: str) -> Iterator[None]:
    """Without a trainer's log, and its advice on workers, loggers and the length of an epoch."""
    found = logging.getLogger(logger)
    level = found.level
    found.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        found.setLevel(level)
