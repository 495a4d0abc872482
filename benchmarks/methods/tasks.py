"""What the methods are compared on, and the settings that the two bases are chosen from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from benchmarks.methods.contenders import CONTENDERS
from benchmarks.tabular_sets import SETS

__all__ = ["TABLES", "TASKS", "Task", "task_named"]


@dataclass(frozen=True, kw_only=True)
class Task:
    """A data set, a network, and how much is trained.

    Attributes:
        name: of its folder.
        title: what tables call it.
        bases: for each base the settings to choose from: those of `calibayes.methods.MethodSettings`, ``schedule`` of the
            learning rate (to zero along a cosine, or constant), ``epochs`` or ``steps``, and ``input_dropout``.
        seeds: how many.
        members: of ensembles.
        batch_size: $|B|$.
        samples: $S$, networks behind a prediction of a single random posterior; half as many for each member of a mixture.
        shifted: test examples under each shift.
        methods: the names of the methods that are compared.
        precision: of the network in training, as in `calibayes.fit`; predictions are always in full precision.
        draws_examples: whether records hold what chance in the test examples does to scores; for tables, which are many,
            chance is in the tables.
        settings_from: the task whose choices are taken over, where trainings are too long for tries.
        choice_seeds: trainings whose mean validation NLL settings are chosen by.
    """

    name: str
    title: str
    bases: Mapping[str, tuple[dict[str, Any], ...]]
    seeds: int = 5
    members: int = 4
    batch_size: int = 128
    samples: int = 16
    shifted: int = 500
    methods: tuple[str, ...] = tuple(each.name for each in CONTENDERS)
    precision: Literal["bfloat16"] | None = None
    draws_examples: bool = True
    settings_from: str | None = None
    choice_seeds: int = 1


def _without(*names: str) -> tuple[str, ...]:
    return tuple(each.name for each in CONTENDERS if each.name not in names)


def _plain(rates: Sequence[float], lengths: Sequence[int], unit: str = "epochs") -> tuple[dict[str, Any], ...]:
    return tuple({"learning_rate": rate, "schedule": "cosine", unit: each} for rate in rates for each in lengths)


def _regularised(
    rates: Sequence[float], length: int, decays: Sequence[float], ema: float, hidden: Sequence[float], unit: str = "epochs"
) -> tuple[dict[str, Any], ...]:
    """AdamW with weight decay, an average of the weights, and a share of the inputs hidden."""
    return tuple(
        {**each, "weight_decay": decay, "ema": ema, "input_dropout": share}
        for each in _plain(rates, (length,), unit)
        for decay in decays
        for share in hidden
    )


_LEARNERS = ("logistic-regression", "boosted-trees")
_SIX = ("fnn", "bnn", "ca-bnn", "laplace", "warm-mean-field", "ensemble")
_OF_THE_TERM = ("fnn", "ca-fnn", "bnn", "ca-bnn", "ensemble", "ca-ensemble")

FASHION = Task(
    name="fashion-mnist",
    title="Fashion-MNIST, 55,000 training images, a small CNN",
    bases={
        "plain": _plain((0.003, 0.006), (6, 12)),
        "regularised": _regularised((0.003,), 12, (0.01, 0.1), 0.998, (0.05, 0.1)),
    },
    methods=_without(*_LEARNERS),
    precision="bfloat16",
)

CIFAR10 = Task(
    name="cifar10",
    title="CIFAR-10, 45,000 training images, five convolutions",
    bases={
        "regularised": (
            {
                "learning_rate": 0.005,
                "schedule": "cosine",
                "epochs": 12,
                "weight_decay": 0.05,
                "ema": 0.998,
                "input_dropout": 0.0,
            },
        )
    },
    seeds=3,
    samples=8,
    shifted=250,
    methods=_SIX,
    precision="bfloat16",
    settings_from="fashion-mnist",
)

NEWSGROUPS = Task(
    name="newsgroups",
    title="20 Newsgroups, 10,000 training articles, a text CNN",
    bases={
        "plain": _plain((0.002, 0.004), (12, 24)),
        "regularised": _regularised((0.002, 0.004), 24, (0.05,), 0.99, (0.2, 0.4)),
    },
    shifted=2000,
    methods=_without("boosted-trees"),
)

# Where the calibration term should help most, if the paper is right: little data, and training that goes on for too long.
NEWSGROUPS_FEW = Task(
    name="newsgroups-1000",
    title="20 Newsgroups, 1,000 training articles",
    bases={"plain": _plain((0.002, 0.004), (24, 48))},
    shifted=2000,
    methods=_OF_THE_TERM,
)

NEWSGROUPS_LONG = Task(
    name="newsgroups-long",
    title="20 Newsgroups, 2,000 training articles, trained for too long at a constant rate",
    bases={"plain": ({"learning_rate": 0.002, "schedule": "constant", "epochs": 60},)},
    shifted=2000,
    methods=_OF_THE_TERM,
)

CLINC150 = Task(
    name="clinc150",
    title="CLINC150, 15,000 training requests of 150 intents, a sum of word vectors",
    bases={
        "plain": _plain((0.003, 0.01), (8, 16)),
        "regularised": _regularised((0.005,), 16, (0.01, 0.1), 0.99, (0.15, 0.3)),
    },
    shifted=2000,
    methods=_without("boosted-trees"),
)

TABLES = tuple(
    Task(
        name=f"table-{name}",
        title=f"the table {name}, a perceptron",
        bases={
            "plain": _plain((0.001, 0.003), (500, 2000), "steps"),
            "regularised": _regularised((0.003,), 2000, (0.01, 0.1), 0.98, (0.1, 0.3), "steps"),
        },
        seeds=3,
        choice_seeds=3,  # some have two dozen validation rows
        batch_size=64,
        draws_examples=False,
    )
    for name in SETS
)

TASKS = {task.name: task for task in (FASHION, CIFAR10, NEWSGROUPS, NEWSGROUPS_FEW, NEWSGROUPS_LONG, CLINC150, *TABLES)}


def task_named(name: str) -> Task:
    """The task of this name."""
    if name not in TASKS:
        raise SystemExit(f"Expected one of the tasks {', '.join(TASKS)}, but got {name!r}.")
    return TASKS[name]
