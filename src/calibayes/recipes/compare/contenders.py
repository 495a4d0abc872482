"""The contenders: each baseline, and each method plain and with a temperature fitted on the validation examples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from calibayes.methods.term_weights import has_lam
from calibayes.metrics import Scores
from calibayes.posthoc.temperature_choice import temperature_or_identity
from calibayes.randomness import generator_for
from calibayes.recipes.compare.baselines import BaselineChoice
from calibayes.recipes.compare.comparison_settings import BASELINES, MethodRun, Settings, title_of
from calibayes.recipes.compare.comparison_task import Task
from calibayes.recipes.compare.jobs import Probs, effort, scored
from calibayes.recipes.compare.trainings import Trainings

__all__ = ["CONTENDERS", "Contender", "Entry", "contenders", "cross_scaled", "entries"]

_FOLDS = 5


@dataclass(frozen=True)
class Contender:
    """A baseline, or a method, plain or temperature-scaled.

    Examples:
        >>> str(Contender("ca-bnn", scaled=True)), Contender("ca-bnn", scaled=True).slug
        ('CA-BNN + T', 'ca-bnn-t')
    """

    scheme: str
    scaled: bool

    def __str__(self) -> str:
        return title_of(self.scheme) + (" + T" if self.scaled else "")

    @property
    def baseline(self) -> bool:
        """True for a classifier of scikit-learn, which is calibrated by cross-validation."""
        return self.scheme in BASELINES

    @property
    def slug(self) -> str:
        """The name in files."""
        return self.scheme + ("-t" if self.scaled else "")


#: The paper's four schemes, from the simplest to the most elaborate: what it takes to train, to predict and to explain.
CONTENDERS = tuple(Contender(scheme, scaled) for scheme in ("fnn", "ca-fnn", "bnn", "ca-bnn") for scaled in (False, True))


def contenders(task: Task, settings: Settings) -> tuple[Contender, ...]:
    """All contenders, from the simplest to the most elaborate.

    Baselines are the simplest: anybody can train and explain them. Of methods, those with fewer networks are simpler, then
    those with one set of weights, then those without a calibration term; of equals the first.
    """

    def rank(method: str) -> tuple[int, bool, bool]:
        needed = effort(task, settings, method)
        return needed.members, needed.random, has_lam(method)

    baselines = [Contender(name, False) for name in BASELINES if name in settings.baselines]
    methods = sorted(settings.methods, key=rank)
    return (*baselines, *(Contender(method, scaled) for method in methods for scaled in (False, True)))


@dataclass(frozen=True)
class Entry:
    """One contender's results; every list has one item per seed."""

    contender: Contender
    run: MethodRun  # its method, λ and β, with the first seed
    temperatures: list[float]  # 1 for a plain contender
    choices: list[BaselineChoice]  # of a baseline; empty for others
    # Of the validation examples. A temperature is fitted on the same examples, so those of a scaled contender are
    # cross-fitted: each fifth is scaled by the temperature that the other four give.
    validation_probs: list[Probs]
    test_probs: list[Probs]  # of the test examples
    validation: list[Scores]  # scores on the validation examples
    test: list[Scores]  # scores on the test examples


def entries(trainings: Trainings, note: Callable[[str], None] | None = None) -> dict[Contender, Entry]:
    """The results of all contenders, from the simplest on; ``note`` is called if the data do not determine a temperature."""
    return {each: _entry(each, trainings, note) for each in contenders(trainings.task, trainings.settings)}


def _entry(contender: Contender, trainings: Trainings, note: Callable[[str], None] | None) -> Entry:
    entry = Entry(contender, trainings.chosen[contender.scheme], [], [], [], [], [], [])
    labels = trainings.data.validation[1], trainings.data.test[1]
    parts = trainings.trained[contender.scheme], trainings.tested[contender.scheme]
    for trained, tested in zip(*parts, strict=True):
        scaling, why_none = None, None
        if contender.scaled:
            scaling, why_none = temperature_or_identity(trained.probs, labels[0])
        if why_none is not None and note is not None:
            note(f"{contender}, seed {trained.run.seed}: {why_none}")
        entry.temperatures.append(1.0 if scaling is None else scaling.temperature)
        entry.choices.extend([] if trained.choice is None else [trained.choice])
        both = [trained.probs, tested.probs]
        if scaling is not None:
            both = [cross_scaled(trained.probs, labels[0]), np.asarray(scaling.transform(tested.probs), dtype=np.float32)]
        entry.validation_probs.append(both[0])
        entry.test_probs.append(both[1])
        plain = scaling is None
        entry.validation.append(trained.scores if plain else scored(both[0], labels[0]))
        entry.test.append(tested.scores if plain else scored(both[1], labels[1]))
    return entry


def cross_scaled(probs: Probs, targets: Tensor) -> Probs:
    """Scale each fifth of the examples by the temperature that is fitted on the other four."""
    after = probs.copy()
    order = torch.randperm(len(probs), generator=generator_for(torch.device("cpu"), 0, "temperature folds")).numpy()
    for held_out in np.array_split(order, min(_FOLDS, len(probs))):
        others = np.setdiff1d(order, held_out)
        if len(others):
            scaling, _ = temperature_or_identity(probs[others], targets[others])
            after[held_out] = scaling.transform(probs[held_out])
    return after
