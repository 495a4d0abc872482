"""What people see of a download."""

from __future__ import annotations

import io

from calibayes.data.fetching.watching import Bar, Lines, Silence, watcher


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_stream_decides() -> None:
    assert isinstance(watcher(None, Terminal()), Bar)
    assert isinstance(watcher(True, Terminal()), Bar)
    assert type(watcher(False, Terminal())) is Silence
    assert isinstance(watcher(True, io.StringIO()), Lines)
    assert type(watcher(None, io.StringIO())) is Silence


def test_elsewhere_there_is_a_line_for_every_tenth() -> None:
    told = io.StringIO()
    with watcher(True, told) as watch:
        watch.begin("file.zip", 862_182_613)
        for done in range(0, 862_182_613, 1 << 18):
            watch.reached(done)
        watch.reached(862_182_613)
        watch.note("Unpacking file.zip …")
    lines = told.getvalue().splitlines()
    tenths = [f"file.zip: {tenth}0 %" for tenth in range(1, 11)]
    assert lines == ["file.zip: 862 MB", *tenths, "Unpacking file.zip …"]


def test_a_size_that_is_not_known_is_not_shown() -> None:
    told = io.StringIO()
    watch = Lines(told)
    watch.begin("file.th", None)
    watch.reached(1000)
    assert told.getvalue() == "file.th\n"


def test_a_terminal_has_a_bar() -> None:
    told = Terminal()
    with watcher(None, told) as watch:
        watch.begin("file.zip", 2_000_000)
        watch.reached(500_000)
        watch.begin("file.zip", 2_000_000)  # it broke off, and goes on
        watch.reached(2_000_000)
        watch.note("[done]")
    shown = told.getvalue()
    assert "2.0/2.0 MB" in shown
    assert "[done]" in shown
