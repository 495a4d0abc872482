"""The numbers of an experiment as a table for the terminal and for a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from calibayes.recipes.reproduce.found import Floats, FoundPart

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["samples_table", "scores_table", "summary"]

# Title, where it is in a trained network's result, factor and digits.
_COLUMNS = (
    ("accuracy %", ("test", "accuracy"), 100, 1),
    ("ECE %", ("test", "ece"), 100, 1),
    ("NLL", ("test", "nll"), 1, 3),
    ("Brier", ("test", "brier"), 1, 3),
    ("T", ("temperature",), 1, 2),
    ("ECE % + T", ("scaled", "ece"), 100, 1),
    ("NLL + T", ("scaled", "nll"), 1, 3),
)


def scores_table(title: str, parts: Sequence[FoundPart]) -> Table:
    """Mean and standard deviation over seeds, as the networks are and with a temperature, and the time of the fastest epoch."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, box=box.SIMPLE_HEAD, title_style="bold")
    table.add_column("", no_wrap=True)
    there = [part for part in parts if part.results]
    plain = {_network(part): part.epoch_seconds() for part in there if part.name.rpartition(": ")[2] == "FNN"}
    names = ("seeds", *(column[0] for column in _COLUMNS), "s / epoch", *(["× FNN"] if plain else []))
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    for part in there:
        cells = [_spread(factor * part.final(*path), digits) for _, path, factor, digits in _COLUMNS]
        seconds = part.epoch_seconds()
        cost = [f"{seconds / plain[_network(part)]:.2f}"] if _network(part) in plain else []
        table.add_row(Text(part.name), str(len(part.results)), *cells, f"{seconds:.1f}", *cost)
    return table


def _network(part: FoundPart) -> str:
    """Which network a part trains, where an experiment has several."""
    return part.name.rpartition(": ")[0]


def samples_table(parts: Sequence[FoundPart]) -> Table | None:
    """What the number of samples behind a prediction does: ECE and accuracy of the Bayesian parts, means over seeds."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    bayesian = [part for part in parts if part.results and "by_samples" in part.results[0]["final"]]
    if not bayesian:
        return None
    counts = sorted(bayesian[0].results[0]["final"]["by_samples"], key=int)
    ways = [("mean weights", ("mean_weights",)), *((f"S = {count}", ("by_samples", count)) for count in counts)]
    ways.append((f"S = {bayesian[0].settings[0].predictive_samples}", ()))
    table = Table(title="ECE % (accuracy %) by the number of samples of a prediction", box=box.SIMPLE_HEAD, title_style="bold")
    table.add_column("", no_wrap=True)
    for name, _ in ways:
        table.add_column(name, justify="right", no_wrap=True)
    for part in bayesian:
        errors, right = ([100 * part.final(*path, "test", score).mean() for _, path in ways] for score in ("ece", "accuracy"))
        table.add_row(Text(part.name), *(f"{a:.1f} ({b:.1f})" for a, b in zip(errors, right, strict=True)))
    return table


def summary(parts: Sequence[FoundPart]) -> list[dict[str, Any]]:
    """The same, and each seed's value, as numbers."""
    return [
        {
            "name": part.name,
            "seeds": [each.seed for each in part.settings],
            "settings": {name: value for name, value in part.settings[0].to_dict().items() if name != "seed"},
            "scores": {" ".join(path): [float(value) for value in part.final(*path)] for _, path, _, _ in _COLUMNS},
            "fastest_epoch_seconds": part.epoch_seconds(),
        }
        for part in parts
        if part.results
    ]


def _spread(values: Floats, digits: int) -> str:
    mean = f"{values.mean():.{digits}f}"
    return f"{mean} ± {values.std(ddof=1):.{digits}f}" if len(values) > 1 else mean
