"""A comparison: trainings, contenders, differences and the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from torch import Tensor

from calibayes.recipes.compare.comparison_settings import Settings
from calibayes.recipes.compare.comparison_task import FASHION_MNIST, Task
from calibayes.recipes.compare.contenders import Contender, Entry, entries
from calibayes.recipes.compare.jobs import Probs
from calibayes.recipes.compare.recommendation import Differences, Recommendation, decide, differences
from calibayes.recipes.compare.trainings import Trainings, run_trainings
from calibayes.sweeps.sweep_progress import SweepProgress

__all__ = ["Comparison", "compare"]


@dataclass(frozen=True)
class Comparison:
    """The results of a comparison."""

    trainings: Trainings  # the trained methods
    entries: dict[Contender, Entry]  # the contenders' probabilities and scores, from the simplest on
    validation: Differences  # between any two contenders on the validation examples, with intervals
    differences: Differences  # the same on the test examples
    verdict: Recommendation  # by the validation examples

    @property
    def task(self) -> Task:
        """The data set and the network."""
        return self.trainings.task

    @property
    def settings(self) -> Settings:
        """The settings of the comparison."""
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
        """Each contender's probabilities of the test examples with one seed, by its name."""
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
    r"""Train baselines, and methods plain and temperature-scaled, over seeds, and recommend one of them.

    $\lambda$ and $\beta$ are those with the lowest validation NLL (seed 0, plain predictions). Temperatures are fitted on
    the validation examples too, one for each training. The recommendation follows from the validation examples and all
    seeds; test examples show how good it is, and nothing is chosen by them.

    Args:
        task: the data and the network; the embedded Fashion-MNIST by default.
        settings: of the trainings; `Settings.thorough()` by default.
        methods: of `calibayes.METHODS`; those of ``settings`` by default, the paper's four schemes.
        folder: where each training and prediction is stored as soon as it is done; stored ones are not repeated.
        workers: the number of processes, by default one per core, at most four; a single one is this process. Others import
            the calling script, which must therefore guard its work by ``__name__ == "__main__"``.
        progress: where to show progress; nowhere by default.
    """
    settings = Settings.thorough() if settings is None else settings
    settings = settings if methods is None else replace(settings, methods=tuple(methods))
    trainings = run_trainings(task, settings, folder=folder, workers=workers, progress=progress)
    results = entries(trainings, None if progress is None else progress.note)
    validation = differences(results, trainings.data.validation[1], "validation")
    return Comparison(trainings, results, validation, differences(results, trainings.data.test[1]), decide(validation))
