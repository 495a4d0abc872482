"""Files of any format are the same table of texts; what cannot be read is named, with its line and the way out."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pandas as pd
import pytest
from tests.files.made import HEADER, rows, write_csv

from calibayes.errors import DataError, InvalidArgumentError
from calibayes.files import read_rows as rows_module
from calibayes.files.read_rows import read_rows, row_blocks
from calibayes.tables import TableOptions, frame_block

BODY = rows(40)


def test_every_format_is_the_same_table(tmp_path: Path) -> None:
    paths = [write_csv(tmp_path / "a.csv", BODY), write_csv(tmp_path / "b.tsv", BODY, delimiter="\t")]
    paths.append(write_csv(tmp_path / "c.csv", BODY, delimiter=";"))
    packed = tmp_path / "d.csv.gz"
    packed.write_bytes(gzip.compress(paths[0].read_bytes()))
    lines = [json.dumps({name: cell or None for name, cell in zip(HEADER, row, strict=True)}) for row in BODY]
    (tmp_path / "e.jsonl").write_text("\n".join(lines) + "\n")
    pd.read_csv(paths[0], dtype=str).to_parquet(tmp_path / "f.parquet")
    for path in (*paths, packed, tmp_path / "e.jsonl", tmp_path / "f.parquet"):
        block, total = read_rows(path)
        table = block.table
        assert total == len(BODY), path
        found = [[cell or "" for cell in row.values()] for row in table.to_pylist()]
        assert (tuple(table.column_names), found) == (HEADER, BODY), path


def test_numbers_and_truth_values_of_other_formats_are_texts_as_csv_has_them() -> None:
    frame = pd.DataFrame({"n": [1, 2], "x": [0.1, None], "b": [True, False], "c": pd.Categorical(["u", None])})
    assert frame_block(frame).table.to_pydict() == {
        "n": ["1", "2"],
        "x": ["0.1", None],
        "b": ["true", "false"],
        "c": ["u", None],
    }


def test_quotes_may_hold_line_ends_and_a_mark_of_the_byte_order_is_no_letter(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b'\xef\xbb\xbftext,label\n"two\nlines, ""quoted""",a\n')
    assert read_rows(path)[0].table.to_pylist() == [{"text": 'two\nlines, "quoted"', "label": "a"}]


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_another_encoding_is_named_in_the_error_and_read_when_it_is_given(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("name,label\nplain,a\ncafé,b\n".encode(encoding))
    with pytest.raises(DataError, match=f"--encoding {encoding}") as caught:
        read_rows(path)
    if encoding == "latin-1":
        assert "line 3" in str(caught.value)
    assert read_rows(path, TableOptions(encoding=encoding))[0].table.column("name").to_pylist() == ["plain", "café"]
    lines = path.with_suffix(".jsonl")
    lines.write_bytes('{"name": "plain"}\n{"name": "café"}\n'.encode(encoding))
    assert read_rows(lines, TableOptions(encoding=encoding))[0].table.column("name").to_pylist() == ["plain", "café"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"a,b\n1,2\n3\n", "line 3: the row has 1 cell, but the header has 2 columns"),
        ("a.csv", b'a,b\n1,"2\n3,4\n', "line 2: a quotation mark is opened and never closed"),
        ("a.csv", b"a,a\n1,2\n", "the column name 'a' occurs 2 times"),
        ("a.csv", b"a,b\n", "no row below it"),
        ("a.csv", b"", "the file is empty"),
        ("a.csv", b"a,b\n1,\x00\n", "zero bytes"),
        ("a.csv.gz", gzip.compress(b"a,b\n1,2\n" * 999, mtime=0)[:-9], "damaged or cut off"),
        ("a.jsonl", b'{"a": 1}\n{"a": }\n', "line 2: this is not JSON"),
        ("a.jsonl", b'{"a": 1}\n{"b": 1}\n', "line 2: 'b' is not among the names of the first object"),
        ("a.jsonl", b'{"a": [1]}\n', "line 1: 'a' holds a list"),
        ("a.jsonl", b"[1]\n", "line 1: expected an object"),
        ("a.jsonl", b'{"a": "\\ud800"}\n', "line 1: 'a' holds half a character"),
        ("a.jsonl", b'{"\\ud800": 1}\n', "line 1: .* holds half a character"),
        ("a.jsonl", b'{"a": 1}\n{"a": "\xff"}\n', "line 2: this is not utf-8 text"),
        ("a.parquet", b"PAR1 and no more", "not a complete Parquet file"),
        ("a.xlsx", b"PK", "not a .xlsx file"),
        ("a.xls", b"PK", "files ending in '.xls' cannot be read"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_rows(tmp_path / name)


def test_other_refusals(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no such file"):
        read_rows(tmp_path / "none.csv")
    with pytest.raises(InvalidArgumentError, match=r"utf-8, latin-1.*'klingon'"):
        TableOptions(encoding="klingon")
    for encoding in ("base64", "hex", "rot13"):
        with pytest.raises(InvalidArgumentError, match=encoding):
            TableOptions(encoding=encoding)
    with pytest.raises(DataError, match="Column 'x': the column holds bytes that are not UTF-8 text"):
        frame_block({"x": [b"\xff\xfe", b"a"]})
    with pytest.raises(InvalidArgumentError, match="delimiter"):
        TableOptions(delimiter="ab")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="nothing in this folder"):
        read_rows(tmp_path / "empty")


def test_a_sample_is_drawn_by_the_seed_in_the_order_of_the_file(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "a.csv", [[str(i), "x"] for i in range(20_000)], ("i", "label"))
    (first, total), (again, _), (other, _) = (read_rows(path, max_rows=50, seed=seed) for seed in (0, 0, 1))
    drawn = [int(i) for i in first.table.column("i").to_pylist()]
    assert first.rows.tolist() == drawn
    assert (total, len(drawn), drawn) == (20_000, 50, sorted(drawn))
    assert first.table.equals(again.table)
    assert not first.table.equals(other.table)
    assert drawn[-1] > 15_000  # from all over the file
    assert len(read_rows(path, max_rows=30_000)[0].rows) == 20_000


def test_a_file_that_is_too_large_says_how_to_train_on_some_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_csv(tmp_path / "a.csv", [[str(i), "x"] for i in range(20_000)], ("i", "label"))
    monkeypatch.setattr(rows_module, "_MOST_BYTES", 300_000)
    with pytest.raises(DataError, match="--max-rows"):
        read_rows(path)
    assert len(read_rows(path, max_rows=100)[0].rows) == 100


def test_a_long_file_comes_in_parts(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "a.csv", [[str(i), "x"] for i in range(20_000)], ("i", "label"))
    sizes = [len(block.rows) for block in row_blocks(path)]
    assert len(sizes) > 1
    assert max(sizes) <= 8192
    assert sum(sizes) == 20_000
