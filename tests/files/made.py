"""Small files to train on: a table with all kinds of columns, and a model for it that trains in moments."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from calibayes.files import Model, train

__all__ = ["HEADER", "rows", "small_model", "table_model", "write_csv"]

HEADER = ("size", "colour", "seen", "kind")
QUICK: dict[str, Any] = {"scheme": "bnn", "epochs": 4, "predictive_samples": 3, "hidden": [8]}


def rows(n: int, seed: int = 0) -> list[list[str]]:
    """Numbers, categories and dates, some of them missing, and a class that depends on the first two."""
    generator = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        kind = int(generator.integers(2))
        size = generator.normal(3 * kind)
        colour = ["red", "blue"][kind if generator.random() < 0.8 else 1 - kind]
        day = f"2024-{generator.integers(1, 13):02}-{generator.integers(1, 28):02}"
        cells = [f"{size:.3f}", colour, day, ["small", "large"][kind]]
        for place in range(3):
            cells[place] = "" if generator.random() < 0.1 else cells[place]
        found.append(cells)
    return found


def write_csv(path: Path, body: list[list[str]], header: tuple[str, ...] = HEADER, delimiter: str = ",") -> Path:
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, delimiter=delimiter).writerows([list(header), *body])
    return path


@cache
def table_model() -> Model:
    """Trained once for all tests that only look at it."""
    with TemporaryDirectory() as folder:
        return train(write_csv(Path(folder) / "t.csv", rows(120)), target="kind", **QUICK).model


def small_model(path: Path) -> Model:
    """One that is trained on a file of the test's own."""
    torch.manual_seed(0)
    return train(path, target="kind", **QUICK).model
