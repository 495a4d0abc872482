"""The demo's numbers: the paper's four schemes and a mixture beside them, with small, fixed settings."""

from __future__ import annotations

from dataclasses import dataclass, replace

from calibayes.displays import ReliabilityDisplay
from calibayes.metrics import Scores, reliability_bins
from calibayes.recipes.compare.settings import Run, Settings
from calibayes.recipes.compare.task import FASHION_MNIST, Task
from calibayes.recipes.compare.trainings import run_trainings
from calibayes.sweeps.sweep_progress import SweepProgress

__all__ = ["MIXTURE", "Results", "run_demo", "with_mixture"]

MIXTURE = {"members": 4, "beta": 0.01}
r"""The mixture's settings: its usual $\beta$ rather than a choice, so that four members fit into two minutes on two cores."""


@dataclass(frozen=True)
class Results:
    """What the demo found.

    Attributes:
        settings: what was asked for.
        candidates: the validation scores that the choice was made from.
        chosen: each method's run with the first seed.
        validation: each method's validation scores, one per seed.
        test: each method's test scores, one per seed.
        displays: a reliability diagram of each method with the first seed.
        workers: how many processes worked at a time, each on one thread.
        wall_seconds: how long it took.
    """

    settings: Settings
    candidates: list[tuple[Run, Scores]]
    chosen: dict[str, Run]
    validation: dict[str, list[Scores]]
    test: dict[str, list[Scores]]
    displays: list[ReliabilityDisplay]
    workers: int
    wall_seconds: float


def run_demo(
    settings: Settings | None = None,
    *,
    task: Task = FASHION_MNIST,
    workers: int | None = None,
    progress: SweepProgress | None = None,
) -> Results:
    """Train FNN, BNN, CA-FNN, CA-BNN and a mixture on Fashion-MNIST, and score them on the test images.

    The same settings give the same numbers, whatever the number of workers is.

    Args:
        settings: what to train; two minutes on two cores by default.
        task: the data and the network.
        workers: processes at a time, as in `run_trainings`.
        progress: where to show how far it is; nowhere by default.
    """
    settings = with_mixture(Settings() if settings is None else settings)
    found = run_trainings(task, settings, workers=workers, progress=progress)
    labels = found.data.test[1]
    return Results(
        settings=found.settings,
        candidates=found.candidates,
        chosen=found.chosen,
        validation={scheme: [each.scores for each in seeds] for scheme, seeds in found.trained.items()},
        test={scheme: [each.scores for each in seeds] for scheme, seeds in found.tested.items()},
        displays=[
            ReliabilityDisplay(bins=reliability_bins(seeds[0].probs, labels), scores=seeds[0].scores, name=str(seeds[0].run))
            for seeds in found.tested.values()
        ],
        workers=found.workers,
        wall_seconds=found.wall_seconds,
    )


def with_mixture(settings: Settings) -> Settings:
    """The same with the mixture beside the schemes."""
    if "mixture" in settings.methods:
        return settings
    return replace(settings, methods=(*settings.methods, "mixture"), method_settings={"mixture": MIXTURE})
