"""A study on the terminal: the verdicts first, then the numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from calibayes.metrics import Difference
from calibayes.metrics.score_table import BELOW, NEEDS_ALL, shown
from calibayes.report.study import Model, Pair, Study
from calibayes.terminal import print_results

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

__all__ = ["show"]

_WIDTH = 110  # of what is no terminal
_MAIN = ("accuracy", "nll", "brier", "ece", "smooth_ece", "aurc")


class _Column(NamedTuple):
    """A column of numbers: its title and its cells."""

    title: str
    cells: list[str]

    @property
    def width(self) -> int:
        """The width at which no number is cut, with the space around it."""
        return 3 + max(len(line) for cell in self.cells for line in cell.splitlines())


def show(study: Study, console: Console) -> None:
    """Print verdicts, the table of every metric with intervals, and the differences of every two models."""
    from rich.console import Group
    from rich.text import Text

    width = console.width if console.is_terminal else _WIDTH
    parts: list[RenderableType] = [Text("\n".join(_verdict(model, len(study.models) > 1) for model in study.models))]
    parts += _scores(study, width)
    parts.append(Text(_footnote(study)))
    if study.pairs:
        parts += [Text("\n" + "\n".join(pair.text for pair in study.pairs)), *_differences(study, width)]
        parts.append(
            Text("* the interval excludes zero. Differences of calibration errors are corrected for what chance adds to each.")
        )
    print_results(console, Group(*parts), _WIDTH)


def _verdict(model: Model, named: bool) -> str:
    return f"{model.name}: {model.verdict.text}" if named else model.verdict.text


def _footnote(study: Study) -> str:
    settings, n = study.settings, study.models[0].scores.n
    examples = f"{n:,} example{'' if n == 1 else 's'}"
    pairs = study.models[0].scores.pairs
    classes = "" if pairs else f"{study.models[0].scores.classes} classes, "
    return (
        f"{examples}, {classes}{settings['bins']} bins. Intervals at "
        f"{100 * settings['level']:g} %, from {settings['replicates']:,} bootstrap samples (seed {settings['seed']}).\n{BELOW}"
        + (f"\n{NEEDS_ALL}" if pairs else "")
    )


def _scores(study: Study, width: int) -> Iterator[Table]:
    columns = []
    for model in study.models:
        cells = []
        for metric in model.scores.metrics:
            ends = model.scores.intervals.get(metric.name)
            value = shown(metric.name, getattr(model.scores, metric.name))
            cells.append(value if ends is None else f"{value}  ({_span(metric.name, ends.low, ends.high)})")
        columns.append(_Column(model.name if len(study.models) > 1 else "value", cells))
    return _tables(
        "metric", [study.models[0].scores.title(metric.name) for metric in study.models[0].scores.metrics], columns, width
    )


def _differences(study: Study, width: int) -> Iterator[Table]:
    scores = study.models[0].scores
    columns = [_Column(scores.title(name), [_apart(name, pair) for pair in study.pairs]) for name in _MAIN]
    return _tables("difference", [f"{pair.first} - {pair.second}" for pair in study.pairs], columns, width)


def _apart(name: str, pair: Pair) -> str:
    found: Difference = pair.differences[name]
    mark = "*" if found.clear else " "
    return f"{found.value:+.4f}{mark}\n({_span(name, found.low, found.high)})"


def _tables(first: str, names: Sequence[str], columns: Sequence[_Column], width: int) -> Iterator[Table]:
    """The columns beside the names of the rows, in as many tables as it takes for no number to be cut."""
    room = width - 2 - min(3 + max(map(len, (first, *names))), width // 3)
    begin = 0
    while begin < len(columns):
        end, used = begin + 1, columns[begin].width
        while end < len(columns) and used + columns[end].width <= room:
            used += columns[end].width
            end += 1
        yield _table(first, names, columns[begin:end])
        begin = end


def _table(first: str, names: Sequence[str], columns: Sequence[_Column]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD)
    table.add_column(first, overflow="fold")
    for column in columns:
        table.add_column(Text(column.title), justify="right", overflow="fold", min_width=column.width - 3)
    for name, *cells in zip(names, *(column.cells for column in columns), strict=True):
        table.add_row(Text(name), *cells)
    return table


def _span(name: str, low: float, high: float) -> str:
    return f"{shown(name, low)} to {shown(name, high)}"
