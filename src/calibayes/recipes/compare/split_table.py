"""A table that is split where the terminal is too narrow for it, so that nothing is cut off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich import box
from rich.cells import cell_len
from rich.table import Table

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

__all__ = ["SplitTable", "TableColumn"]

_EDGES = 2  # blanks at the left and right of a table


@dataclass(frozen=True)
class TableColumn:
    """A column: its head, which may have several lines, and its cells."""

    head: str
    cells: Sequence[str]
    left: bool = False  # aligned left, not right

    @property
    def width(self) -> int:
        """The cells of the terminal that it takes up, with the space around it."""
        return 2 + max(cell_len(line) for text in (self.head, *self.cells) for line in text.split("\n"))


@dataclass(frozen=True)
class SplitTable:
    """A table with a first column of names; if it is too wide, the other columns follow in further tables below.

    Examples:
        >>> from calibayes.terminal import as_text
        >>> names, numbers = TableColumn("", ["a", "b"], left=True), TableColumn("a long head", ["1", "2"])
        >>> table = SplitTable("Numbers", names, [numbers, numbers])
        >>> [as_text(table, width).count("(continued)") for width in (24, 40)]
        [1, 0]
    """

    title: str
    names: TableColumn
    columns: Sequence[TableColumn]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for number, columns in enumerate(self._groups(options.max_width)):
            title = self.title + (" (continued)" if number else "")
            table = Table(title=title, box=box.SIMPLE_HEAD, title_style="bold", collapse_padding=True)
            for place, column in enumerate((self.names, *columns)):
                justify = "left" if column.left else "right"
                # A name that is wider than the terminal continues on the next line.
                table.add_column(column.head, justify=justify, overflow="fold", style="" if place else "bold")  # type: ignore[arg-type]
            for row in zip(self.names.cells, *(column.cells for column in columns), strict=True):
                table.add_row(*row)
            yield table

    def _groups(self, width: int) -> Iterator[list[TableColumn]]:
        """Yield as many columns at a time as fit beside the names, at least one."""
        group: list[TableColumn] = []
        used = _EDGES + self.names.width
        for column in self.columns:
            if group and used + column.width > width:
                yield group
                group, used = [], _EDGES + self.names.width
            group.append(column)
            used += column.width
        yield group
