"""A comparison: trainings, contenders, differences and the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from torch import Tensor

from calibayes.recipes.compare.comparison_settings import Settings
from calibayes.recipes.compare.comparison_task import FASHION_MNIST, Task
from calibayes.recipes.compare.contender_differences import Differences, differences
from calibayes.recipes.compare.contenders import Contender, Entry, entries
from calibayes.recipes.compare.jobs import Probs
from calibayes.recipes.compare.recommendation import Recommendation, decide
from calibayes.recipes.compare.trainings import Trainings, run_trainings
from calibayes.sweeps.sweep_progress import SweepProgress

__all__ = ["Comparison", "compare"]


@dataclass(frozen=True)
class Comparison:
    """What a comparison found."""

    trainings: Trainings  # the methods, trained, and how they were chosen
    entries: dict[Contender, Entry]  # the contenders' probabilities and scores, from the simplest on
    differences: Differences  # asks for the difference between any two contenders, with its interval
    verdict: Recommendation  # which to use

    @property
    def task(self) -> Task:
        """What was compared on."""
        return self.trainings.task

    @property
    def settings(self) -> Settings:
        """What was asked for."""
        return self.trainings.settings

    @property
    def targets(self) -> Tensor:
        """The true classes of the test examples."""
        return self.trainings.data.test[1]

    @property
    def class_names(self) -> tuple[str, ...]:
        """The name of each class."""
        return self.trainings.data.classes

    def predictions(self, seed: int = 0) -> dict[str, Probs]:
        """What each contender, trained with one seed, says about the test examples, by its name."""
        return {str(contender): entry.test_probs[seed] for contender, entry in self.entries.items()}


def compare(
    task: Task = FASHION_MNIST,
    settings: Settings | None = None,
    *,
    methods: Sequence[str] | None = None,
    folder: Path | None = None,
    workers: int | None = None,
    progress: SweepProgress | None = None,
) -> Comparison:
    r"""Train methods over seeds, plain and temperature-scaled, and find out which to use.

    $\lambda$ and $\beta$ are those with the lowest validation NLL (seed 0, plain predictions). Temperatures are fitted on
    the validation examples too, one for each training. Test examples decide nothing but the verdict.

    Args:
        task: the data and the network; the embedded Fashion-MNIST by default.
        settings: what to train; `Settings.thorough()` by default.
        methods: who is compared, of `calibayes.METHODS`; those of ``settings`` by default: the paper's four schemes.
        folder: where each training is kept as soon as it is done; what is there already is not trained again.
        workers: processes at a time, as in `run_trainings`.
        progress: where to show how far it is; nowhere by default.
    """
    settings = Settings.thorough() if settings is None else settings
    settings = settings if methods is None else replace(settings, methods=tuple(methods))
    found = run_trainings(task, settings, folder=folder, workers=workers, progress=progress)
    results = entries(found, None if progress is None else progress.note)
    compared = differences(results, found.data.test[1])
    return Comparison(found, results, compared, decide(compared))
