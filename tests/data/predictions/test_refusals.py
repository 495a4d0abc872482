"""Files that cannot be read: the message names the file, the place and the value, and says what to do."""

from __future__ import annotations

import gzip
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.data.predictions.written import predictions, refused, said_well, text, write_csv, write_npz, write_parquet

from calibayes.data.predictions import read_predictions
from calibayes.errors import DataError, InvalidArgumentError, PredictionFileError

GOOD = "label,p_a,p_b\na,0.5,0.5\nb,0.25,0.75\n"


def test_the_error_is_a_data_error() -> None:
    assert issubclass(PredictionFileError, DataError)


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("oops", ("'oops' is not a number", "like 0.25")),
        ("", ("empty", "leave the row out")),
        ("  ", ("empty",)),
        ("NA", ("'NA' is a missing value",)),
        ("nan", ("'nan' is a missing value",)),
        ("NaN", ("'NaN' is a missing value",)),
        ("None", ("'None' is a missing value",)),
        ("inf", ("'inf' is infinite", "overflow")),
        ("-Infinity", ("'-Infinity' is infinite",)),
        ("1e999", ("'1e999' is infinite",)),
        ('"0,5"', ("'0,5' has a comma", "decimal point")),
        ('"1,234.5"', ("'1,234.5' has a comma", "thousands")),
        ("50%", ("'50%' is a percentage",)),
        ("1_0", ("'1_0' is not a number",)),
        ("0x1", ("'0x1' is not a number",)),
        ("１", ("'１' is not a number",)),
        ("True", ("'True' is not a number",)),
        ('"two\nlines"', (r"'two\nlines' is not a number",)),
        ("\x1b[31mred\u202e", (r"'\x1b[31mred\u202e' is not a number",)),
        ("x" * 5000, ("'xxx", "x…' is not a number")),
        ("-0.25", ("'-0.25' is not a probability", "negative", "--logits")),
        ("1.25", ("'1.25' is not a probability", "above 1", "--logits")),
        ("0.4", ("0.4, 0.75", "sum to 1.15", "within 0.001", "divide each row by its sum")),
    ],
)
@pytest.mark.parametrize("before", [0, 1500])
def test_bad_numbers(tmp_path: Path, cell: str, said: tuple[str, ...], before: int) -> None:
    content = "label,p_a,p_b\n" + "a,0.5,0.5\n" * before + f"b,{cell},0.75\n" + "b,0,1\n" * 3
    refused(text(tmp_path, content), f"line {before + 2}, column 'p_a'", *said)


def test_the_first_bad_row_is_named(tmp_path: Path) -> None:
    path = text(tmp_path, "label,p_a,p_b\na,0.5,0.5\n\na,0.5,0.4\na,nan,0.5\na,-1,2\n")
    refused(path, "line 4", "sum to 0.9")


def test_lines_are_counted_as_an_editor_does(tmp_path: Path) -> None:
    content = '\ufeff\n"label",p_a,"p_b\nb"\r\n\r\na,0.5,0.5\n"a",0.5,"0.5"\n\na,0.5,oops\n'
    refused(text(tmp_path, content), "line 8", r"'p_b\nb'", "'oops'")
    content = 'label,note,p_a,p_b\na,"two\nlines",0.5,0.5\na,one,0.5,0.4\n'
    refused(text(tmp_path, content), "line 4", "sum to 0.9")


def test_one_column_of_probabilities_stays_in_its_range(tmp_path: Path) -> None:
    refused(text(tmp_path, "label,p\n0,0.5\n1,1.01\n"), "line 3", "'p'", "'1.01'", "above 1", "--logits")
    refused(text(tmp_path, "label,p\n0,-0.01\n1,1\n"), "line 2", "'-0.01'", "negative", "--logits")
    # What float32 makes of 1.
    assert read_predictions(text(tmp_path, "label,p\n0,0.5\n1,1.0000001\n")).probs.tolist() == [[0.5, 0.5], [0, 1]]


def test_logits_must_be_finite(tmp_path: Path) -> None:
    refused(text(tmp_path, "label,logit_a,logit_b\na,1,2\na,inf,-inf\n"), "line 3", "'logit_a'", "'inf'")
    refused(text(tmp_path, "label,p_a,p_b\na,1,nan\n"), "line 2", "'p_b'", "'nan'", logits=True)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", ("empty", "header line")),
        ("\n\n", ("blank",)),
        ("label,p_a,p_b\n", ("header", "'label', 'p_a', 'p_b'", "no row")),
        ("label,p_a,p_b\n\n\n", ("no row",)),
        ("label p_a p_b\na 0.5 0.5\n", ("line 1", "'label p_a p_b'", "--delimiter")),
        (GOOD + "a,0.5,0.25,0.25\n", ("line 4", "4 cells", "3 columns", "'a,0.5,0.25,0.25'", "quotes", "decimal point")),
        (GOOD + "a,0,5,0,5\n", ("line 4", "5 cells", "decimal point")),
        (GOOD + "a,0.5\n", ("line 4", "2 cells", "3 columns", "cut off")),
        (GOOD + "   \n", ("line 4", "1 cell")),
        (GOOD.replace(",", ";").replace("0.25", "0,25"), ("line 3", "'p_a'", "'0,25' has a comma")),
        (GOOD + '"a,0.5,0.5\nb,0.25,0.75\n', ("line 4", "quotation mark")),
        ('label,p_a,p_b,note\na,0.5,0.5,x\nb,0.5,0.5,"y\na,0.5,0.5,x\n', ("line 3", "quotation mark", "never closed")),
        ("label,p_a,p_b\na,0.5,0.5\n".encode("utf-16"), ("UTF-16", "UTF-8")),
        (b"label,p_caf\xe9,p_b\nb,0.5,0.5\n", ("line 1", r"'p_caf\udce9'", "UTF-8")),
        (b"label,p_a,p_b\nb,0.5,0.5\ncaf\xe9,0.5,0.5\n", ("line 3", "'label'", "UTF-8")),
        (b"label,p_a,p_b\0\nb,0.5,0.5\n", ("not a text file", "zero bytes")),
        (b"\x89PNG\r\n\x1a\n" + bytes(100), ("PNG image", "not a .csv file")),
        (b"\xff\xd8\xff\xe0" + bytes(100), ("JPEG image",)),
        (b"PK\x03\x04" + bytes(100), ("ZIP archive", ".npz")),
        (b"PAR1" + bytes(100), ("Parquet file", "ending .parquet")),
    ],
)
def test_bad_text_files(tmp_path: Path, content: str | bytes, said: tuple[str, ...]) -> None:
    refused(text(tmp_path, content), *said)


def test_text_that_is_not_utf8_is_read_where_it_does_not_matter(tmp_path: Path) -> None:
    path = text(tmp_path, b"label,note,p_a,p_b\na,caf\xe9,0.5,0.5\nb,x,0,1\n")
    assert read_predictions(path).probs.tolist() == [[0.5, 0.5], [0, 1]]


def test_a_gzip_file_that_is_cut_off(tmp_path: Path) -> None:
    probs, targets = predictions(3000, 3)
    whole = gzip.compress(write_csv(tmp_path / "a.csv", probs, [str(t) for t in targets], ["0", "1", "2"]).read_bytes())
    for size in (20, len(whole) // 2, len(whole) - 4):
        refused(text(tmp_path, whole[:size], "a.csv.gz"), "gzip", "damaged or cut off")
    refused(text(tmp_path, whole[:5000] + bytes(50) + whole[5050:], "a.csv.gz"), "gzip")


def test_what_is_not_a_file_of_a_known_kind(tmp_path: Path) -> None:
    refused(tmp_path, "folder")
    refused(tmp_path / "missing.csv", "no such file")
    for name in ("a.xls", "a.json", "a.npy", "a.zip", "a.gz"):
        refused(text(tmp_path, "x", name), ".csv", ".parquet", ".npz")
    refused(text(tmp_path, "x", "noending"), "no ending", ".csv")
    refused(text(tmp_path, b"", "a.parquet"), "empty")
    for name in ("a.parquet", "a.npz"):
        refused(text(tmp_path, GOOD, name), "not a", name[1:], "Write or copy it again")
    refused(write_parquet(tmp_path / "b.npz", np.eye(2), ["a", "b"], ["a", "b"]), "Parquet file", "ending .parquet")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = text(tmp_path, GOOD)
    path.chmod(0)
    refused(path, "cannot be read", "Permission denied")


def test_odd_paths_are_shown_on_one_line(tmp_path: Path) -> None:
    with pytest.raises(PredictionFileError) as caught:
        read_predictions(tmp_path / "new\nline.csv")
    said_well(str(caught.value), r"new\nline.csv")


@pytest.mark.parametrize("delimiter", ["", ";;", '"', "\n"])
def test_a_delimiter_is_one_character(tmp_path: Path, delimiter: str) -> None:
    with pytest.raises(InvalidArgumentError, match="delimiter"):
        read_predictions(text(tmp_path, GOOD), delimiter=delimiter)


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("-1", ("'-1' is negative",)),
        ("nan", ("'nan' is a missing value",)),
        ("inf", ("'inf' is infinite",)),
        ("", ("empty",)),
        ("heavy", ("'heavy' is not a number",)),
    ],
)
def test_bad_weights(tmp_path: Path, cell: str, said: tuple[str, ...]) -> None:
    path = text(tmp_path, f"label,p_a,p_b,w\na,0.5,0.5,1\nb,0.5,0.5,{cell}\n")
    refused(path, "line 3, column 'w'", *said, weights="w")
    assert read_predictions(path).weights is None


def test_weights_that_are_all_zero(tmp_path: Path) -> None:
    refused(text(tmp_path, "label,p_a,p_b,w\na,0.5,0.5,0\n"), "column 'w'", "every weight is 0", weights="w")


def test_ids_are_unique(tmp_path: Path) -> None:
    path = text(tmp_path, "label,p_a,p_b,id\na,0.5,0.5,z\nb,0,1,x\nb,0,1,y\nb,0,1,x\nb,0,1,z\n")
    refused(path, "line 5, column 'id'", "'x'", "line 3", id="id")


def table(**columns: Any) -> dict[str, Any]:
    return {"label": ["a", "b"], "p_a": [0.5, 0.25], "p_b": [0.5, 0.75]} | columns


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (table(label=["a", None]), ("row 2, column 'label'", "empty")),
        (table(p_b=[0.5, None]), ("row 2, column 'p_b'", "empty")),
        (table(p_b=[np.nan, 0.75]), ("row 1, column 'p_b'", "'nan' is a missing value")),
        (table(p_b=[0.5, np.inf]), ("row 2, column 'p_b'", "'inf' is infinite")),
        (table(p_b=[0.5, 0.5]), ("row 2, column 'p_a' … 'p_b'", "0.25, 0.5", "sum to 0.75")),
        (table(p_b=[0.5, -3.0]), ("row 2, column 'p_b'", "'-3.0'", "negative", "--logits")),
        (table(p_b=["0.5", "0.75"]), ("column 'p_b'", "'string', not numbers")),
        (table(label=["a", "c"]), ("row 2, column 'label'", "'c'", "'a', 'b'")),
        (table(label=[["a"], ["b"]]), ("column 'label'", "list")),
        (table(label=pa.array([], pa.string()), p_a=pa.array([], pa.float64()), p_b=pa.array([], pa.float64())), ("no rows",)),
    ],
)
def test_bad_parquet_tables(tmp_path: Path, columns: dict[str, Any], said: tuple[str, ...]) -> None:
    pq.write_table(pa.table(columns), tmp_path / "model.parquet")
    refused(tmp_path / "model.parquet", *said)


def test_parquet_columns_of_the_same_name(tmp_path: Path) -> None:
    pq.write_table(pa.table([["a"], [0.5], [0.5]], names=["label", "p", "p"]), tmp_path / "a.parquet")
    refused(tmp_path / "a.parquet", "the column name 'p' occurs 2 times (columns 2, 3)", "Rename")


def test_damaged_binary_files(tmp_path: Path) -> None:
    probs, targets = predictions(500, 3)
    labels = [str(target) for target in targets]
    for whole in (
        write_parquet(tmp_path / "a.parquet", probs, labels, ["0", "1", "2"]),
        write_npz(tmp_path / "a.npz", probs, targets, ["a", "b", "c"]),
    ):
        content = whole.read_bytes()
        for size in (4, 10, len(content) // 2, len(content) - 3):
            refused(text(tmp_path, content[:size], "cut" + whole.suffix), "not a complete", "again")
    content = (tmp_path / "a.npz").read_bytes()
    refused(text(tmp_path, content[:3000] + bytes(50) + content[3050:], "flipped.npz"), "not a complete .npz file")


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"targets": [0, 1]}, ("'targets'", "probs or logits", "--columns")),
        ({"probs": np.eye(2)}, ("'probs'", "targets, labels or y", "--label")),
        ({"probs": np.eye(2), "logits": np.eye(2), "y": [0, 1]}, ("'probs' and 'logits'", "--logits", "--columns probs")),
        ({"probs": np.eye(2), "y": [0, 1, 1]}, ("'y' has 3 rows", "'probs' has 2")),
        ({"probs": np.eye(2), "y": [0, 1], "weights": [1.0]}, ("'weights' has 1 row,", "'probs' has 2")),
        ({"probs": np.eye(2), "y": [0, 1], "weights": [1.0, -1.0]}, ("row 2, array 'weights'", "'-1.0' is negative")),
        ({"probs": np.eye(2), "y": [0, 1], "weights": np.eye(2)}, ("'weights'", "shape [2, 2]")),
        ({"probs": np.eye(2), "y": np.eye(2)}, ("'y'", "shape [2, 2]", "argmax")),
        ({"probs": np.ones((2, 2, 2)), "y": [0, 1]}, ("'probs'", "shape [2, 2, 2]", "[n, K]")),
        ({"probs": np.empty((0, 2)), "y": []}, ("'probs'", "shape [0, 2]")),
        ({"probs": np.eye(2), "y": [0, 2]}, ("row 2, array 'y'", "'2'", "'0', '1'")),
        ({"probs": np.eye(2), "y": [0, np.nan]}, ("row 2, array 'y'", "'nan' is not a label")),
        ({"probs": np.eye(2), "y": [0, 1j]}, ("'y'", "'complex128'")),
        ({"probs": [["a"], ["b"]], "y": [0, 1]}, ("'probs'", "not numbers")),
        ({"probs": [[0.5, 0.5], [np.nan, 1]], "y": [0, 1]}, ("row 2, array 'probs[:, 0]'", "'nan' is a missing value")),
        ({"probs": [[0.5, 0.5], [0.5, 2]], "y": [0, 1]}, ("row 2, array 'probs[:, 1]'", "'2.0'", "--logits")),
        ({"probs": [[0.5, 0.5], [0.5, 0.4]], "y": [0, 1]}, ("row 2, array 'probs[:, 0]'", "0.5, 0.4", "sum to 0.9")),
        ({"probs": [0.5, 1.5], "y": [0, 1]}, ("row 2, array 'probs'", "'1.5'", "--logits")),
        ({"probs": np.eye(2), "y": [0, 1], "class_names": ["a"]}, ("'class_names'", "1 different name,", "2 classes")),
        ({"probs": np.eye(2), "y": [0, 1], "class_names": ["a", "a"]}, ("'class_names'", "1 different name,")),
        ({"probs": np.eye(2), "y": ["b", "a"]}, ("row 1, array 'y'", "'b'", "'0', '1'")),
    ],
)
def test_bad_archives(tmp_path: Path, arrays: dict[str, Any], said: tuple[str, ...]) -> None:
    np.savez(tmp_path / "model.npz", **arrays)
    refused(tmp_path / "model.npz", *said)


def test_pickled_objects_are_never_loaded(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (tmp_path / "sprung",))

    np.savez(tmp_path / "model.npz", probs=np.eye(1), targets=np.array([Trap()], dtype=object))
    refused(tmp_path / "model.npz", "'targets'", "Python objects")
    assert not (tmp_path / "sprung").exists()


def test_archives_that_are_no_arrays(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("probs", "text")
        archive.writestr("targets", "text")
    refused(tmp_path / "a.npz", "not an array", "numpy.savez")
    with zipfile.ZipFile(tmp_path / "b.npz", "w"):
        pass
    refused(tmp_path / "b.npz", "no arrays", "numpy.savez")
    np.save(tmp_path / "c.npy", np.eye(2))
    (tmp_path / "c.npy").rename(tmp_path / "c.npz")
    refused(tmp_path / "c.npz", ".npy")
