"""A study on the terminal: the verdicts first, then the numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from calibayes.metrics import Difference
from calibayes.metrics.score_table import BELOW, NEEDS_ALL, shown
from calibayes.report.guarantees_text import guarantees_text
from calibayes.report.study import Study
from calibayes.terminal import print_results
from calibayes.wording import counted

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

__all__ = ["show"]

_WIDTH = 110  # if the output is not a terminal
_MAIN = ("accuracy", "nll", "brier", "ece", "smooth_ece", "aurc")


def show(study: Study, console: Console) -> None:
    """Print verdicts, the table of every metric with intervals, and the differences of every two models."""
    from rich.console import Group
    from rich.text import Text

    width = console.width if console.is_terminal else _WIDTH
    named = len(study.models) > 1
    verdicts = [f"{model.name}: {model.verdict.text}" if named else model.verdict.text for model in study.models]
    parts: list[RenderableType] = [Text("\n".join(verdicts)), *_scores(study, width), Text(_footnote(study))]
    for model in study.models:
        if model.guarantees is not None:
            told = guarantees_text(model.guarantees, study.class_names)
            parts.append(Text(f"\n{model.name}:\n{told}" if named else f"\n{told}"))
    if study.pairs:
        parts += [Text("\n" + "\n".join(pair.text for pair in study.pairs)), *_differences(study, width)]
        parts.append(
            Text("* the interval excludes zero. Differences of calibration errors are corrected for what chance adds to each.")
        )
    print_results(console, Group(*parts), _WIDTH)


def _footnote(study: Study) -> str:
    settings, scores = study.settings, study.models[0].scores
    classes = "" if scores.pairs else f"{scores.classes} classes, "
    return (
        f"{counted(scores.n, 'example')}, {classes}{settings['bins']} bins. Intervals at "
        f"{100 * settings['level']:g} %, from {settings['replicates']:,} bootstrap samples (seed {settings['seed']}).\n{BELOW}"
        + (f"\n{NEEDS_ALL}" if scores.pairs else "")
    )


def _scores(study: Study, width: int) -> Iterator[Table]:
    columns = {}
    for model in study.models:
        cells = []
        for metric in model.scores.metrics:
            ends = model.scores.intervals.get(metric.name)
            value = shown(metric.name, getattr(model.scores, metric.name))
            cells.append(value if ends is None else f"{value}  ({_span(metric.name, ends.low, ends.high)})")
        columns[model.name if len(study.models) > 1 else "value"] = cells
    scores = study.models[0].scores
    return _tables("metric", [scores.title(metric.name) for metric in scores.metrics], columns, width)


def _differences(study: Study, width: int) -> Iterator[Table]:
    scores = study.models[0].scores
    columns = {scores.title(name): [_difference(name, pair.differences[name]) for pair in study.pairs] for name in _MAIN}
    return _tables("difference", [f"{pair.first} - {pair.second}" for pair in study.pairs], columns, width)


def _difference(name: str, difference: Difference) -> str:
    mark = "*" if difference.clear else " "
    return f"{difference.value:+.4f}{mark}\n({_span(name, difference.low, difference.high)})"


def _tables(first: str, names: Sequence[str], columns: Mapping[str, list[str]], width: int) -> Iterator[Table]:
    """The columns beside the names of the rows, in as many tables as needed to cut off no number."""
    room = width - 2 - min(3 + max(map(len, (first, *names))), width // 3)
    chosen: dict[str, list[str]] = {}
    for title, cells in columns.items():
        if chosen and sum(3 + _width(each) for each in (*chosen.values(), cells)) > room:
            yield _table(first, names, chosen)
            chosen = {}
        chosen[title] = cells
    yield _table(first, names, chosen)


def _width(cells: Sequence[str]) -> int:
    return max(len(line) for cell in cells for line in cell.splitlines())


def _table(first: str, names: Sequence[str], columns: Mapping[str, list[str]]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD)
    table.add_column(first, overflow="fold")
    for title, cells in columns.items():
        table.add_column(Text(title), justify="right", overflow="fold", min_width=_width(cells))
    for name, *row in zip(names, *columns.values(), strict=True):
        table.add_row(Text(name), *row)
    return table


def _span(name: str, low: float, high: float) -> str:
    return f"{shown(name, low)} to {shown(name, high)}"
