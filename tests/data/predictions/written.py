"""Files of predictions to read, and what it means to refuse one well."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from calibayes.data.predictions import PredictionTable, read_predictions
from calibayes.errors import PredictionFileError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def text(tmp_path: Path, content: str | bytes, name: str = "model.csv") -> Path:
    """A file with this content."""
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def predictions(n: int, classes: int, seed: int = 0) -> tuple[Floats, Ints]:
    """Random probabilities and labels; every class occurs if there are enough examples."""
    generator = np.random.default_rng(seed)
    probs = generator.dirichlet(np.ones(classes), n)
    return probs, generator.permutation(np.arange(n) % classes)


def write_csv(
    path: Path, probs: Floats, labels: Sequence[str], names: Sequence[str], prefix: str = "p_", mark: str = ","
) -> Path:
    content = io.StringIO(newline="")
    writer = csv.writer(content, delimiter=mark)
    writer.writerow(["label", *(prefix + name for name in names)])
    writer.writerows([label, *map(repr, row)] for label, row in zip(labels, probs.tolist(), strict=True))
    path.write_bytes(content.getvalue().encode())
    return path


def write_parquet(path: Path, probs: Floats, labels: Sequence[Any], names: Sequence[str], prefix: str = "p_") -> Path:
    columns = {"label": pa.array(labels)} | {prefix + name: probs[:, j] for j, name in enumerate(names)}
    pq.write_table(pa.table(columns), path)
    return path


def write_npz(path: Path, probs: Floats, labels: Any, names: Sequence[str | int], **more: Any) -> Path:
    np.savez(path, probs=probs, targets=np.asarray(labels), class_names=np.asarray(names), **more)
    return path


def refused(path: Path, *said: str, **settings: Any) -> str:
    """The message with which a file is refused: one line that names the file and says all of ``said``."""
    with pytest.raises(PredictionFileError) as caught:
        read_predictions(path, **settings)
    return said_well(str(caught.value), path.name, *said)


def said_well(message: str, *said: str) -> str:
    """``message``, having checked that it is one printable line that says all of ``said``."""
    assert message.isprintable(), message
    assert len(message) < 1000, message
    for fragment in said:
        assert fragment in message, (fragment, message)
    return message


def same(first: PredictionTable, second: PredictionTable) -> None:
    """Assert that two files said the same."""
    assert first.class_names == second.class_names
    np.testing.assert_array_equal(first.probs, second.probs)
    np.testing.assert_array_equal(first.targets, second.targets)
