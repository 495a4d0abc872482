"""The same mistake in a table has the same message in every command that reads one."""

from __future__ import annotations

import gzip
import os
import socket
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from typer.testing import CliRunner

from calibayes.cli import app
from calibayes.files import Model, train

HEADER = "label,p_a,p_b\n"
ROWS = "".join(f"{'ab'[i % 2]},{0.5 + 0.01 * (i % 7):.2f},{0.5 - 0.01 * (i % 7):.2f}\n" for i in range(60))
GOOD = HEADER + ROWS
LINES = "".join(f'{{"label": "{"ab"[i % 2]}", "p_a": 0.25, "p_b": 0.75}}\n' for i in range(60))

BAD: dict[str, tuple[str, bytes | None, str]] = {
    "a text among numbers": ("t.csv", (GOOD + "a,oops,0.5\n").encode(), "line 62, column 'p_a': 'oops' is not a number"),
    "a decimal comma": ("t.csv", (GOOD + 'a,"0,5",0.5\n').encode(), "line 62, column 'p_a': '0,5' has a comma"),
    "an infinite number": ("t.csv", (GOOD + "a,inf,0.5\n").encode(), "line 62, column 'p_a': 'inf' is infinite"),
    "a text among numbers of JSON lines": (
        "t.jsonl",
        (LINES + '{"p_a": "oops", "p_b": 1, "label": "a"}\n').encode(),
        "line 61",
    ),
    "a long row": ("t.csv", (GOOD + "a,0.5,0.25,0.25\n").encode(), "line 62: the row has 4 cells"),
    "a short row": ("t.csv", (GOOD + "a,0.5\n").encode(), "line 62: the row has 2 cells"),
    "an unclosed quotation mark": ("t.csv", (GOOD + 'a,0.5,"0.5\n' + ROWS).encode(), "line 62: a quotation mark"),
    "another encoding": ("t.csv", (GOOD + "é,0.5,0.5\n").encode("latin-1"), "line 62, column 'label'"),
    "another encoding in the header": ("t.csv", GOOD.replace("p_a", "p_é").encode("latin-1"), "line 1"),
    "UTF-16": ("t.csv", GOOD.encode("utf-16"), "--encoding utf-16"),
    "a cut-off gzip": ("t.csv.gz", gzip.compress(GOOD.encode(), mtime=0)[:-9], "damaged or cut off"),
    "a damaged gzip": ("t.csv.gz", b"\x1f\x8b\x08" + bytes(60), "damaged or cut off"),
    "a PNG image": ("t.csv", b"\x89PNG\r\n\x1a\n" + bytes(99), "PNG image"),
    "a ZIP archive": ("t.csv", b"PK\x03\x04" + bytes(99), "ZIP archive"),
    "a Parquet file": ("t.csv", b"PAR1" + bytes(99), "Give it the ending .parquet"),
    "zero bytes": ("t.csv", b"label,p_a\0,p_b\na,1,0\n", "zero bytes"),
    "an empty file": ("t.csv", b"", "the file is empty"),
    "a blank file": ("t.csv", b"\n\n", "the file is blank"),
    "a header alone": ("t.csv", HEADER.encode(), "no row below it"),
    "a repeated name": ("t.csv", GOOD.replace("p_a", "p_b").encode(), "'p_b' occurs 2 times (columns 2, 3)"),
    "another delimiter": ("t.csv", GOOD.replace(",", "|").encode(), "--delimiter '|'"),
    "no file": ("t.csv", None, "there is no such file"),
    "another ending": ("t.dat", GOOD.encode(), "files ending in '.dat' cannot be read"),
    "no ending": ("t", GOOD.encode(), "the name has no ending"),
    "no JSON": ("t.jsonl", (LINES + "{\n").encode(), "line 61: this is not JSON"),
    "a nested object": ("t.jsonl", (LINES + '{"label": {}}\n').encode(), "line 61: 'label' holds a nested object"),
    "a torn Parquet file": ("t.parquet", b"PAR1" + bytes(99), "not a complete Parquet file"),
    "no Parquet file": ("t.parquet", GOOD.encode(), "not a .parquet file"),
    "no Excel file": ("t.xlsx", GOOD.encode(), "not a .xlsx file"),
}
COMMANDS: dict[str, Callable[[Path, Path], list[str]]] = {
    "train": lambda table, folder: ["train", str(table), "--target", "label", "-o", str(folder / "new")],
    "compare": lambda table, folder: ["compare", str(table), "--target", "label", "--quick", "--out", str(folder / "compared")],
    "predict": lambda table, folder: ["predict", str(folder / "model"), str(table), "-o", str(folder / "out.csv")],
    "evaluate": lambda table, folder: ["evaluate", str(table)],
}


@cache
def model() -> Model:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        path.write_text(GOOD)
        return train(path, target="label", scheme="fnn", epochs=1, hidden=[4]).model


def refusal(words: list[str]) -> str:
    """The one line with which a command ends."""
    done = CliRunner().invoke(app, words)
    assert (done.exit_code, done.stdout) == (2, ""), done.output
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("calibayes: ")]
    return line


def refusals(table: Path, folder: Path) -> set[str]:
    model().save(folder / "model")
    return {refusal(command(table, folder)) for command in COMMANDS.values()}


@pytest.mark.parametrize("mistake", BAD)
def test_a_mistake_has_one_message(mistake: str, tmp_path: Path) -> None:
    name, content, said = BAD[mistake]
    if content is not None:
        (tmp_path / name).write_bytes(content)
    (message,) = refusals(tmp_path / name, tmp_path)
    assert f"{str(tmp_path / name)!r}" in message
    assert said in message
    assert message.isprintable()


def test_a_torn_workbook_has_one_message(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl", reason="needs the extra excel")
    (tmp_path / "t.xlsx").write_bytes(b"PK\x03\x04" + bytes(99))
    (message,) = refusals(tmp_path / "t.xlsx", tmp_path)
    assert "not a complete .xlsx file" in message


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--encoding", "klingon"], "'klingon'"),
        (["--delimiter", "ab"], "'ab'"),
        (["--decimal", "x"], "'x'"),
        (["--date-format", "%Y"], "'%Y'"),
        (["--decimal", ",", "--delimiter", ","], "to differ"),
    ],
)
def test_an_option_that_makes_no_sense_has_one_message(words: list[str], said: str, tmp_path: Path) -> None:
    model().save(tmp_path / "model")
    (tmp_path / "t.csv").write_text(GOOD)
    (message,) = {refusal([*command(tmp_path / "t.csv", tmp_path), *words]) for command in COMMANDS.values()}
    assert said in message


@pytest.fixture
def special(tmp_path: Path) -> Iterator[dict[str, Path]]:
    """What is no file, each under the name of a table."""
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "zero.csv").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket.csv"))
        yield {"a pipe": tmp_path / "pipe.csv", "a device": tmp_path / "zero.csv", "a socket": tmp_path / "socket.csv"}


@pytest.mark.parametrize("kind", ["a pipe", "a device", "a socket"])
def test_what_is_no_file_is_refused_at_once(kind: str, special: dict[str, Path], tmp_path: Path) -> None:
    (message,) = refusals(special[kind], tmp_path)
    assert f"this is {kind}. Write its output to a file" in message


def test_a_pipe_among_texts_images_or_settings_is_refused_at_once(tmp_path: Path) -> None:
    for ending in ("txt", "png"):
        folder = tmp_path / ending / "a"
        folder.mkdir(parents=True)
        os.mkfifo(folder / f"pipe.{ending}")
        assert "this is a pipe" in refusal(["train", str(folder.parent)])
    os.mkfifo(tmp_path / "s.toml")
    assert "this is a pipe" in refusal(["train", "t.csv", "--config", str(tmp_path / "s.toml")])


def written_otherwise(folder: Path) -> dict[str, tuple[Path, list[str]]]:
    """The good table in other ways, and the options that each needs."""
    german = GOOD.replace(",", ";").replace(".", ",")
    cells = [line.split(",") for line in GOOD.splitlines()]
    ways: dict[str, tuple[str, bytes, list[str]]] = {
        "decimal comma": ("german.csv", german.encode(), ["--decimal", ","]),
        "pipe": ("pipe.csv", GOOD.replace(",", "|").encode(), ["--delimiter", "|"]),
        "utf-16": ("wide.csv", GOOD.encode("utf-16"), ["--encoding", "utf-16"]),
        "gzip": ("packed.tsv.gz", gzip.compress(GOOD.replace(",", "\t").encode(), mtime=0), []),
        "JSON lines": (
            "lines.jsonl",
            "".join(f'{{"label": "{a}", "p_a": {b}, "p_b": {c}}}\n' for a, b, c in cells[1:]).encode(),
            [],
        ),
    }
    for name, content, _ in ways.values():
        (folder / name).write_bytes(content)
    return {way: (folder / name, words) for way, (name, _, words) in ways.items()}


@pytest.mark.slow
def test_every_format_and_option_works_in_evaluate_train_and_predict(tmp_path: Path) -> None:
    (tmp_path / "plain.csv").write_text(GOOD)
    every = {"plain": (tmp_path / "plain.csv", []), **written_otherwise(tmp_path)}
    found: dict[str, list[str]] = {}
    for way, (path, words) in every.items():
        made = tmp_path / f"{way}.model"
        for command in (
            ["train", str(path), "--target", "label", "--scheme", "fnn", "--epochs", "1", "-o", str(made)],
            ["predict", str(made), str(path), "-o", str(tmp_path / "out.csv")],
            ["evaluate", str(path), "--replicates", "20", "--json"],
        ):
            done = CliRunner().invoke(app, [*command, *words])
            assert done.exit_code == 0, done.output
        told = done.stdout.replace(str(path), "").replace(f'"name": "{path.name.split(".")[0]}"', "")
        found[way] = [(tmp_path / "out.csv").read_text(), told]
    for way, each in found.items():
        assert each == found["plain"], way


def test_a_file_without_a_header_has_numbered_columns(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(ROWS.replace("a,", "0,").replace("b,", "1,"))
    for command in (
        ["train", "--target", "column1", "--scheme", "fnn", "--epochs", "1", "-o", str(tmp_path / "m")],
        ["evaluate", "--label", "column1", "--columns", "column2,column3", "--replicates", "20"],
    ):
        done = CliRunner().invoke(app, [command[0], str(tmp_path / "t.csv"), "--no-header", *command[1:]])
        assert done.exit_code == 0, done.output
    assert "60 examples, 2 classes; labels from 'column1'" in done.stderr
    words = ["predict", str(tmp_path / "m"), str(tmp_path / "t.csv"), "--no-header", "-o", str(tmp_path / "out.csv")]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "60 rows" in done.stdout
