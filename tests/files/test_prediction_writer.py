"""Rows as lines of a CSV file: what the csv module reads is what was written."""

from __future__ import annotations

import csv
import io

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from calibayes.files.prediction_writer import formatted

_TEXTS = st.lists(st.text(st.sampled_from('ab ,"\r\n;%ä'), max_size=5), min_size=1, max_size=6)


@given(_TEXTS, st.lists(st.floats(), min_size=6, max_size=6))
def test_texts_are_read_as_they_were_and_numbers_have_six_digits(texts: list[str], values: list[float]) -> None:
    numbers = np.array(values[: len(texts)])
    columns = {"p": numbers, "text": np.array(texts, dtype=object), "q": numbers}
    lines = formatted(columns, ".csv").decode()
    written = [format(value, ".6g") for value in numbers.tolist()]
    assert list(csv.reader(io.StringIO(lines, newline=""))) == [list(row) for row in zip(written, texts, written, strict=True)]
