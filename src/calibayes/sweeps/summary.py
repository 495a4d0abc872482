"""The results of a sweep as a table: means over seeds, for each combination of the settings that vary."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from calibayes.errors import InvalidArgumentError
from calibayes.sweeps.found import Sweep, single_values

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["summary_table"]

_MOST = 7  # columns of results that fit beside one another


def summary_table(found: Sweep, show: Sequence[str] = (), *, over: str = "seed") -> Table:
    """Mean and standard deviation of the numbers in the results.

    Args:
        found: the trials; those that failed have no part in the numbers.
        show: the names of the numbers, such as ``test.nll``; the first ones by default.
        over: the setting that means are taken over.
    """
    from rich.table import Table
    from rich.text import Text

    done = [(trial.settings, _numbers(trial.result)) for trial in found if trial.error is None]
    known = list(dict.fromkeys(name for _, numbers in done for name in numbers))
    for name in show:
        if done and name not in known:
            raise InvalidArgumentError(f"Expected --show to name numbers of the results, but got {name!r}; there are {known}.")
    columns = list(show) or known[:_MOST]
    names = [name for name in found.varying() if name != over]
    groups: dict[tuple[str, ...], list[dict[str, float]]] = {}
    for settings, numbers in done:
        groups.setdefault(tuple(str(settings.get(name, "")) for name in names), []).append(numbers)
    left_out = "" if len(columns) == len(known) or show else f"; {len(known) - len(columns)} more numbers are in the files"
    spread = any(len(each) > 1 for each in groups.values())
    title = f"Mean{f' ± standard deviation over {over}s' if spread else ''}{left_out}"
    table = Table(title=title, title_justify="left", title_style="", box=None, pad_edge=False)
    for name in names:
        table.add_column(Text(name))
    table.add_column("trials", justify="right")
    for name in columns:
        table.add_column(Text(name), justify="right")
    for group, members in groups.items():
        cells = [_mean([each[name] for each in members if name in each]) for name in columns]
        table.add_row(*map(Text, group), str(len(members)), *cells)
    return table


def _numbers(result: dict[str, Any] | None) -> dict[str, float]:
    return {
        name: value
        for name, value in single_values(result or {}).items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }


def _mean(values: list[float]) -> str:
    if not values:
        return "–"
    mean = statistics.fmean(values)
    if len(values) == 1:
        return f"{mean:.4g}"
    std = statistics.stdev(values)
    digits = max(0, 3 - math.floor(math.log10(abs(mean)))) if mean and abs(mean) < 1e4 else 0
    return f"{mean:.{digits}f} ± {std:.{digits}f}"
