"""The progress of a download: a bar on a terminal, a few lines elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, final

from calibayes.terminal import ProgressDisplay
from calibayes.wording import megabytes

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["DownloadProgress"]


@final
class DownloadProgress:
    """Shows how much of a file has arrived: a bar on a terminal, a line for every tenth elsewhere, nothing without console."""

    def __init__(self, console: Console | None = None) -> None:
        self._display = ProgressDisplay(console, in_bytes=True, keep=True)
        self.note = self._display.note
        self._name, self._total, self._tenths = "", 0, 0

    def begin_file(self, name: str, total: int | None) -> None:
        """Start, or start again, a transfer of ``total`` bytes."""
        self._name, self._total, self._tenths = name, total or 0, 0
        self._display.begin(name, total)
        if not self._display.on_terminal:
            self.note(f"{name}: {megabytes(total)}" if total else name)

    def reached(self, done: int) -> None:
        """Show that ``done`` bytes have arrived."""
        self._display.update(done)
        tenths = 10 * done // self._total if self._total else 0
        if tenths > self._tenths and not self._display.on_terminal:
            self._tenths = tenths
            self.note(f"{self._name}: {tenths}0 %")

    def __enter__(self) -> Self:
        self._display.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._display.__exit__(*error)
