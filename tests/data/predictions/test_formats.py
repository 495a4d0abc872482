"""What every format can hold, and that it does not matter which one is used."""

from __future__ import annotations

import csv
import gzip
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.data.predictions.written import predictions, same, text, write_csv, write_npz, write_parquet

from calibayes.data.predictions import read_predictions
from calibayes.tables import delimited

NAMES = ("cat", "dog", "cow")
SIMPLE = "label,p_cat,p_dog,p_cow\ndog,0.25,0.5,0.25\ncat,1,0,0\n"
PROBS = [[0.25, 0.5, 0.25], [1.0, 0.0, 0.0]]


def test_importing_the_reader_loads_no_reader_of_tables() -> None:
    code = "import sys, calibayes.data.predictions; print(*{'pandas', 'pyarrow'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip() == ""


def test_every_format_gives_the_same_table(tmp_path: Path) -> None:
    probs, targets = predictions(50, 3)
    labels = [NAMES[target] for target in targets]
    tables = [
        read_predictions(write_csv(tmp_path / "a.csv", probs, labels, NAMES)),
        read_predictions(write_csv(tmp_path / "a.tsv", probs, labels, NAMES, mark="\t")),
        read_predictions(write_parquet(tmp_path / "a.parquet", probs, labels, NAMES)),
        read_predictions(write_npz(tmp_path / "a.npz", probs, labels, NAMES)),
        read_predictions(write_npz(tmp_path / "b.npz", probs, targets, NAMES)),
    ]
    for table in tables:
        np.testing.assert_array_equal(table.probs, probs)
        np.testing.assert_array_equal(table.targets, targets)
        assert table.class_names == NAMES
        assert (table.probs.dtype.name, table.targets.dtype.name, table.kind) == ("float64", "int64", "probabilities")
        assert table.logits is None
        assert table.weights is None
        assert table.ids is None


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("model.csv", SIMPLE),
        ("model.CSV", SIMPLE),
        ("model.tsv", SIMPLE.replace(",", "\t")),
        ("model.txt", SIMPLE.replace(",", ";")),
        ("model.csv", SIMPLE.replace(",", ";")),
        ("model.csv", SIMPLE.replace("\n", "\r\n")),
        ("model.csv", SIMPLE.replace("\n", "\r")),
        ("model.csv", "\ufeff" + SIMPLE),
        ("model.csv", "\ufeff" + SIMPLE.replace("label", '"label"')),
        ("model.csv", SIMPLE + "\n\n\r\n"),
        ("model.csv", "\n\n" + SIMPLE.replace("\ncat", "\n\ncat")),
        ("model.csv", SIMPLE.rstrip("\n")),
        ("model.csv", SIMPLE.replace("0.25", '"0.25"').replace("\ndog", '\n"dog"')),
        ("model.csv", SIMPLE.replace(",", ", ")),
        ("model.csv", SIMPLE.replace("0.25", " +2.5e-1 ")),
        ("model.csv", "sep=;\n" + SIMPLE.replace(",", ";")),
        ("model.csv.gz", gzip.compress(SIMPLE.encode(), mtime=0)),
        ("model.tsv.gz", gzip.compress(SIMPLE.replace(",", "\t").encode(), mtime=0)),
        ("model.csv", gzip.compress(SIMPLE.encode(), mtime=0)),
    ],
)
def test_the_many_ways_to_write_a_delimited_file(tmp_path: Path, name: str, content: str | bytes) -> None:
    table = read_predictions(text(tmp_path, content, name))
    assert table.probs.tolist() == PROBS
    assert [table.class_names[target] for target in table.targets] == ["dog", "cat"]
    assert table.class_names == NAMES
    assert table.name == "model"


@pytest.mark.parametrize(("name", "stem"), [("v1.2.csv", "v1.2"), ("a.csv.gz", "a"), ("a b.txt", "a b")])
def test_the_name_is_the_file_name_without_its_ending(tmp_path: Path, name: str, stem: str) -> None:
    content = gzip.compress(SIMPLE.encode(), mtime=0) if name.endswith("gz") else SIMPLE
    table = read_predictions(str(text(tmp_path, content, name)))
    assert (table.name, table.path) == (stem, tmp_path / name)


def test_sound_files_are_read_the_fast_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(delimited, "record_blocks")
    content = (
        '\ufeff\r\n"label","p_two\r\nlines",p_b,note\r\n"two\r\nlines",0.25,"0.75","a ""b"""\r\n\r\nb, 0 ,1,"x\ny"\r\n\r\n'
    )
    for name, stored in (("a.csv", content.encode()), ("a.csv.gz", gzip.compress(content.encode(), mtime=0))):
        table = read_predictions(text(tmp_path, stored, name))
        assert table.class_names == ("two\r\nlines", "b")
        assert table.probs.tolist() == [[0.25, 0.75], [0, 1]]
        assert table.targets.tolist() == [0, 1]


def test_long_files_and_long_rows_are_read_the_fast_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(delimited, "record_blocks")
    rows = '"a\nb,0.5,0.5",0.25,0.75\nc,0,1\n' * 40_000
    table = read_predictions(text(tmp_path, 'label,"p_a\nb,0.5,0.5",p_c\n' + rows))
    assert table.targets.tolist() == [0, 1] * 40_000
    assert table.probs.sum(0).tolist() == [10_000, 70_000]
    rows = f"a,0.5,0.5,{'x' * 1_500_000}\n" * 4
    assert read_predictions(text(tmp_path, "label,p_a,p_b,note\n" + rows)).n == 4


def test_labels_that_other_readers_take_for_missing_stay_labels(tmp_path: Path) -> None:
    names = ("NA", "None", "null", "nan", "NaN", "N/A", "-", "inf")
    probs, targets = predictions(24, len(names))
    labels = [names[target] for target in targets]
    for path in (
        write_csv(tmp_path / "a.csv", probs, labels, names),
        write_csv(tmp_path / "b.csv", probs, labels, names, prefix=""),
        write_parquet(tmp_path / "a.parquet", probs, labels, names),
        write_npz(tmp_path / "a.npz", probs, labels, names),
    ):
        table = read_predictions(path)
        assert [table.class_names[target] for target in table.targets] == labels


def test_a_stray_quotation_mark_inside_a_cell_is_text(tmp_path: Path) -> None:
    path = text(tmp_path, 'label,note,p_a,p_b\na,5" of rain,0.5,0.5\nb,dry,0.5,0.5\n')
    assert read_predictions(path).n == 2


def test_a_delimiter_inside_names_does_not_mislead(tmp_path: Path) -> None:
    path = text(tmp_path, "label,p_a;b;c;d,p_e\na;b;c;d,0.25,0.75\na;b;c;d,0.5,0.5\n")
    assert read_predictions(path).class_names == ("a;b;c;d", "e")
    table = read_predictions(text(tmp_path, "label|p_a|p_b\na|0.25|0.75\n"), delimiter="|")
    assert table.probs.tolist() == [[0.25, 0.75]]


@pytest.mark.parametrize("before", [1, 2000])
def test_cells_longer_than_what_is_read_at_once(tmp_path: Path, before: int) -> None:
    limit = csv.field_size_limit()
    rows = "a,0.5,0.5,short\n" * before + f"b,0.25,0.75,{'x' * 2_500_000}\n" + "b,0.5,0.5,short\n"
    table = read_predictions(text(tmp_path, "label,p_a,p_b,note\n" + rows))
    assert table.targets.tolist() == [0] * before + [1, 1]
    assert table.columns.ignored == ("note",)
    assert csv.field_size_limit() == limit


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (["0", "1", "2"], ("0", "1", "2")),
        ([0, 1, 2], ("0", "1", "2")),
        ([0.0, 1.0, 2.0], ("0", "1", "2")),
        (["cat", "dog", "cow"], ("cat", "dog", "cow")),
        ([0, 1, 2], ("cat", "dog", "cow")),
        ([b"cat", b"dog", b"cow"], ("cat", "dog", "cow")),
        (pa.array(["cat", "dog", "cow"]).dictionary_encode(), ("cat", "dog", "cow")),
        (pa.array([0, 1, 2], pa.int8()), ("a", "b", "c")),
    ],
)
def test_parquet_labels_of_any_type(tmp_path: Path, labels: Any, said: tuple[str, ...]) -> None:
    table = read_predictions(write_parquet(tmp_path / "a.parquet", np.eye(3), labels, said))
    assert table.targets.tolist() == [0, 1, 2]
    assert table.class_names == said


def test_parquet_numbers_of_any_type(tmp_path: Path) -> None:
    columns = {
        "label": pa.array([True, False]),
        "p_False": pa.array([0.25, 1], pa.float32()),
        "p_True": pa.array([Decimal("0.75"), Decimal("0.00")]),
        "p_other": pa.array([0, 0], pa.int16()),
    }
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    table = read_predictions(tmp_path / "a.parquet")
    assert table.probs.tolist() == [[0.25, 0.75, 0], [1, 0, 0]]
    assert [table.class_names[target] for target in table.targets] == ["True", "False"]


def test_parquet_names_with_points_in_them_and_unused_categories(tmp_path: Path) -> None:
    labels = pa.DictionaryArray.from_arrays(pa.array([1, 2]), pa.array(["unused", "a", "a.b"]))
    nested = pa.array([{"b": 1.0}, {"b": 2.0}])
    columns = {"label": labels, "p.a": [1.0, 0.0], "p.a.b": [0.0, 1.0], "p": nested}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    table = read_predictions(tmp_path / "a.parquet")
    assert table.class_names == ("a", "a.b")
    assert table.targets.tolist() == [0, 1]


def test_thousands_of_classes(tmp_path: Path) -> None:
    names = [f"n{j:05}" for j in range(3000)]
    probs, targets = predictions(20, 3000)
    labels = [names[target] for target in targets]
    for path in (
        write_csv(tmp_path / "a.csv", probs, labels, names),
        write_parquet(tmp_path / "a.parquet", probs, labels, names),
        write_npz(tmp_path / "a.npz", probs, labels, names),
    ):
        table = read_predictions(path)
        np.testing.assert_array_equal(table.probs, probs)
        np.testing.assert_array_equal(table.targets, targets)


def test_npz_needs_no_class_names_and_takes_one_column(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", probs=np.eye(3, dtype=np.float32), labels=np.array([2, 1, 0]))
    table = read_predictions(tmp_path / "a.npz")
    assert (table.class_names, table.targets.tolist()) == (("0", "1", "2"), [2, 1, 0])
    np.savez(tmp_path / "b.npz", p=np.array([0.25, 0.5]), y=np.array([True, False]))
    table = read_predictions(tmp_path / "b.npz")
    assert (table.class_names, table.targets.tolist()) == (("False", "True"), [1, 0])
    assert table.probs.tolist() == [[0.75, 0.25], [0.5, 0.5]]
    np.savez(tmp_path / "c.npz", p=np.array([[0.25], [0.5]]), y=np.array([1, 1]), class_names=["well", "ill"])
    table = read_predictions(tmp_path / "c.npz")
    assert (table.class_names, table.targets.tolist()) == (("well", "ill"), [1, 1])


def test_npz_arrays_can_be_named(tmp_path: Path) -> None:
    arrays = {"out": np.array([[2.0, 0.0]]), "gt": np.array([1]), "probs": np.eye(2)[:1], "w": np.array([2.0]), "who": ["x"]}
    np.savez(tmp_path / "a.npz", **arrays)  # type: ignore[arg-type]
    table = read_predictions(tmp_path / "a.npz", columns="out", logits=True, label="gt", weights="w", id="who")
    assert table.logits is not None
    assert table.logits.tolist() == [[2.0, 0.0]]
    assert table.weights is not None
    assert (table.targets.tolist(), table.weights.tolist(), table.ids) == ([1], [2.0], ("x",))
    assert table.columns.ignored == ("probs",)


def test_npz_weights_are_found_by_their_name(tmp_path: Path) -> None:
    path = write_npz(tmp_path / "a.npz", np.eye(2), [0, 1], ["a", "b"], weights=np.array([1, 3]))
    weights = read_predictions(path).weights
    assert weights is not None
    assert weights.tolist() == [1.0, 3.0]


def test_half_precision_rows_are_brought_back_to_one(tmp_path: Path) -> None:
    probs, targets = predictions(200, 100)
    np.savez(tmp_path / "a.npz", probs=probs.astype(np.float16), targets=targets)
    table = read_predictions(tmp_path / "a.npz")
    np.testing.assert_allclose(table.probs.sum(1), 1, rtol=0, atol=1e-12)
    np.testing.assert_allclose(table.probs, probs, rtol=0, atol=1e-3)


def test_npz_integer_labels_that_are_names_or_places(tmp_path: Path) -> None:
    eye = np.eye(3)
    assert read_predictions(write_npz(tmp_path / "a.npz", eye, [5, 3, 7], [3, 5, 7])).targets.tolist() == [1, 0, 2]
    assert read_predictions(write_npz(tmp_path / "b.npz", eye, [0, 2, 1], [1, 2, 3])).targets.tolist() == [0, 2, 1]
    assert read_predictions(write_npz(tmp_path / "c.npz", eye, [0, 1, 2], ["cat", "1", "0"])).targets.tolist() == [0, 1, 2]


@pytest.mark.slow
def test_formats_agree_on_200_000_rows(tmp_path: Path) -> None:
    names = [f"class {j}" for j in range(10)]
    probs, targets = predictions(200_000, 10)
    labels = np.array(names)[targets]
    columns = {"label": pa.array(labels)} | {f"p_{name}": probs[:, j] for j, name in enumerate(names)}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    write_csv(tmp_path / "a.csv", probs, labels.tolist(), names)
    parquet, delimited = read_predictions(tmp_path / "a.parquet"), read_predictions(tmp_path / "a.csv")
    same(parquet, delimited)
    np.testing.assert_array_equal(delimited.probs, probs)
    np.testing.assert_array_equal(delimited.targets, targets)
