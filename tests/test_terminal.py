"""Printing to the terminal, and the progress display."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.table import Table

from calibayes.terminal import ProgressDisplay, as_text, print_error, print_line, print_results, progress_console


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def plain() -> tuple[Console, io.StringIO]:
    stream = io.StringIO()
    return Console(file=stream, width=40), stream


def test_the_stream_decides_whether_progress_is_shown() -> None:
    assert progress_console(None, io.StringIO()) is None
    assert progress_console(False, Terminal()) is None
    assert progress_console(None, Terminal()) is not None
    assert progress_console(True, io.StringIO()) is not None


def test_a_line_is_printed_as_it_is() -> None:
    console, stream = plain()
    print_line(console, "[bold]" + "x" * 99)
    assert stream.getvalue() == "[bold]" + "x" * 99 + "\n"


def test_an_error_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_error(ValueError("two\n lines"))
    assert capsys.readouterr().err == "calibayes: two lines\n"


def test_results_in_a_file_have_no_trailing_blanks_and_a_width_of_their_own() -> None:
    table = Table("name", "score")
    table.add_row("a" * 60, "0.5")
    console, stream = plain()
    print_results(console, table, width=90)
    assert stream.getvalue() == as_text(table, 90)
    assert all(line == line.rstrip() for line in stream.getvalue().splitlines())
    assert "a" * 60 in stream.getvalue()


def test_without_a_console_nothing_is_shown_and_without_a_terminal_only_notes() -> None:
    console, stream = plain()
    for each in (None, console):
        with ProgressDisplay(each) as display:
            display.begin("trial 0/3", 3)
            display.update(1, detail="about 0:10 left")
            display.note("[1/3] done")
    assert stream.getvalue() == "[1/3] done\n"


def test_a_terminal_has_a_bar_that_can_start_again() -> None:
    stream = Terminal()
    with ProgressDisplay(progress_console(None, stream), in_bytes=True, keep=True) as display:
        display.begin("file.zip", 2_000_000)
        display.update(500_000)
        display.begin("file.zip", 2_000_000)
        display.update(2_000_000)
        display.note("[done]")
    assert "2.0/2.0 MB" in stream.getvalue()
    assert "[done]" in stream.getvalue()
