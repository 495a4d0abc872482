"""Who is compared: each method as it is, and with a temperature fitted on the validation examples."""

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
    """Everyone who is compared, from the simplest to the most elaborate.

    Simpler is what has fewer networks, then what predicts with one set of weights, then what has no calibration term; of equals
    what was named first.
    """

    def rank(method: str) -> tuple[int, bool, bool]:
        took = effort(task, settings, method)
        return took.members, took.random, has_lam(method)

    return tuple(Contender(method, scaled) for method in sorted(settings.methods, key=rank) for scaled in (False, True))


@dataclass(frozen=True)
class Entry:
    r"""One contender's results; every list has one item per seed."""

    contender: Contender  # who it is
    run: MethodRun  # its method, λ and β, with the first seed
    temperatures: list[float]  # 1 for a plain contender
    validation_probs: list[Probs]  # what it says about the validation examples
    test_probs: list[Probs]  # what it says about the test examples
    validation: list[Scores]  # its scores on the validation examples, which a temperature was fitted on
    test: list[Scores]  # its scores on the test examples


def entries(found: Trainings, note: Callable[[str], None] | None = None) -> dict[Contender, Entry]:
    """The results of all contenders, from the simplest on; ``note`` is told of temperatures that data do not settle."""
    return {each: _entry(each, found, note) for each in contenders(found.task, found.settings)}


def _entry(contender: Contender, found: Trainings, note: Callable[[str], None] | None) -> Entry:
    made = Entry(contender, found.chosen[contender.scheme], [], [], [], [], [])
    parts = found.trained[contender.scheme], found.tested[contender.scheme]
    for trained, tested in zip(*parts, strict=True):
        scaling, why_none = None, None
        if contender.scaled:
            scaling, why_none = temperature_or_identity(trained.probs, found.data.validation[1])
        if why_none is not None and note is not None:
            note(f"{contender}, seed {trained.run.seed}: {why_none}")
        made.temperatures.append(1.0 if scaling is None else scaling.temperature)
        for plain, targets, probs, scores in (
            (trained, found.data.validation[1], made.validation_probs, made.validation),
            (tested, found.data.test[1], made.test_probs, made.test),
        ):
            after = plain.probs if scaling is None else np.asarray(scaling.transform(plain.probs), dtype=np.float32)
            probs.append(after)
            scores.append(plain.scores if scaling is None else scored(after, targets))
    return made
