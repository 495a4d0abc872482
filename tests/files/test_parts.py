"""Labels become classes, and every class is in each of three parts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from calibayes.errors import DataError
from calibayes.files.read_rows import read_rows
from calibayes.files.split import labels_of, parts_of
from calibayes.tables import RowBlock, frame_block


def table(labels: Sequence[str | None]) -> RowBlock:
    return frame_block({"label": labels})


def test_classes_are_in_order_and_spellings_of_a_number_are_one() -> None:
    found = labels_of(table(["10", "2", "2.0", "10", "2", "10.0"]), "label", False)
    assert found.classes == ("2", "10")
    assert found.codes.tolist() == [1, 0, 0, 1, 0, 1]


def test_rows_without_a_label_are_left_out_and_told() -> None:
    found = labels_of(table(["a", None, "b", "a", " ", "b", "a", "b"]), "label", False)
    assert found.rows.tolist() == [0, 2, 3, 5, 6, 7]
    assert found.notes == ["2 rows without a label in 'label': left out."]


def test_a_class_called_na_is_a_class() -> None:
    found = labels_of(table(["NA", "b"] * 3), "label", False)
    assert found.classes == ("NA", "b")
    assert found.notes == ["Taken for classes of 'label', not for missing labels: 'NA'."]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["a"] * 9, "at least two classes in 'label', but there is only 'a'"),
        (["a", "a", "a", "b", "b", "b", "c"], "1 class of 'label' with fewer than 3 examples.*'c'.*--drop-rare"),
        (["a", "a", "a", "b", "c"], "2 classes of 'label' with fewer than 3"),
        ([None, ""], "'label' is empty"),
        ([f"{i / 7:.3f}" for i in range(300)], "300 different numbers.*an amount rather than a class"),
        ([f"text {i}" for i in range(1500)], "1,500 different values"),
    ],
)
def test_what_cannot_be_learnt_is_refused(labels: list[str | None], message: str) -> None:
    with pytest.raises(DataError, match=message):
        labels_of(table(labels), "label", False)


def test_rare_classes_can_be_left_out() -> None:
    found = labels_of(table(["a", "a", "a", "b", "b", "b", "c"]), "label", True)
    assert (found.classes, found.rows.tolist()) == (("a", "b"), [0, 1, 2, 3, 4, 5])
    assert "'c': left out, 1 row" in found.notes[0]


def test_parts_are_apart_cover_everything_and_have_every_class_in_its_share() -> None:
    codes = np.repeat([0, 1, 2], [600, 300, 3])
    parts = parts_of(codes, 0.15, 0.2, seed=0)
    assert sorted(np.concatenate(parts).tolist()) == list(range(903))
    counts = [np.bincount(codes[part], minlength=3).tolist() for part in parts]
    assert counts == [[390, 195, 1], [90, 45, 1], [120, 60, 1]]
    again, other = (parts_of(codes, 0.15, 0.2, seed=seed) for seed in (0, 1))
    assert all(np.array_equal(a, b) for a, b in zip(parts, again, strict=True))
    assert not np.array_equal(parts.train, other.train)


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (["1", "0", "NA", "?", "nan"], ("0", "1")),
        (["True", "false", "N/A"], ("false", "true")),
        (["a", "b", "NaN"], ("a", "b")),
    ],
)
def test_a_label_that_is_said_to_be_missing_is_no_class(labels: list[str], classes: tuple[str, ...]) -> None:
    found = labels_of(table(labels * 3), "label", False)
    assert found.classes == classes
    assert found.notes == [f"{3 * (len(labels) - 2)} rows without a label in 'label': left out."]


def test_every_format_has_missing_labels_alike(tmp_path: Path) -> None:
    labels = [1.0, 0.0, float("nan")] * 3
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"label": label}) + "\n" for label in labels))
    arrow = pa.table({"label": pa.array(labels, from_pandas=False)})
    for each in (read_rows(tmp_path / "a.jsonl")[0], frame_block(arrow)):
        assert labels_of(each, "label", False).rows.tolist() == [0, 1, 3, 4, 6, 7]


def test_whole_numbers_are_in_order_however_long_they_are() -> None:
    long = "1" * 5000
    assert labels_of(table(["9", long, "-3"] * 3), "label", False).classes == ("-3", "9", long)


def test_a_class_is_never_held_out_altogether() -> None:
    for n in range(3, 12):
        parts = parts_of(np.zeros(n, dtype=np.int64), 0.44, 0.44, seed=0)
        assert min(map(len, parts)) >= 1
