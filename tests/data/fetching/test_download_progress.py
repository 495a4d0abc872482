"""What people see of a download."""

from __future__ import annotations

import io

from calibayes.data.fetching.download_progress import DownloadProgress
from calibayes.terminal import progress_console


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(progress: bool | None, stream: io.StringIO) -> str:
    with DownloadProgress(progress_console(progress, stream)) as watch:
        watch.begin_file("file.zip", 2_000_000)
        watch.reached(2_000_000)
    return stream.getvalue()


def test_the_stream_decides() -> None:
    assert "2.0/2.0 MB" in shown(None, Terminal())
    assert "2.0/2.0 MB" in shown(True, Terminal())
    assert shown(False, Terminal()) == ""
    assert shown(True, io.StringIO()).splitlines() == ["file.zip: 2.0 MB", "file.zip: 100 %"]
    assert shown(None, io.StringIO()) == ""


def test_elsewhere_there_is_a_line_for_every_tenth() -> None:
    told = io.StringIO()
    with DownloadProgress(progress_console(True, told)) as watch:
        watch.begin_file("file.zip", 862_182_613)
        for done in range(0, 862_182_613, 1 << 18):
            watch.reached(done)
        watch.reached(862_182_613)
        watch.note("Unpacking file.zip …")
    lines = told.getvalue().splitlines()
    tenths = [f"file.zip: {tenth}0 %" for tenth in range(1, 11)]
    assert lines == ["file.zip: 862 MB", *tenths, "Unpacking file.zip …"]


def test_a_size_that_is_not_known_is_not_shown() -> None:
    told = io.StringIO()
    watch = DownloadProgress(progress_console(True, told))
    watch.begin_file("file.th", None)
    watch.reached(1000)
    assert told.getvalue() == "file.th\n"


def test_a_terminal_has_a_bar() -> None:
    told = Terminal()
    with DownloadProgress(progress_console(None, told)) as watch:
        watch.begin_file("file.zip", 2_000_000)
        watch.reached(500_000)
        watch.begin_file("file.zip", 2_000_000)  # it broke off, and goes on
        watch.reached(2_000_000)
        watch.note("[done]")
    assert "2.0/2.0 MB" in told.getvalue()
    assert "[done]" in told.getvalue()
