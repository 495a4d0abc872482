"""The contenders: each method, plain and with a temperature fitted on the validation examples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calibayes.methods import method_named
from calibayes.methods.term_weights import has_lam
from calibayes.metrics import Scores
from calibayes.posthoc.temperature_choice import temperature_or_identity
from calibayes.recipes.compare.comparison_settings import MethodRun, Settings
from calibayes.recipes.compare.comparison_task import Task
from calibayes.recipes.compare.jobs import Probs, effort, scored
from calibayes.recipes.compare.trainings import Trainings

__all__ = ["CONTENDERS", "Contender", "Entry", "contenders", "entries"]


@dataclass(frozen=True)
class Contender:
    """A method, plain or temperature-scaled.

    Examples:
        >>> str(Contender("ca-bnn", scaled=True)), Contender("ca-bnn", scaled=True).slug
        ('CA-BNN + T', 'ca-bnn-t')
    """

    scheme: str
    scaled: bool

    def __str__(self) -> str:
        return method_named(self.scheme).title + (" + T" if self.scaled else "")

    @property
    def slug(self) -> str:
        """The name in files."""
        return self.scheme + ("-t" if self.scaled else "")


#: The paper's four schemes, from the simplest to the most elaborate: what it takes to train, to predict and to explain.
CONTENDERS = tuple(Contender(scheme, scaled) for scheme in ("fnn", "ca-fnn", "bnn", "ca-bnn") for scaled in (False, True))


def contenders(task: Task, settings: Settings) -> tuple[Contender, ...]:
    """All contenders, from the simplest to the most elaborate.

    Simpler are methods with fewer networks, then with one set of weights, then without a calibration term; of equals the first.
    """

    def rank(method: str) -> tuple[int, bool, bool]:
        needed = effort(task, settings, method)
        return needed.members, needed.random, has_lam(method)

    return tuple(Contender(method, scaled) for method in sorted(settings.methods, key=rank) for scaled in (False, True))


@dataclass(frozen=True)
class Entry:
    """One contender's results; every list has one item per seed."""

    contender: Contender
    run: MethodRun  # its method, λ and β, with the first seed
    temperatures: list[float]  # 1 for a plain contender
    validation_probs: list[Probs]  # of the validation examples
    test_probs: list[Probs]  # of the test examples
    validation: list[Scores]  # scores on the validation examples, which a temperature was fitted on
    test: list[Scores]  # scores on the test examples


def entries(trainings: Trainings, note: Callable[[str], None] | None = None) -> dict[Contender, Entry]:
    """The results of all contenders, from the simplest on; ``note`` is called if the data do not determine a temperature."""
    return {each: _entry(each, trainings, note) for each in contenders(trainings.task, trainings.settings)}


def _entry(contender: Contender, trainings: Trainings, note: Callable[[str], None] | None) -> Entry:
    entry = Entry(contender, trainings.chosen[contender.scheme], [], [], [], [], [])
    parts = trainings.trained[contender.scheme], trainings.tested[contender.scheme]
    for trained, tested in zip(*parts, strict=True):
        scaling, why_none = None, None
        if contender.scaled:
            scaling, why_none = temperature_or_identity(trained.probs, trainings.data.validation[1])
        if why_none is not None and note is not None:
            note(f"{contender}, seed {trained.run.seed}: {why_none}")
        entry.temperatures.append(1.0 if scaling is None else scaling.temperature)
        for plain, targets, probs, scores in (
            (trained, trainings.data.validation[1], entry.validation_probs, entry.validation),
            (tested, trainings.data.test[1], entry.test_probs, entry.test),
        ):
            after = plain.probs if scaling is None else np.asarray(scaling.transform(plain.probs), dtype=np.float32)
            probs.append(after)
            scores.append(plain.scores if scaling is None else scored(after, targets))
    return entry
