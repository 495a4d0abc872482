"""Train the candidates, choose on validation data, train the other seeds, and test."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from calibayes.checks import positive_integer
from calibayes.data import Splits
from calibayes.metrics import Scores
from calibayes.recipes.compare import jobs
from calibayes.recipes.compare.baselines import plain_inputs, suitable_baselines
from calibayes.recipes.compare.comparison_settings import MethodRun, Settings
from calibayes.recipes.compare.comparison_task import Task, check_portable
from calibayes.recipes.compare.jobs import ScoredRun, TrainingRecords
from calibayes.sweeps.backends import cores
from calibayes.sweeps.runner import Runner, StoredResult
from calibayes.sweeps.sweep_progress import SweepProgress
from calibayes.sweeps.worker import Job

__all__ = ["RULE", "Trainings", "choose", "default_workers", "run_trainings", "with_suitable_baselines"]

RULE = "lowest validation NLL with seed 0"
_MOST = 4


@dataclass(frozen=True)
class Trainings:
    """The trained methods and baselines, with their predictions of validation and test examples."""

    task: Task
    settings: Settings
    data: Splits  # the task's data
    candidates: list[tuple[MethodRun, Scores]]  # their validation scores
    chosen: dict[str, MethodRun]  # each method's run with the first seed
    trained: dict[str, list[ScoredRun]]  # each method's trainings, one per seed
    tested: dict[str, list[ScoredRun]]  # each method's test predictions, one per seed
    workers: int  # the number of processes, each on one thread
    wall_seconds: float
    cpu_seconds: float  # of all trainings and predictions, including those from before
    kept: int  # the number of trainings from before


def choose(candidates: Sequence[ScoredRun]) -> dict[str, ScoredRun]:
    """For each method the candidate with the lowest validation NLL; of equals the first.

    The NLL is a proper score: unlike the calibration error alone, it cannot be lowered by giving up accuracy.
    """
    return {
        scheme: min((each for each in candidates if each.run.scheme == scheme), key=lambda each: each.scores.nll)
        for scheme in dict.fromkeys(each.run.scheme for each in candidates)
    }


def with_suitable_baselines(task: Task, settings: Settings) -> tuple[Settings, tuple[str, ...]]:
    """Leave out baselines that do not suit the task; the notes say which, and why. This loads the data."""
    if not settings.baselines:
        return settings, ()
    inputs = plain_inputs(task, settings, jobs.load(task, settings))
    baselines, notes = suitable_baselines(inputs, settings.baselines, task.examples)
    return replace(settings, baselines=baselines), notes


def run_trainings(
    task: Task,
    settings: Settings,
    *,
    folder: Path | None = None,
    workers: int | None = None,
    progress: SweepProgress | None = None,
) -> Trainings:
    r"""Train every baseline, and every method with its best $\lambda$ and $\beta$, and predict the test examples.

    Only the chosen networks predict test examples. The same settings give the same numbers, for any number of workers, and
    whether or not some of the results were already in the folder. The arguments are those of `compare`.
    """
    workers = default_workers() if workers is None else positive_integer("workers", workers)
    if workers > 1:
        check_portable(task)
    begin = time.monotonic()
    data = jobs.load(task, settings)  # rejects wrong sizes before processes start
    settings, _ = with_suitable_baselines(task, settings)
    records = TrainingRecords.of(task, settings)
    shown = SweepProgress(None) if progress is None else progress
    candidates = settings.candidates()
    seeds = range(1, settings.seeds)
    # A method with a single candidate has nothing to choose, so its other seeds need not wait.
    decided = [run for run in candidates if sum(other.scheme == run.scheme for other in candidates) == 1]
    early = [run.with_seed(seed) for run in decided for seed in seeds]
    methods = settings.names
    planned = [run.scheme for run in candidates] + [method for method in methods for _ in seeds]
    efforts = {method: jobs.effort(task, settings, method) for method in methods}
    cost = sum(efforts[method].training for method in planned)
    cost += sum(settings.seeds * efforts[method].test for method in methods)
    kept = 0

    def completed(wanted: Sequence[Job], what: Literal["training", "test"]) -> list[ScoredRun]:
        """The result of every job: stored ones, and those of the jobs that are missing."""
        nonlocal kept
        is_training = what == "training"
        known, missing = runner.take_stock(wanted)
        results = {key: records.scored(stored.record, what) for key, stored in known.items()}
        for each in results.values():
            shown.skip(getattr(efforts[each.run.scheme], what), counted=is_training)
        if is_training and known:
            kept += len(known)
            shown.note(f"From before: {kept} of {len(planned)} trainings.")

        def finished(job: Job, stored: StoredResult) -> None:
            result = results[job.key] = records.scored(stored.record, what)
            note = f"{result.run}: validation NLL {result.scores.nll:.4f}" if is_training else None
            shown.advance(getattr(efforts[result.run.scheme], what), note)

        runner.run(missing, finished)
        return [results[job.key] for job in wanted]

    def train(runs: Sequence[MethodRun]) -> list[ScoredRun]:
        # The longest first, so that no worker is idle at the end.
        ordered = sorted(runs, key=lambda run: -efforts[run.scheme].members)
        by_run = dict(zip(ordered, completed([records.training(run) for run in ordered], "training"), strict=True))
        return [by_run[run] for run in runs]

    with (
        shown.over(cost, len(planned)),
        tempfile.TemporaryDirectory(prefix="calibayes-") if folder is None else nullcontext(folder) as place,
        Runner(Path(place), workers=workers, threads=1, note=shown.note) as runner,
    ):
        first = train([*candidates, *early])
        tried = first[: len(candidates)]
        chosen = choose(tried)
        late = [chosen[s].run.with_seed(seed) for s in methods for seed in seeds if chosen[s].run not in decided]
        others = first[len(candidates) :] + train(late)
        final = [each for s in methods for each in (chosen[s], *(other for other in others if other.run.scheme == s))]
        tested = completed([records.test(each) for each in final], "test")
    return Trainings(
        task=task,
        settings=settings,
        data=data,
        candidates=[(each.run, each.scores) for each in tried],
        chosen={scheme: each.run for scheme, each in chosen.items()},
        trained={scheme: [each for each in final if each.run.scheme == scheme] for scheme in methods},
        tested={scheme: [each for each in tested if each.run.scheme == scheme] for scheme in methods},
        workers=workers,
        wall_seconds=time.monotonic() - begin,
        cpu_seconds=sum(each.seconds for each in (*tried, *others, *tested)),
        kept=kept,
    )


def default_workers() -> int:
    """One for each core that this process may use, up to four, since each loads its own torch."""
    return min(cores(), _MOST)
