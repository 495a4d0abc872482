"""What people see of a download."""

from __future__ import annotations

import io

from calibayes.data.fetching.download_progress import NoProgress, ProgressBar, ProgressLines, progress_for


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_stream_decides() -> None:
    assert isinstance(progress_for(None, Terminal()), ProgressBar)
    assert isinstance(progress_for(True, Terminal()), ProgressBar)
    assert type(progress_for(False, Terminal())) is NoProgress
    assert isinstance(progress_for(True, io.StringIO()), ProgressLines)
    assert type(progress_for(None, io.StringIO())) is NoProgress


def test_elsewhere_there_is_a_line_for_every_tenth() -> None:
    told = io.StringIO()
    with progress_for(True, told) as watch:
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
    watch = ProgressLines(told)
    watch.begin("file.th", None)
    watch.reached(1000)
    assert told.getvalue() == "file.th\n"


def test_a_terminal_has_a_bar() -> None:
    told = Terminal()
    with progress_for(None, told) as watch:
        watch.begin("file.zip", 2_000_000)
        watch.reached(500_000)
        watch.begin("file.zip", 2_000_000)  # it broke off, and goes on
        watch.reached(2_000_000)
        watch.note("[done]")
    shown = told.getvalue()
    assert "2.0/2.0 MB" in shown
    assert "[done]" in shown
