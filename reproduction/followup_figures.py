"""The follow-up's figures: calibration against detection, answers that were selected, and mild shifts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from calibayes.displays.style import LINES, finish, percent_axis
from reproduction.experiment_results import PartResults
from reproduction.followup_scores import COVERAGES, KNOWN_SOURCE, NEW_SOURCE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["followup_figures"]

_SELECTED = ("FNN", "CBNN", "CBNN-OCM")  # whose answers are selected in the figure


def followup_figures(parts: Sequence[PartResults]) -> Iterator[tuple[str, Figure]]:
    """Each figure with the name of its file."""
    yield "ece-and-detection.png", _panels([(KNOWN_SOURCE, _tradeoff), (NEW_SOURCE, _tradeoff)], parts)
    yield "selection.png", _panels([("ece", _selection), ("accuracy", _selection)], parts)
    yield "shift.png", _panels([("ece", _shift), ("ece", partial(_shift, way="scaled")), ("accuracy", _shift)], parts)


def _panels(
    panels: Sequence[tuple[str, Callable[[Axes, str, Sequence[PartResults]], None]]], parts: Sequence[PartResults]
) -> Figure:
    """A figure of panels side by side, with one legend above them; those of the same score share an axis."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2 * len(panels), 4.0), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    first: dict[str, Axes] = {}
    for ax, (what, panel) in zip(axes, panels, strict=True):
        if what in first:
            ax.sharey(first[what])
        first.setdefault(what, ax)
        panel(ax, what, parts)
        finish(ax)
    handles, labels = axes[0].get_legend_handles_labels()
    columns = 3 if max(map(len, labels)) > 20 else 5  # as many as fit
    figure.legend(handles, labels, loc="outside upper center", ncols=min(len(labels), columns), frameon=False, fontsize="small")
    return figure


def _tradeoff(ax: Axes, source: str, parts: Sequence[PartResults]) -> None:
    """The follow-up's two aims: a low ECE of insiders, and outsiders that can be detected; a point for each seed."""
    schemes = list(dict.fromkeys(part.name.removesuffix("-OCM") for part in parts))
    for part in parts:
        line = LINES[schemes.index(part.name.removesuffix("-OCM")) % len(LINES)]
        filled = line.color if part.name.endswith("-OCM") else "none"
        detected, error = part.final("outsiders", source, "max-prob", "detection_probability"), part.final("test", "ece")
        ax.plot(
            detected,
            error,
            line.marker,
            color=line.color,
            markerfacecolor=filled,
            markersize=6,
            label=part.name,
            linestyle="none",
        )
    ax.set(xlabel=f"detection probability, outsiders of\n{source}", ylabel="ECE of insiders")
    ax.set_ylim(bottom=0)
    ax.locator_params(axis="x", nbins=4)  # more labels would run into each other
    percent_axis(ax.xaxis)
    percent_axis(ax.yaxis)


def _selection(ax: Axes, score: str, parts: Sequence[PartResults]) -> None:
    """A score of the answers over the share of inputs that are answered, by the selector and by confidence."""
    chosen = [part for part in parts if part.name in _SELECTED]
    for part, line in zip(chosen, LINES, strict=False):
        for way, style in (("selector", "-"), ("confidence", ":")):
            means = [np.nanmean(part.final("selective", f"{coverage:g}", way, score)) for coverage in COVERAGES]
            means.append(part.final("test", score).mean())
            label = f"{part.name}, by {'the selector' if way == 'selector' else 'confidence'}"
            ax.plot([*COVERAGES, 1.0], means, **{**line.on(ax, markers=True), "linestyle": style}, label=label)
    ax.set(xlabel="inputs answered", ylabel=_named(score))
    percent_axis(ax.xaxis)
    percent_axis(ax.yaxis)


def _shift(ax: Axes, score: str, parts: Sequence[PartResults], way: str = "test") -> None:
    """A score without a shift and under each, means over seeds and their range; "scaled" is with a temperature."""
    shifts = sorted(parts[0].results[0]["final"]["shift"])
    places: list[tuple[str, ...]] = [(way,), *(("shift", name, way) for name in shifts)]
    chosen = [part for part in parts if part.name in {name for each in _SELECTED for name in (each, f"{each}-OCM")}]
    for index, (part, line) in enumerate(zip(chosen, LINES, strict=False)):
        values = [part.final(*place, score) for place in places]
        means = np.array([each.mean() for each in values])
        ends = np.abs(np.array([[each.min(), each.max()] for each in values]).T - means)
        where = np.arange(len(places)) + 0.12 * (index - (len(chosen) - 1) / 2)
        ax.errorbar(where, means, ends, fmt=line.marker, color=line.color, capsize=2, label=part.name)
    ax.set_xticks(range(len(places)), ["no shift", *(name.replace("_", " ") for name in shifts)], fontsize="small")
    ax.set_ylabel(_named(score) + (" with the temperature of unshifted inputs" if way == "scaled" else ""))
    percent_axis(ax.yaxis)


def _named(score: str) -> str:
    return "ECE" if score == "ece" else score
