"""Who is compared: each of the four schemes as it is, and with a temperature fitted on the validation examples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calibayes.metrics import Scores
from calibayes.posthoc.settled import settled_temperature
from calibayes.recipes.compare.jobs import Probs, Tested, Trained, scored
from calibayes.recipes.compare.settings import Run
from calibayes.recipes.compare.trainings import Trainings

__all__ = ["CONTENDERS", "Contender", "Entry", "entries"]


@dataclass(frozen=True)
class Contender:
    """A scheme, plain or temperature-scaled.

    Examples:
        >>> str(Contender("ca-bnn", scaled=True)), Contender("ca-bnn", scaled=True).slug
        ('CA-BNN + T', 'ca-bnn-t')
    """

    scheme: str
    scaled: bool

    def __str__(self) -> str:
        return self.scheme.upper() + (" + T" if self.scaled else "")

    @property
    def slug(self) -> str:
        """The name in files."""
        return self.scheme + ("-t" if self.scaled else "")


#: From the simplest to the most elaborate: what it takes to train, to predict and to explain.
CONTENDERS = tuple(Contender(scheme, scaled) for scheme in ("fnn", "ca-fnn", "bnn", "ca-bnn") for scaled in (False, True))


@dataclass(frozen=True)
class Entry:
    r"""One contender's results; every list has one item per seed.

    Attributes:
        contender: who it is.
        run: its scheme, $\lambda$ and $\beta$, with the first seed.
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
    return {each: _entry(each, found, note) for each in CONTENDERS}


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
    scaling, why_none = settled_temperature(trained.probs, labels)
    entry.temperatures.append(scaling.temperature)
    for before, targets, probs, scores in (
        (trained.probs, labels, entry.validation_probs, entry.validation),
        (tested.probs, found.data.test[1], entry.test_probs, entry.test),
    ):
        after: Probs = np.asarray(scaling.transform(before), dtype=np.float32)
        probs.append(after)
        scores.append(scored(after, targets))
    return why_none
