"""The experiments under shift: every method on four data sets, several seeds each, in three sizes.

All methods of an experiment are trained with the same optimiser, learning rate, epochs and batch size, and with the registry's
defaults for what is their own: nothing is tuned for any of them. MC dropout hides parts of the inputs, except in the ResNet-20,
which gets dropout before its last layer. In the ResNet-20 priors are centred on the published weights, as fine-tuning asks for.

The size "cpu" takes about three core-hours: nearly two for CIFAR-10 (250 training images or 1,000 predictions a
second on one core), half an hour for 20 Newsgroups (5,000 and 17,000), twenty minutes for Fashion-MNIST (9,000 and 25,000),
minutes for digits.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from calibayes.methods import method_named
from reproduction.experiment import Definition, ExperimentPart
from reproduction.shift.shift_tasks import TASKS
from reproduction.shift.shift_training import ShiftTraining, check_shift, shift_trial

__all__ = ["METHODS_UNDER_SHIFT", "SHIFTS"]

METHODS_UNDER_SHIFT = (
    *("fnn", "bnn", "ca-fnn", "ca-bnn"),
    *("ema", "mc-dropout", "swag", "laplace", "warm-mean-field"),
    *("focal", "label-smoothing", "natural-gradient"),
    *("ensemble", "mixture"),
)
_SEEDS = {"tiny": 1, "cpu": 3, "paper": 5}
_MEMBERS = {"tiny": 2, "cpu": 4, "paper": 4}
_TASK: dict[str, dict[str, Any]] = {
    "fashion": {"epochs": 12, "batch_size": 64, "learning_rate": 0.002},
    "cifar10": {"epochs": 4, "batch_size": 128, "learning_rate": 0.0003, "prior_mean": "initial"},
    "newsgroups": {"epochs": 12, "batch_size": 128, "learning_rate": 0.002},
    "digits": {"epochs": 40, "batch_size": 64, "learning_rate": 0.002},
}
_INPUT_DROPOUT = {"fashion": 0.1, "cifar10": 0.0, "newsgroups": 0.2, "digits": 0.1}
_SIZES: dict[str, dict[str, dict[str, Any]]] = {
    "tiny": {name: {"epochs": 4, "train": 128, "test": 60, "shifted": 20, "predictive_samples": 2} for name in TASKS},
    "cpu": {
        "fashion": {"shifted": 1000},
        "cifar10": {"train": 2000, "test": 3000, "shifted": 300, "predictive_samples": 8},
        "newsgroups": {"shifted": 3000},
        "digits": {"shifted": 697},
    },
    "paper": {
        "fashion": {"shifted": 6000, "predictive_samples": 20},
        "cifar10": {"shifted": 8000, "epochs": 10, "predictive_samples": 20},
        "newsgroups": {"shifted": 7532, "predictive_samples": 20},
        "digits": {"shifted": 697, "predictive_samples": 20},
    },
}


def _parts(task: str, preset: str) -> list[ExperimentPart]:
    return [
        ExperimentPart(
            method_named(method).title, tuple(_training(task, preset, method, seed) for seed in range(_SEEDS[preset]))
        )
        for method in METHODS_UNDER_SHIFT
    ]


def _training(task: Any, preset: str, method: str, seed: int) -> ShiftTraining:
    chosen = method_named(method)
    defaults = {name: chosen.default(name) for name in ("lam", "beta", "prior_std", "init_std") if chosen.has(name)}
    own = {
        "members": _MEMBERS[preset] if chosen.has("members") else 1,
        "input_dropout": _INPUT_DROPOUT[task] if chosen.needs_dropout else 0.0,
    }
    return ShiftTraining(scheme=method, task=task, seed=seed, **{**_TASK[task], **_SIZES[preset][task], **defaults, **own})


SHIFTS: dict[str, Definition] = {
    f"shift-{name}": Definition(f"Under shift: {task.title}", partial(_parts, name), shift_trial, check_shift)
    for name, task in TASKS.items()
}
