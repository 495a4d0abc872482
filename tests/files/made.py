"""Small files to train on: a table with all kinds of columns, and a model for it that trains in moments."""

from __future__ import annotations

import csv
import json
from datetime import date
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from pyarrow import parquet

from calibayes.files import Model, train

__all__ = ["HEADER", "records", "rows", "small_model", "table_model", "write_csv", "write_records"]

HEADER = ("size", "colour", "seen", "kind")
QUICK: dict[str, Any] = {"scheme": "bnn", "epochs": 4, "predictive_samples": 3, "hidden": [8], "folds": 2}


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


def records(n: int, seed: int = 0) -> list[dict[str, Any]]:
    """The same rows as values that are no texts, with whole numbers and truth values besides."""
    return [
        {
            "size": float(size) if size else None,
            "colour": colour or None,
            "seen": date.fromisoformat(seen) if seen else None,
            "legs": place % 3 or None,
            "wild": place % 2 == 0,
            "kind": kind,
        }
        for place, (size, colour, seen, kind) in enumerate(rows(n, seed))
    ]


def write_records(path: Path, body: list[dict[str, Any]]) -> Path:
    """As Parquet, JSON lines, Excel or CSV, by the name of the file, each with values as it has them."""
    if path.suffix == ".parquet":
        parquet.write_table(pa.Table.from_pylist(body), path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(record, default=str) + "\n" for record in body))
    elif path.suffix == ".xlsx":
        pytest.importorskip("openpyxl", reason="needs the extra excel")
        pd.DataFrame(body).to_excel(path, index=False)
    else:
        write_csv(path, [["" if value is None else str(value) for value in record.values()] for record in body], tuple(body[0]))
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
