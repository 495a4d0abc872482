"""Several files are compared only when they speak of the same examples."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.data.predictions.written import predictions, said_well, text, write_csv, write_npz

from calibayes.data.predictions import PredictionTable, align, read_predictions
from calibayes.errors import PredictionFileError

NAMES = ("cat", "dog", "cow")


def refused(tables: list[PredictionTable], *said: str) -> None:
    with pytest.raises(PredictionFileError) as caught:
        align(tables)
    said_well(str(caught.value), *said)


def read(tmp_path: Path, name: str, content: str, **settings: str) -> PredictionTable:
    return read_predictions(text(tmp_path, content, name), **settings)  # type: ignore[arg-type]


def test_one_table_or_none_stays_as_it_is(tmp_path: Path) -> None:
    assert align([]) == []
    table = read(tmp_path, "a.csv", "label,p_a,p_b\na,0.5,0.5\n")
    (same,) = align([table])
    assert same.probs is table.probs
    assert same.name == "a"


def test_columns_in_another_order_are_put_in_order(tmp_path: Path) -> None:
    probs, targets = predictions(40, 3)
    labels = [NAMES[target] for target in targets]
    order = [2, 0, 1]
    first = read_predictions(write_csv(tmp_path / "a.csv", probs, labels, NAMES))
    turned = [NAMES[j] for j in order]
    second = read_predictions(write_csv(tmp_path / "b.csv", probs[:, order], labels, turned, prefix="logit_"))
    a, b = align([first, second])
    assert a.class_names == b.class_names == NAMES
    np.testing.assert_array_equal(b.targets, targets)
    assert b.logits is not None
    np.testing.assert_array_equal(b.logits, probs)
    np.testing.assert_allclose(b.probs, np.exp(probs) / np.exp(probs).sum(1, keepdims=True), rtol=1e-14)


def test_rows_in_another_order_are_joined_by_their_ids(tmp_path: Path) -> None:
    a = "id,label,p_a,p_b,w\nx,a,0.5,0.5,1\ny,b,0.25,0.75,2\nz,b,0,1,3\n"
    b = "id,label,p_a,p_b,w\nz,b,0.1,0.9,3\nx,a,0.2,0.8,1\ny,b,0.3,0.7,2\n"
    first, second = align(
        [read(tmp_path, name, content, id="id", weights="w") for name, content in (("a.csv", a), ("b.csv", b))]
    )
    assert first.ids == second.ids == ("x", "y", "z")
    assert second.probs[:, 0].tolist() == [0.2, 0.3, 0.1]
    assert second.targets.tolist() == [0, 1, 1]
    assert second.weights is not None
    assert second.weights.tolist() == [1, 2, 3]


def test_a_file_that_only_numbers_its_classes_follows_the_others(tmp_path: Path) -> None:
    probs, targets = predictions(12, 3)
    named = read_predictions(write_npz(tmp_path / "a.npz", probs, targets, NAMES))
    np.savez(tmp_path / "b.npz", probs=probs, targets=targets)
    numbered = read_predictions(tmp_path / "b.npz")
    assert [table.class_names for table in align([named, numbered])] == [NAMES, NAMES]
    for table in align([numbered, named]):
        assert table.class_names == ("0", "1", "2")
        np.testing.assert_array_equal(table.targets, targets)
    other = read_predictions(write_npz(tmp_path / "c.npz", probs, (targets + 1) % 3, NAMES))
    refused([other, numbered], "b.npz", "c.npz", "row 1")


def test_one_column_and_two_columns_agree(tmp_path: Path) -> None:
    one = read(tmp_path, "a.csv", "label,prob_no\nno,0.75\nyes,0.5\n")
    two = read(tmp_path, "b.csv", "label,p_no,p_yes\nno,1,0\nyes,0.25,0.75\n")
    a, b = align([one, two])
    assert a.class_names == b.class_names == ("yes", "no")
    assert b.probs.tolist() == [[0, 1], [0.75, 0.25]]
    assert a.targets.tolist() == b.targets.tolist() == [1, 0]


def test_weights_of_one_file_hold_for_all(tmp_path: Path) -> None:
    plain = read(tmp_path, "a.csv", "label,p_a,p_b\na,0.5,0.5\nb,0,1\n")
    weighted = read(tmp_path, "b.csv", "label,p_a,p_b,w\na,0.5,0.5,2\nb,0,1,3\n", weights="w")
    for table in align([plain, weighted]):
        assert table.weights is not None
        assert table.weights.tolist() == [2, 3]
    other = read(tmp_path, "c.csv", "label,p_a,p_b,w\na,0.5,0.5,2\nb,0,1,4\n", weights="w")
    refused([weighted, plain, other], "c.csv", "b.csv", "row 2", "weight")


def test_names_are_made_different(tmp_path: Path) -> None:
    content = "label,p_a,p_b\na,0.5,0.5\n"
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
    paths = ["one/m.csv", "two/m.csv", "one/m.tsv", "other.csv"]
    tables = [read(tmp_path, path, content) for path in paths]
    assert [table.name for table in align(tables)] == ["one/m", "two/m", "one/m (2)", "other"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("label,p_a,p_b\na,0.5,0.5\n", ("1 example,", "2 in", "--id")),
        ("label,p_a,p_b\na,0.5,0.5\na,0.5,0.5\n", ("row 2", "the label is 'a', but 'b'", "--id")),
        ("label,p_a,p_c\na,0.5,0.5\nc,0.5,0.5\n", ("classes", "'c' is not among 'a', 'b'")),
        ("label,p_a,p_b,p_c\na,0.5,0.5,0\nb,0.5,0.5,0\n", ("classes", "'c' is not among 'a', 'b'")),
    ],
)
def test_files_of_other_examples_are_refused(tmp_path: Path, content: str, said: tuple[str, ...]) -> None:
    first = read(tmp_path, "first.csv", "label,p_a,p_b\na,0.5,0.5\nb,0.25,0.75\n")
    refused([first, first, read(tmp_path, "second.csv", content)], "first.csv", "second.csv", *said)


def test_fewer_classes_are_refused(tmp_path: Path) -> None:
    first = read(tmp_path, "first.csv", "label,p_a,p_b,p_c\na,0.5,0.5,0\n")
    second = read(tmp_path, "second.csv", "label,p_a,p_b\na,0.5,0.5\n")
    refused([first, second], "first.csv", "second.csv", "'a', 'b'", "'a', 'b', 'c'")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("id,label,p_a,p_b\nx,a,0.5,0.5\nz,b,0.5,0.5\n", ("the id 'y'", "row 2", "not there")),
        ("id,label,p_a,p_b\nz,a,0,1\nx,a,0.5,0.5\ny,b,0.5,0.5\n", ("row 1", "the id 'z' is not in")),
        ("id,label,p_a,p_b\ny,a,0.5,0.5\nx,a,0.5,0.5\n", ("id 'y'", "the label is 'a', but 'b'")),
    ],
)
def test_ids_that_do_not_fit_are_refused(tmp_path: Path, content: str, said: tuple[str, ...]) -> None:
    first = read(tmp_path, "first.csv", "id,label,p_a,p_b\nx,a,0.5,0.5\ny,b,0.25,0.75\n", id="id")
    refused([first, read(tmp_path, "second.csv", content, id="id")], "first.csv", "second.csv", *said)


def test_ids_in_one_file_only_are_refused(tmp_path: Path) -> None:
    content = "id,label,p_a,p_b\nx,a,0.5,0.5\ny,b,0.25,0.75\n"
    first, second = read(tmp_path, "first.csv", content, id="id"), read(tmp_path, "second.csv", content)
    refused([first, second], "'", "first.csv", "second.csv", "no ids", "--id")
    refused([second, first], "first.csv", "second.csv", "no ids")
