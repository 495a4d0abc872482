"""The results of a sweep as a table: means over seeds, for each combination of the settings that vary."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from calibayes.errors import InvalidArgumentError
from calibayes.sweeps.sweep_results import Sweep, single_values
from calibayes.wording import did_you_mean

__all__ = ["summary_table"]

_MOST = 7  # columns of results that fit side by side


def summary_table(sweep: Sweep, show: Sequence[str] = (), *, over: str = "seed") -> Table:
    """Mean and standard deviation of the numbers in the results.

    Args:
        sweep: the trials; failed ones do not count.
        show: the names of the numbers, such as ``test.nll``; the first few by default.
        over: the setting to average over.
    """
    every = [trial.settings for trial in sweep if trial.error is None]
    results = [single_values(result) for result in sweep.results()]
    known = list(dict.fromkeys(name for values in results for name, value in values.items() if _is_number(value)))
    done = [(settings, _numbers(values, known)) for settings, values in zip(every, results, strict=True)]
    if done and (unknown := [name for name in show if name not in known]):
        same_end = [name for name in known if name.endswith(f".{unknown[0]}")]
        hint = f"Did you mean {same_end[0]!r}?" if same_end else did_you_mean(unknown[0], known)
        raise InvalidArgumentError(f"Expected --show to name numbers of the results, but got {unknown[0]!r}. {hint}")
    columns = list(show) or known[:_MOST]
    names = [name for name in sweep.varying() if name != over]
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


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_ODD = {None: math.nan, "Infinity": math.inf, "-Infinity": -math.inf}  # as files hold them


def _numbers(values: dict[str, Any], known: Sequence[str]) -> dict[str, float]:
    """The numbers of a result; by hand, since a data frame does not tell a missing number from one that is not finite."""
    numbers = {}
    for name in known:
        value = values.get(name, "")
        if _is_number(value):
            try:
                numbers[name] = float(value)
            except OverflowError:  # an integer that is too large for a float
                numbers[name] = math.inf if value > 0 else -math.inf
        elif value in _ODD:
            numbers[name] = _ODD[value]
    return numbers


def _mean(values: list[float]) -> str:
    """Format the mean of the finite values, and the number of others."""
    finite = [value for value in values if math.isfinite(value)]
    odd = f" ({len(values) - len(finite)} not finite)" if len(finite) < len(values) else ""
    if not finite:
        return f"–{odd}"
    mean = statistics.fmean(finite)
    if len(finite) == 1:
        return f"{mean:.4g}{odd}"
    std = statistics.stdev(finite)
    size = max(abs(mean), std)
    if size and not 1e-4 <= size < 1e6:
        return f"{mean:.3e} ± {std:.1e}{odd}"
    digits = max(0, 3 - math.floor(math.log10(size))) if size else 0
    return f"{mean:.{digits}f} ± {std:.{digits}f}{odd}"
