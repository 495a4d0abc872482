"""The files that a comparison writes: the numbers, the tables, the picture and the predictions."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from calibayes.displays import ReliabilityDisplay, reliability_grid
from calibayes.methods import METHODS
from calibayes.metrics import Scores, reliability_bins
from calibayes.metrics.bins import DEFAULT_BINS
from calibayes.metrics.score_table import as_json_numbers
from calibayes.recipes.compare.advice import Advice, advise
from calibayes.recipes.compare.comparison import Comparison
from calibayes.recipes.compare.comparison_settings import BASELINES
from calibayes.recipes.compare.comparison_text import closing_words
from calibayes.recipes.compare.contenders import Contender, Entry
from calibayes.recipes.compare.jobs import OPTIMIZER, RECIPE, Probs
from calibayes.recipes.compare.recommendation import COMPARED, DRAWS, LEVEL, RANKING, Differences
from calibayes.recipes.compare.score_columns import summary
from calibayes.recipes.compare.trainings import RULE, Trainings
from calibayes.report import study, write_page
from calibayes.report.confidence_verdict import verdict
from calibayes.report.study import Model
from calibayes.sweeps.results_folder import machine, prepare, unwritable, versions, write_json, write_whole

__all__ = ["FILES", "PREDICTIONS", "RUNS", "describe", "title_in", "write"]

RUNS = "runs"
PREDICTIONS = "predictions"
FILES = {
    "table.txt": "the text printed above",
    "reliability.png": "a reliability diagram of each (seed 0)",
    "report.html": "a page with every metric, diagram and difference (seed 0)",
    "results.json": "every number, with settings and versions",
    PREDICTIONS: "every contender's probabilities, for calibayes evaluate",
    RUNS: "every training, so that none is repeated when you add seeds",
}
_MOST_COLUMNS = 6
_FEWEST_BINS, _BIN_EXAMPLES = 5, 25  # of a picture, and examples for each further bin


def write(comparison: Comparison, folder: Path, *, advice: Advice, printed: str, command: str) -> None:
    """Write the files of `FILES` into the folder, each atomically, so that two processes do not interfere."""
    # Each method stands above itself with a temperature, and the baselines below.
    ordered = sorted(comparison.entries.values(), key=lambda entry: (entry.contender.baseline, entry.contender.scaled))
    named = [(str(entry.contender), entry.test_probs[0], entry.test[0]) for entry in ordered]
    columns = max(2, len(comparison.settings.methods))
    with written_to(folder):
        (folder / "report.html").unlink(missing_ok=True)  # written last, so that it never belongs to other results
        _write_predictions(comparison, folder / PREDICTIONS)
        write_json(folder / "results.json", as_json_numbers(describe(comparison, command, advice)))
        write_whole(folder / "table.txt", printed.encode())
        picture = diagrams(named, comparison.targets, columns=columns if columns <= _MOST_COLUMNS else 4)
        write_whole(folder / "reliability.png", picture)
        write_page(_study(comparison, command, advice), folder / "report.html")


@contextmanager
def written_to(folder: Path) -> Iterator[None]:
    """Name the folder in the error if it cannot be written to."""
    try:
        yield
    except OSError as error:
        raise unwritable(folder, error) from error


def diagrams(named: Sequence[tuple[str, Probs, Scores]], targets: Tensor, *, columns: int) -> bytes:
    """A picture with a reliability diagram for each name; few examples get few bins, so that a bar is more than noise."""
    bins = _diagram_bins(len(targets))
    displays = [
        ReliabilityDisplay(bins=reliability_bins(probs, targets, bins), scores=scores, name=name)
        for name, probs, scores in named
    ]
    buffer = io.BytesIO()
    reliability_grid(displays, columns=columns).savefig(buffer, dpi=110, format="png")
    return buffer.getvalue()


def _diagram_bins(examples: int) -> int:
    return max(_FEWEST_BINS, min(DEFAULT_BINS, examples // _BIN_EXAMPLES))


def title_in(folder: Path) -> str | None:
    """The data set of the comparison whose results are in a folder, or ``None``."""
    try:
        return str(json.loads((folder / "results.json").read_text(encoding="utf-8"))["task"]["title"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _study(comparison: Comparison, command: str, advice: Advice) -> dict[str, Any]:
    """The advice, every metric of the contenders trained with the first seed, and every two of them compared."""
    seeds = comparison.settings.seeds
    origin = {"command": command, "files": [f"{comparison.task.name} (seed 0{f' of {seeds}' if seeds > 1 else ''})"]}
    found = study(comparison.predictions(0), comparison.targets, class_names=comparison.class_names, origin=origin)
    judged = zip(comparison.entries, found.models, strict=True)
    found = replace(found, models=[_for_the_page(comparison, each, model) for each, model in judged])
    return {**found.to_dict(), "advice": asdict(advice)}


def _for_the_page(comparison: Comparison, contender: Contender, model: Model) -> Model:
    """Say what a temperature does by the validation examples, not by a part of the test examples; and use few bins for few."""
    plain = verdict(model.scores, None)
    if contender.scaled:
        text = "Its temperature is applied."
    elif contender.baseline:
        text = "It is calibrated by cross-validation."
    else:
        other = Contender(contender.scheme, True)
        before, after = (comparison.validation.mean(each, "nll") for each in (contender, other))
        lower = f"A temperature takes its validation NLL from {before:.3f} to {after:.3f}: see {other}."
        text = lower if after < before else ""
    probs = comparison.entries[contender].test_probs[0]
    bins = reliability_bins(probs, comparison.targets, _diagram_bins(len(comparison.targets)))
    judged = replace(plain, text=f"{plain.text} {text}".rstrip())
    return replace(model, temperature=None, verdict=judged, reliability=bins)


def describe(comparison: Comparison, command: str, advice: Advice | None = None) -> dict[str, Any]:
    """All results of a comparison, as numbers, lists and dicts."""
    trainings, decision = comparison.trainings, comparison.verdict
    advice = advise(comparison) if advice is None else advice
    common = described_trainings(trainings, command)
    return {
        **common,
        "task": {
            "name": comparison.task.name,
            "title": comparison.task.title,
            "classes": list(comparison.class_names),
            **{part: len(getattr(trainings.data, part)[1]) for part in ("train", "validation", "test")},
        },
        "recipe": RECIPE,
        "ranking": RANKING,
        "contenders": [_contender(entry) for entry in comparison.entries.values()],
        "verdict": {
            "leader": None if decision.leader is None else str(decision.leader),
            "recommended": None if decision.recommended is None else str(decision.recommended),
            "clearly_worse": [str(each) for each in decision.clearly_worse],
            "by": "validation examples, all seeds",
            **asdict(advice),
            "text": closing_words(comparison),
        },
        "intervals": {
            "level": LEVEL,
            "comparisons": comparison.differences.comparisons,
            "correction": "Bonferroni",
            "covers": ["examples", *(["seeds"] if comparison.settings.seeds > 1 else [])],
            "draws": DRAWS,
        },
        "differences": _differences(comparison.entries, comparison.differences, COMPARED),
        "validation_differences": _differences(comparison.entries, comparison.validation, ("nll",)),
        "seconds": {**common["seconds"], "trainings_from_before": trainings.kept},
    }


def _differences(contenders: Iterable[Contender], compared: Differences, scores: Sequence[str]) -> list[dict[str, Any]]:
    return [
        {
            **{"first": str(first), "second": str(second)},
            **{score: compared.between(first, second, score)._asdict() for score in scores},
        }
        for second, first in combinations(contenders, 2)
    ]


def described_trainings(trainings: Trainings, command: str) -> dict[str, Any]:
    """The settings, candidates, versions, machine and time behind the results."""
    return {
        "command": command,
        "settings": trainings.settings.to_dict(),
        "optimizer": OPTIMIZER,
        "calibration_measure": "WMMCE()",
        "rule": RULE,
        "candidates": [{**asdict(run), "validation": scores.to_dict()} for run, scores in trainings.candidates],
        "versions": versions(),
        "machine": machine(workers=trainings.workers, threads_per_worker=1),
        "seconds": {"wall": round(trainings.wall_seconds, 1), "cpu": round(trainings.cpu_seconds, 1)},
    }


def described_scores(validation: Sequence[Scores], test: Sequence[Scores], **others: Sequence[Any]) -> dict[str, Any]:
    """Scores of a method: means over seeds, and those of each seed with its items of ``others``."""
    parts = {"validation": [each.to_dict() for each in validation], "test": [each.to_dict() for each in test]}
    columns: dict[str, Sequence[Any]] = {"seed": range(len(test)), **others, **parts}
    return {
        "test": {name: value._asdict() for name, value in summary(test).items()},
        "seeds": [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)],
    }


def _contender(entry: Entry) -> dict[str, Any]:
    files = [f"{PREDICTIONS}/{_file_name(entry.contender, seed)}" for seed in range(len(entry.test))]
    others: dict[str, list[Any]] = {"temperature": entry.temperatures, "predictions": files}
    if entry.choices:
        others = {"chosen": [choice._asdict() for choice in entry.choices], "predictions": files}
    return {
        "name": str(entry.contender),
        "scheme": entry.contender.scheme,
        "baseline": entry.contender.baseline,
        "temperature_scaled": entry.contender.scaled,
        "lam": entry.run.lam,
        "beta": entry.run.beta,
        **described_scores(entry.validation, entry.test, **others),
    }


def _write_predictions(comparison: Comparison, folder: Path) -> None:
    """Write the probabilities of every contender and seed, and remove those of other settings."""
    prepare(folder)
    names = np.array(comparison.class_names)
    written = set()
    validation, test = comparison.trainings.data.validation[1], comparison.targets
    for entry in comparison.entries.values():
        for seed in range(comparison.settings.seeds):
            for probs, targets, part in (entry.test_probs, test, ""), (entry.validation_probs, validation, "-validation"):
                buffer = io.BytesIO()
                np.savez_compressed(buffer, probs=probs[seed], targets=targets.numpy(), class_names=names)
                path = folder / _file_name(entry.contender, seed, part)
                write_whole(path, buffer.getvalue())
                written.add(path.name)
    ours = re.compile(rf"({'|'.join(map(re.escape, (*METHODS, *BASELINES)))})(-t)?-seed\d+(-validation)?\.npz")
    for path in folder.iterdir():
        if ours.fullmatch(path.name) and path.name not in written:
            path.unlink(missing_ok=True)


def _file_name(contender: Contender, seed: int, part: str = "") -> str:
    return f"{contender.slug}-seed{seed}{part}.npz"
