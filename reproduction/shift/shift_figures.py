"""The figures of an experiment under shift: scores by severity, by shift, and beside people's answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from calibayes.displays.style import BLUE, GREY, INK, LINES, VERMILLION, finish, percent_axis
from reproduction.experiment_results import PartResults
from reproduction.shift.people import PEOPLE_SCORES
from reproduction.shift.shift_scores import STEPS, WAYS, Way, by_seed, curve, shift_names
from reproduction.shift.shift_tables import SCORE_COLUMNS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_shift"]

_GROUPS = {
    "the paper's schemes": ("bnn", "ca-fnn", "ca-bnn"),
    "around one network": ("ema", "mc-dropout", "swag", "laplace", "warm-mean-field"),
    "other losses and optimisers": ("focal", "label-smoothing", "natural-gradient"),
    "several networks": ("ensemble", "mixture"),
}
_SCORES = {column.name: column.title.removesuffix(" %") for column in SCORE_COLUMNS if column.name != "accuracy"}
_TITLES = {"plain": "as trained", "scaled": "with a temperature from unshifted data"}


def draw_shift(name: str, parts: Sequence[PartResults], folder: Path) -> list[str]:
    """Draw the figures of an experiment from its results, and return the names of the files."""
    names = []
    for file, figure in _figures([part for part in parts if part.results]):
        figure.savefig(folder / file, dpi=110)
        names.append(file)
    return names


def _figures(parts: Sequence[PartResults]) -> Iterator[tuple[str, Figure]]:
    yield "severity.png", _by_severity(parts, "plain")
    yield "severity-temperature.png", _by_severity(parts, "scaled")
    yield "shifts.png", _by_shift(parts)
    if "people" in parts[0].results[0]["final"]:
        yield "people.png", _beside_people(parts)


def _by_severity(parts: Sequence[PartResults], way: Way) -> Figure:
    """A column for each group of methods, with the plain network in grey; a row for each score."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.4, 7.6), layout="constrained")
    figure.suptitle(f"Scores by severity, {_TITLES[way]}", fontsize="medium")
    axes = figure.subplots(len(_SCORES), len(_GROUPS), sharex=True, sharey="row", squeeze=False)
    for row, score in zip(axes, _SCORES, strict=True):
        for ax, (title, schemes) in zip(row, _GROUPS.items(), strict=True):
            _curves(ax, [part for part in parts if part.settings[0].scheme in ("fnn", *schemes)], way, score)
            if score == next(iter(_SCORES)):
                ax.set_title(title, loc="left", fontsize="small")
                ax.legend(frameon=False, fontsize="x-small")
            if score != "nll":
                percent_axis(ax.yaxis)
            finish(ax)
        row[0].set_ylabel(_SCORES[score])
    for ax in axes[-1]:
        ax.set(xlabel="severity", xticks=STEPS)
    return figure


def _curves(ax: Axes, parts: Sequence[PartResults], way: Way, score: str) -> None:
    lines = iter(LINES)
    for part in parts:
        points = curve(part, way, score)
        plain = part.settings[0].scheme == "fnn"
        look = {"color": GREY, "linewidth": 2.5} if plain else next(lines).on(ax, markers=True)
        ax.plot(STEPS, points.mean, label=part.name + WAYS[way], **look)
        ax.fill_between(STEPS, points.low, points.high, facecolor=look["color"], alpha=0.12, linewidth=0)


def _by_shift(parts: Sequence[PartResults]) -> Figure:
    """NLL with a temperature, averaged over severities, less that of the plain network with one: methods by shifts."""
    from matplotlib.figure import Figure

    names = shift_names(parts[0])
    values = np.array([[_over_severities(part, name) for name in names] for part in parts])
    plain = next((place for place, part in enumerate(parts) if part.settings[0].scheme == "fnn"), 0)
    values -= values[plain]
    figure = Figure(figsize=(2.6 + 0.62 * len(names), 1.6 + 0.34 * len(parts)), layout="constrained")
    ax = figure.add_subplot()
    bound = float(np.abs(values).max()) or 1.0
    shown = ax.imshow(values, cmap="PuOr_r", vmin=-bound, vmax=bound, aspect="auto")
    ax.set_xticks(range(len(names)), [name.replace("_", " ") for name in names], rotation=40, ha="right", fontsize="small")
    ax.set_yticks(range(len(parts)), [part.name + WAYS["scaled"] for part in parts], fontsize="small")
    for (row, column), value in np.ndenumerate(values):
        strong = abs(value) > 0.6 * bound
        ax.text(column, row, f"{value:+.2f}", ha="center", va="center", fontsize=6.5, color="white" if strong else INK)
    figure.colorbar(shown, ax=ax, fraction=0.04, pad=0.01)
    ax.set_title(f"NLL minus that of {parts[plain].name} + T, mean over severities and seeds", loc="left", fontsize="small")
    return figure


def _over_severities(part: PartResults, shift: str) -> float:
    return float(np.mean([list(by_seed(part, "scaled", "nll", step, shift).values()) for step in STEPS[1:]]))


def _beside_people(parts: Sequence[PartResults]) -> Figure:
    """The scores by people's answers: a panel for each, a row for each method, plain and with a temperature."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 1.4 + 0.34 * len(parts)), layout="constrained")
    axes = figure.subplots(1, len(PEOPLE_SCORES), sharey=True)
    rows = np.arange(len(parts))
    for ax, (score, title) in zip(axes, PEOPLE_SCORES.items(), strict=True):
        for way, colour, marker, aside in (("plain", VERMILLION, "o", -0.14), ("scaled", BLUE, "D", 0.14)):
            value = [part.final("people", way, score).mean() for part in parts]
            ends = [
                np.mean([result["final"]["people"][way][f"{score}_interval"] for result in part.results], axis=0)
                for part in parts
            ]
            ax.hlines(rows + aside, *np.transpose(ends), color=colour, linewidth=1.2)
            label = "as trained" if way == "plain" else "with a temperature"
            ax.plot(value, rows + aside, marker, color=colour, markersize=3.5, label=label)
        ax.set_xlabel(title, fontsize="small")
        if score == "overconfidence":
            ax.axvline(0, color=GREY, linewidth=0.8, zorder=0)
        finish(ax)
    axes[0].set_yticks(rows, [part.name for part in parts])
    axes[0].invert_yaxis()
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2, frameon=False, fontsize="small")
    return figure
