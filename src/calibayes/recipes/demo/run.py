"""The demo's course: train the candidates, choose on validation data, train the other seeds, test."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from calibayes.displays import ReliabilityDisplay
from calibayes.metrics import Scores
from calibayes.objective import SCHEMES
from calibayes.recipes.demo import jobs
from calibayes.recipes.demo.jobs import Tested, Trained
from calibayes.recipes.demo.progress import Progress
from calibayes.recipes.demo.settings import Run, Settings
from calibayes.recipes.demo.workers import default_workers, spread, started

__all__ = ["RULE", "Results", "choose", "run_demo"]

RULE = "lowest validation NLL with seed 0"


@dataclass(frozen=True)
class Results:
    """What the demo found.

    Attributes:
        settings: what was asked for.
        candidates: the validation scores that the choice was made from.
        chosen: each scheme's run with the first seed.
        validation: each scheme's validation scores, one per seed.
        test: each scheme's test scores, one per seed.
        displays: a reliability diagram of each scheme with the first seed.
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


def choose(candidates: Sequence[Trained]) -> dict[str, Trained]:
    """For each scheme the candidate with the lowest validation NLL; of equals the first.

    The NLL is a proper score: unlike the calibration error alone, it cannot be had by giving up on accuracy.
    """
    return {
        scheme: min((each for each in candidates if each.run.scheme == scheme), key=lambda each: each.validation.nll)
        for scheme in SCHEMES
    }


def run_demo(settings: Settings | None = None, *, workers: int | None = None, progress: Progress | None = None) -> Results:
    """Train FNN, BNN, CA-FNN and CA-BNN on Fashion-MNIST, and score them on the test images.

    The same settings give the same numbers, whatever the number of workers is.

    Args:
        settings: what to train; two minutes on two cores by default.
        workers: processes at a time; by default one per core, at most four. With one, everything runs in this process.
            More start by importing the calling script, which must therefore guard its work by ``__name__ == "__main__"``.
        progress: where to show how far it is; nowhere by default.
    """
    settings = Settings() if settings is None else settings
    workers = default_workers() if workers is None else workers
    begin = time.monotonic()
    jobs.load(settings)  # wrong sizes are found before processes start
    shown = Progress(None) if progress is None else progress
    candidates = settings.candidates()
    seeds = range(1, settings.seeds)
    # A scheme with a single candidate has nothing to choose: its other seeds need not wait.
    settled = [run for run in candidates if sum(other.scheme == run.scheme for other in candidates) == 1]
    early = [run.with_seed(seed) for run in settled for seed in seeds]
    planned = [run.scheme for run in candidates] + [scheme for scheme in SCHEMES for _ in seeds]
    cost = sum(jobs.cost_of_training(settings, scheme) for scheme in planned)
    cost += sum(settings.seeds * jobs.cost_of_test(settings, scheme) for scheme in SCHEMES)

    def trained_one(result: Trained) -> None:
        note = f"{result.run}: validation NLL {result.validation.nll:.4f}"
        shown.advance(jobs.cost_of_training(settings, result.run.scheme), note)

    def tested_one(result: Tested) -> None:
        shown.advance(jobs.cost_of_test(settings, result.run.scheme))

    train, test = partial(jobs.train, settings), partial(jobs.test, settings)
    with shown.over(cost, len(planned)), started(workers) as pool:
        first = spread(pool, train, [*candidates, *early], trained_one)
        tried = first[: len(candidates)]
        chosen = choose(tried)
        late = [chosen[s].run.with_seed(seed) for s in SCHEMES for seed in seeds if chosen[s].run not in settled]
        others = first[len(candidates) :] + spread(pool, train, late, trained_one)
        final = [each for s in SCHEMES for each in (chosen[s], *(other for other in others if other.run.scheme == s))]
        tested = spread(pool, test, final, tested_one)
    labels = jobs.load(settings)[2][1]
    return Results(
        settings=settings,
        candidates=[(each.run, each.validation) for each in tried],
        chosen={scheme: each.run for scheme, each in chosen.items()},
        validation={scheme: [each.validation for each in final if each.run.scheme == scheme] for scheme in SCHEMES},
        test={scheme: [each.scores for each in tested if each.run.scheme == scheme] for scheme in SCHEMES},
        displays=[
            ReliabilityDisplay.from_predictions(each.probs, labels, name=str(each.run)) for each in tested if each.run.seed == 0
        ],
        workers=workers,
        wall_seconds=time.monotonic() - begin,
    )
