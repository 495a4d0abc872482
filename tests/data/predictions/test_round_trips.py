"""Whatever the classes are called, what is written is what is read; and both ways to read a text file agree."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import hypothesis.strategies as st
import numpy as np
from hypothesis import example, given, settings
from tests.data.predictions.written import predictions, said_well, text, write_csv, write_npz, write_parquet

from calibayes.data.predictions import read_predictions
from calibayes.data.predictions.column_values import read_columns
from calibayes.errors import DataError, PredictionFileError
from calibayes.tables import TableOptions
from calibayes.tables.delimited import DelimitedFile

ODD = (
    *(
        "<script>alert(1)</script>",
        "a,b",
        'say "hi"',
        "two\nlines",
        "two\r\nlines",
        " a",
        "a ",
        "a",
        "é",
        "e\u0301",
        "猫",
        "🐈",
    ),
    *("p_x", "x_prob", "logit_a", "label", "y", "0", "1.0", "01", "True", "NA", "nan", "*", "[a]", ";", "\t", "'", "#", "=1+1"),
)
# A name that is empty cannot be told from an empty cell; NumPy drops zeros at the end, and lone surrogates are no text.
LETTERS = st.characters(codec="utf-8", exclude_characters="\0")
NAMES = st.lists(st.one_of(st.sampled_from(ODD), st.text(LETTERS, min_size=1, max_size=8)), min_size=2, max_size=6, unique=True)


@settings(max_examples=150)
@given(names=NAMES, seed=st.integers(0, 100), mark=st.sampled_from([",", ";", "\t"]))
@example(names=["a", " a", "a "], seed=0, mark=",")
@example(names=["1", "01", "1.0"], seed=0, mark=",")
@example(names=["a", "\ufeff"], seed=0, mark=",")
@example(names=["two\nlines", "two\r\nlines", "two\rlines"], seed=0, mark=";")
def test_odd_class_names(names: list[str], seed: int, mark: str) -> None:
    probs, targets = predictions(3 * len(names), len(names), seed)
    labels = [names[target] for target in targets]
    with TemporaryDirectory() as folder:
        for path in (
            write_csv(Path(folder) / "a.csv", probs, labels, names, mark=mark),
            write_parquet(Path(folder) / "a.parquet", probs, labels, names),
            write_npz(Path(folder) / "a.npz", probs, labels, names),
        ):
            table = read_predictions(path)
            assert table.class_names == tuple(names)
            np.testing.assert_array_equal(table.targets, targets)
            np.testing.assert_array_equal(table.probs, probs)
            assert table.describe().isprintable()


@settings(max_examples=100)
@given(names=NAMES, seed=st.integers(0, 100))
def test_odd_class_names_as_columns_of_their_own(names: list[str], seed: int) -> None:
    names = [name for name in names if name.strip() and name != "label"]
    if len(names) < 2:
        return
    probs, targets = predictions(3 * len(names), len(names), seed)
    labels = [names[target] for target in targets]
    with TemporaryDirectory() as folder:
        table = read_predictions(write_csv(Path(folder) / "a.csv", probs, labels, names, prefix=""), label="label")
    assert table.class_names == tuple(names)
    np.testing.assert_array_equal(table.targets, targets)
    np.testing.assert_array_equal(table.probs, probs)


def attempt(file: DelimitedFile) -> tuple[Any, str]:
    """The texts and numbers of two columns, or why there are none."""
    try:
        texts, numbers = read_columns(file, ["label"], ["x"])
        return ([texts["label"].values[code] for code in texts["label"].codes], numbers), ""
    except DataError as error:
        return None, said_well(str(error), "model.csv")


CELLS = st.one_of(
    st.sampled_from(
        ["a", "b", "0.5", " 0.25", "1e-3", '"a"', '"0.5"', '"x\ny"', "", "nan", "é", '"', '"a"b', '5"', "inf", "1,", "+1", "."]
    ),
    st.text(st.sampled_from('ab01.,"\n\r e+-'), max_size=4),
)
FILES = st.lists(st.lists(CELLS, min_size=3, max_size=3).map(",".join), min_size=1, max_size=5)


@settings(max_examples=400)
@given(rows=FILES, end=st.sampled_from(["\n", "\r\n", ""]))
def test_the_fast_and_the_slow_way_agree(rows: list[str], end: str) -> None:
    with TemporaryDirectory() as folder:
        path = text(Path(folder), "x,label,y\n" + (end or "\n").join(rows) + end)
        try:
            file = DelimitedFile(path, TableOptions(delimiter=","))
        except DataError:
            return
        fast, why_not_fast = attempt(file)
        with patch.object(DelimitedFile, "_parsed", return_value=None):
            slow, _ = attempt(file)
    if fast is None or slow is None:
        # Where there are two mistakes, either is told. Arrow takes nan and inf for numbers, which are refused afterwards.
        assert (fast is None and slow is None) or (fast is not None and not np.isfinite(fast[1]).all()), why_not_fast
        return
    assert fast[0] == slow[0]
    np.testing.assert_array_equal(fast[1], slow[1])


@settings(max_examples=300)
@given(
    content=st.one_of(st.binary(max_size=200), st.text(st.sampled_from('abp_label0.5,;\t"\n\r'), max_size=200).map(str.encode))
)
def test_nothing_but_the_named_error_comes_out(content: bytes) -> None:
    with TemporaryDirectory() as folder:
        for name in ("a.csv", "a.csv.gz", "a.parquet", "a.npz"):
            start = {"a.csv.gz": b"\x1f\x8b", "a.parquet": b"PAR1", "a.npz": b"PK\x03\x04"}.get(name, b"")
            for whole in (content, start + content):
                try:
                    read_predictions(text(Path(folder), whole, name))
                except PredictionFileError as error:
                    said_well(str(error), name)
