"""A study on the terminal: the verdicts first, then the numbers."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from calibayes.metrics import METRICS, Difference
from calibayes.metrics.scores import shown
from calibayes.report.study import Model, Pair, Study

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

__all__ = ["show"]

_WIDTH = 110  # of what is no terminal
_MAIN = ("accuracy", "nll", "brier", "ece", "smooth_ece", "aurc")


def show(study: Study, console: Console) -> None:
    """Print verdicts, the table of every metric with intervals, and the differences of every two models."""
    from rich.console import Console, Group
    from rich.text import Text

    parts: list[RenderableType] = [Text("\n".join(_verdict(model, len(study.models) > 1) for model in study.models))]
    parts.append(_scores(study))
    parts.append(Text(_footnote(study)))
    if study.pairs:
        parts += [Text("\n" + "\n".join(pair.text for pair in study.pairs)), _differences(study)]
    if console.is_terminal:
        console.print(Group(*parts))
        return
    text = io.StringIO()
    Console(file=text, width=_WIDTH, color_system=None, force_terminal=False, highlight=False).print(Group(*parts))
    console.out("".join(f"{line.rstrip()}\n" for line in text.getvalue().splitlines()), end="", highlight=False)


def _verdict(model: Model, named: bool) -> str:
    return f"{model.name}: {model.verdict.text}" if named else model.verdict.text


def _footnote(study: Study) -> str:
    settings, n = study.settings, study.models[0].scores.n
    return (
        f"{n:,} examples, {study.models[0].scores.classes} classes, {settings['bins']} bins. Intervals at "
        f"{100 * settings['level']:g} %, from {settings['replicates']:,} resamplings (seed {settings['seed']}).\n"
        "Chance makes every calibration error larger; the intervals are corrected for it, so they may lie below the estimate."
    )


def _scores(study: Study) -> Table:
    table = _table("metric", *(model.name if len(study.models) > 1 else "value" for model in study.models))
    for metric in METRICS:
        cells = []
        for model in study.models:
            ends = model.scores.intervals.get(metric.name)
            value = shown(metric.name, getattr(model.scores, metric.name))
            cells.append(value if ends is None else f"{value}  ({_span(metric.name, ends.low, ends.high)})")
        table.add_row(study.models[0].scores.title(metric.name), *cells)
    return table


def _differences(study: Study) -> Table:
    from rich.text import Text

    scores = study.models[0].scores
    table = _table("difference", *(scores.title(name) for name in _MAIN))
    for pair in study.pairs:
        table.add_row(Text(f"{pair.first} - {pair.second}"), *(_apart(name, pair) for name in _MAIN))
    return table


def _apart(name: str, pair: Pair) -> str:
    found: Difference = pair.differences[name]
    mark = "*" if found.clear else " "
    return f"{found.value:+.4f}{mark}\n({_span(name, found.low, found.high)})"


def _table(first: str, *others: str) -> Table:
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    table.add_column(first, no_wrap=True)
    for title in others:
        table.add_column(escape(title), justify="right", overflow="fold")
    return table


def _span(name: str, low: float, high: float) -> str:
    return f"{shown(name, low)} to {shown(name, high)}"
