"""Who is compared: each method as it is, and with a temperature fitted on the validation examples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calibayes.methods import method_named
from calibayes.methods.term_weights import has_lam
from calibayes.metrics import Scores
from calibayes.posthoc.temperature_choice import temperature_or_identity
from calibayes.recipes.compare.jobs import Probs, Tested, Trained, effort, scored
from calibayes.recipes.compare.settings import Run, Settings
from calibayes.recipes.compare.task import Task
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
    r"""One contender's results; every list has one item per seed.

    Attributes:
        contender: who it is.
        run: its method, $\lambda$ and $\beta$, with the first seed.
        temperatures: 1 for a plain contender.
        validation_probs: what it says about the validation examples.
        test_probs: what it says about the test examples.
        validation: its scores on the validation examples, which a temperature was fitted on.
        test: its scores on the test examples.
    """

    contender: Contender
    run: Run
    temperatures: list[float]
    validation_probs: list[Probs]
    test_probs: list[Probs]
    validation: list[Scores]
    test: list[Scores]


def entries(found: Trainings, note: Callable[[str], None] | None = None) -> dict[Contender, Entry]:
    """The results of all contenders, from the simplest on; ``note`` is told of temperatures that data do not settle."""
    return {each: _entry(each, found, note) for each in contenders(found.task, found.settings)}


def _entry(contender: Contender, found: Trainings, note: Callable[[str], None] | None) -> Entry:
    trained, tested = found.trained[contender.scheme], found.tested[contender.scheme]
    run = found.chosen[contender.scheme]
    if not contender.scaled:
        return Entry(
            contender,
            run,
            [1.0] * len(trained),
            [each.probs for each in trained],
            [each.probs for each in tested],
            [each.scores for each in trained],
            [each.scores for each in tested],
        )
    made = Entry(contender, run, [], [], [], [], [])
    for first, second in zip(trained, tested, strict=True):
        why_none = _add_scaled(made, first, second, found)
        if why_none is not None and note is not None:
            note(f"{contender}, seed {first.run.seed}: {why_none}")
    return made


def _add_scaled(entry: Entry, trained: Trained, tested: Tested, found: Trainings) -> str | None:
    """Add a training with its temperature; why it has none, if so."""
    labels = found.data.validation[1]
    scaling, why_none = temperature_or_identity(trained.probs, labels)
    entry.temperatures.append(scaling.temperature)
    for before, targets, probs, scores in (
        (trained.probs, labels, entry.validation_probs, entry.validation),
        (tested.probs, found.data.test[1], entry.test_probs, entry.test),
    ):
        after: Probs = np.asarray(scaling.transform(before), dtype=np.float32)
        probs.append(after)
        scores.append(scored(after, targets))
    return why_none
