"""GloVe word vectors: a text file with a word and its numbers on each line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from calibayes.data.data_folder import data_folder, required
from calibayes.errors import DataError

__all__ = ["DIMENSIONS", "glove", "glove_file"]

DIMENSIONS = 100
_AGAIN = "Get it again: `calibayes data get glove`."


def glove_file(folder: str | Path | None = None) -> Path:
    """Return the file of the vectors, or raise an error that says how to get it."""
    return required(data_folder(folder) / "glove.6B" / "glove.6B.100d.txt", "glove", "GloVe 6B")


def glove(vocabulary: Sequence[str], folder: str | Path | None = None) -> Tensor:
    """Return the vectors of GloVe 6B for a vocabulary: ``[1 + len(vocabulary), 100]`` (float32).

    Row 0, for padding, is zero, and so are the rows of words that have no vector.

    Args:
        vocabulary: the words of rows 1, 2, …
        folder: the folder of data sets; by default ``CALIBAYES_DATA`` or the user's cache.
    """
    path = glove_file(folder)
    places = {word.encode(): index for index, word in enumerate(vocabulary, start=1)}
    vectors = np.zeros((len(vocabulary) + 1, DIMENSIONS), dtype=np.float32)
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            word, _, numbers = line.partition(b" ")
            place = places.get(word)
            if place is not None:
                vectors[place] = _vector(numbers, path, number)
    return torch.from_numpy(vectors)


def _vector(numbers: bytes, path: Path, line: int) -> list[float]:
    try:
        values = [float(number) for number in numbers.split()]
    except ValueError as error:
        raise DataError(f"Line {line} of {str(path)!r} is damaged: {error}. {_AGAIN}") from None
    if len(values) != DIMENSIONS:
        raise DataError(f"Line {line} of {str(path)!r} must have {DIMENSIONS} numbers, but has {len(values)}. {_AGAIN}")
    return values
