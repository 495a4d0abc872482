"""The course of an experiment: train the candidates, choose on validation data, train the other seeds, test."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from calibayes.checks import positive_integer
from calibayes.data import Splits
from calibayes.metrics import Scores
from calibayes.objective import SCHEMES
from calibayes.recipes.compare import jobs
from calibayes.recipes.compare.jobs import Tested, Trained
from calibayes.recipes.compare.memory import Memory
from calibayes.recipes.compare.progress import Progress
from calibayes.recipes.compare.settings import Run, Settings
from calibayes.recipes.compare.task import Task, check_portable
from calibayes.recipes.compare.workers import default_workers, spread, started

__all__ = ["RULE", "Trainings", "choose", "run_trainings"]

RULE = "lowest validation NLL with seed 0"

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Trainings:
    """The four schemes, trained, with what they say about validation and test examples.

    Attributes:
        task: what they were trained on.
        settings: what was asked for.
        data: the task's data.
        candidates: the validation scores that the choice was made from.
        chosen: each scheme's run with the first seed.
        trained: each scheme's trainings, one per seed.
        tested: each scheme's test predictions, one per seed.
        workers: how many processes worked at a time, each on one thread.
        wall_seconds: how long it took.
        cpu_seconds: how long all trainings and predictions took, one by one, also those from before.
        kept: how many of the trainings were known from before.
    """

    task: Task
    settings: Settings
    data: Splits
    candidates: list[tuple[Run, Scores]]
    chosen: dict[str, Run]
    trained: dict[str, list[Trained]]
    tested: dict[str, list[Tested]]
    workers: int
    wall_seconds: float
    cpu_seconds: float
    kept: int


def choose(candidates: Sequence[Trained]) -> dict[str, Trained]:
    """For each scheme the candidate with the lowest validation NLL; of equals the first.

    The NLL is a proper score: unlike the calibration error alone, it cannot be had by giving up on accuracy.
    """
    return {
        scheme: min((each for each in candidates if each.run.scheme == scheme), key=lambda each: each.scores.nll)
        for scheme in SCHEMES
    }


def run_trainings(
    task: Task,
    settings: Settings,
    *,
    folder: Path | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Trainings:
    r"""Train FNN, BNN, CA-FNN and CA-BNN, each with its best $\lambda$ and $\beta$, and let them predict the test examples.

    Test examples are predicted by the chosen networks only, after the choice. The same settings give the same numbers,
    whatever the number of workers is, and whether or not some of the results were already in the folder.

    Args:
        task: the data and the network.
        settings: what to train.
        folder: where each training and prediction is kept as soon as it is done; those that are there are not repeated.
        workers: processes at a time; by default one per core, at most four. With one, everything runs in this process.
            More start by importing the calling script, which must therefore guard its work by ``__name__ == "__main__"``.
        progress: where to show how far it is; nowhere by default.
    """
    workers = default_workers() if workers is None else positive_integer("workers", workers)
    if workers > 1:
        check_portable(task)
    begin = time.monotonic()
    data = jobs.load(task, settings)  # wrong sizes are found before processes start
    memory = Memory.at(task, settings, folder)
    shown = Progress(None) if progress is None else progress
    candidates = settings.candidates()
    seeds = range(1, settings.seeds)
    # A scheme with a single candidate has nothing to choose: its other seeds need not wait.
    settled = [run for run in candidates if sum(other.scheme == run.scheme for other in candidates) == 1]
    early = [run.with_seed(seed) for run in settled for seed in seeds]
    planned = [run.scheme for run in candidates] + [scheme for scheme in SCHEMES for _ in seeds]
    cost = sum(jobs.cost_of_training(settings, scheme) for scheme in planned)
    cost += sum(settings.seeds * jobs.cost_of_test(settings, scheme) for scheme in SCHEMES)
    kept = 0

    def known_trainings(runs: Sequence[Run]) -> list[Trained | None]:
        nonlocal kept
        found = [memory.trained(run, shown.note) for run in runs]
        for each in found:
            if each is not None:
                kept += 1
                shown.skip(jobs.cost_of_training(settings, each.run.scheme), training=True)
        if any(each is not None for each in found):
            shown.note(f"From before: {kept} of {len(planned)} trainings.")
        return found

    def known_test(trained: Trained) -> Tested | None:
        found = memory.tested(trained.run, shown.note)
        if found is not None:
            shown.skip(jobs.cost_of_test(settings, trained.run.scheme))
        return found

    def trained_one(result: Trained) -> None:
        note = f"{result.run}: validation NLL {result.scores.nll:.4f}"
        shown.advance(jobs.cost_of_training(settings, result.run.scheme), note)

    def tested_one(result: Tested) -> None:
        shown.advance(jobs.cost_of_test(settings, result.run.scheme))

    with shown.over(cost, len(planned)), started(workers) as pool:
        first = _completed(pool, memory.train, [*candidates, *early], known_trainings([*candidates, *early]), trained_one)
        tried = first[: len(candidates)]
        chosen = choose(tried)
        late = [chosen[s].run.with_seed(seed) for s in SCHEMES for seed in seeds if chosen[s].run not in settled]
        others = first[len(candidates) :] + _completed(pool, memory.train, late, known_trainings(late), trained_one)
        final = [each for s in SCHEMES for each in (chosen[s], *(other for other in others if other.run.scheme == s))]
        tested = _completed(pool, memory.test, final, [known_test(each) for each in final], tested_one)
    return Trainings(
        task=task,
        settings=settings,
        data=data,
        candidates=[(each.run, each.scores) for each in tried],
        chosen={scheme: each.run for scheme, each in chosen.items()},
        trained={scheme: [each for each in final if each.run.scheme == scheme] for scheme in SCHEMES},
        tested={scheme: [each for each in tested if each.run.scheme == scheme] for scheme in SCHEMES},
        workers=workers,
        wall_seconds=time.monotonic() - begin,
        cpu_seconds=sum(each.seconds for each in (*tried, *others)) + sum(each.seconds for each in tested),
        kept=kept,
    )


def _completed(
    pool: Executor | None,
    job: Callable[[Item], Result],
    items: Sequence[Item],
    known: Sequence[Result | None],
    done: Callable[[Result], None],
) -> list[Result]:
    """The result of every item, in the order of the items: what is known already, and the rest by doing the job."""
    missing = [item for item, result in zip(items, known, strict=True) if result is None]
    made = iter(spread(pool, job, missing, done))
    return [next(made) if result is None else result for result in known]
