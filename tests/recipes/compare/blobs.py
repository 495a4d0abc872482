"""A task that trains in moments: points in the plane, three classes that overlap."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from rich.console import Console
from torch import Tensor, nn

from calibayes.data import Splits
from calibayes.metrics.score_table import as_json_numbers
from calibayes.networks import MLP
from calibayes.recipes.compare import Settings, Task, compare
from calibayes.recipes.compare.result_files import describe
from calibayes.recipes.compare.run_and_print import run_and_print

TINY = Settings(
    seeds=2,
    train=96,
    validation=80,
    test=150,
    epochs=8,
    batch_size=32,
    learning_rate=0.02,
    predictive_samples=3,
    lams=(3.0, 10.0),
    betas=(0.1, 1.0),
    baselines=(),
)
TRAININGS = 9 + 4  # 1 + 2 + 2 + 4 candidates, and one more seed for each scheme
ROOT = Path(__file__).parents[3]


def points(n: int, seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(n) % 3
    corners = torch.tensor([[0.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])
    return corners[labels] + 0.9 * torch.randn(n, 2, generator=generator), labels


def load(train: int, validation: int, test: int) -> Splits:
    parts = (points(train, 1), points(validation, 2), points(test, 3))
    return Splits(train=parts[0], validation=parts[1], test=parts[2], classes=("top", "right", "left"))


def load_with_wrong_test_labels(train: int, validation: int, test: int) -> Splits:
    splits = load(train, validation, test)
    x, y = splits.test
    return Splits(train=splits.train, validation=splits.validation, test=(x, (y + 1) % 3), classes=splits.classes)


def network() -> nn.Module:
    return MLP(2, (16,), 3)


BLOBS = Task(name="blobs", title="Points in the plane", examples="points", load=load, network=network)
MISLED = replace(BLOBS, load=load_with_wrong_test_labels)


class Shown(NamedTuple):
    """What a comparison leaves behind."""

    numbers: dict[str, Any]
    out: str
    err: str
    folder: Path


def shown(folder: Path, settings: Settings = TINY, task: Task = BLOBS, workers: int = 1, **others: Any) -> Shown:
    out, err = io.StringIO(), io.StringIO()
    console, aside = (Console(file=stream, highlight=False) for stream in (out, err))
    command = "calibayes compare"
    run_and_print(settings, folder, console=console, aside=aside, command=command, task=task, workers=workers, **others)
    return Shown(json.loads((folder / "results.json").read_text()), out.getvalue(), err.getvalue(), folder)


def computed(folder: Path, settings: Settings = TINY, task: Task = BLOBS) -> dict[str, Any]:
    """The numbers of ``results.json`` alone, without tables and pictures."""
    found = compare(task, settings, folder=folder / "runs", workers=1)
    numbers: dict[str, Any] = json.loads(json.dumps(as_json_numbers(describe(found, ""))))
    return numbers


def lasting(numbers: dict[str, Any]) -> dict[str, Any]:
    """The numbers that do not depend on when and where they were computed."""
    return {name: value for name, value in numbers.items() if name not in ("seconds", "machine", "command")}
