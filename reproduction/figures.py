"""The figures of the experiments: those of the paper, and further ones beside them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from calibayes.displays import ReliabilityDisplay, SweepDisplay, reliability_grid
from calibayes.displays.style import LINES, finish, percent_axis
from calibayes.metrics import Interval, ReliabilityBins, Scores
from reproduction.experiment_results import PartResults
from reproduction.followup_figures import followup_figures
from reproduction.membership_figures import leak_figures

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw"]

_PANELS: Mapping[tuple[str, str], str] = {
    ("test", "ece"): "ECE",
    ("test", "accuracy"): "accuracy",
    ("scaled", "ece"): "ECE with temperature",
    ("scaled", "nll"): "NLL with temperature",
    ("test", "nll"): "NLL",
    ("test", "brier"): "Brier score",
}
_STRONG = 100.0  # a λ beyond which the accuracy breaks down
_AS_PAPER, _BESIDE = tuple(_PANELS)[:2], tuple(_PANELS)[2:]


def draw(name: str, parts: Sequence[PartResults], folder: Path) -> list[str]:
    """Draw the figures of an experiment from its results, and return the names of the files."""
    names = []
    for file, figure in _FIGURES[name]([part for part in parts if part.results]) if name in _FIGURES else ():
        figure.savefig(folder / file, dpi=150)
        names.append(file)
    return names


def _epochs(parts: Sequence[PartResults]) -> Iterator[tuple[str, Figure]]:
    """Fig. 1 and, beside it, temperature scaling and proper scores: medians over seeds and the central 75 %."""

    def panel(ax: Axes, path: tuple[str, str]) -> None:
        for part, line in zip(parts, LINES, strict=False):
            epochs, values = part.over_epochs(*path)
            low, median, high = np.quantile(values, [0.125, 0.5, 0.875], axis=0)
            ax.fill_between(epochs, low, high, facecolor=line.color, alpha=0.2, linewidth=0)
            ax.plot(epochs, median, label=part.name, **line.on(ax))
        _labelled(ax, "epoch", path)
        ax.locator_params("x", integer=True)

    yield "figure1.png", _figure(_AS_PAPER, panel)
    yield "figure1-beside.png", _figure(_BESIDE, panel)


def _lambdas(parts: Sequence[PartResults]) -> Iterator[tuple[str, Figure]]:
    """Fig. 2 and, beside it, temperature scaling and proper scores; then ECE against accuracy over epochs."""

    def panel(ax: Axes, path: tuple[str, str]) -> None:
        values: dict[str, dict[float, list[float]]] = {}
        for part in parts:
            chosen = part.settings[0]
            values.setdefault(chosen.scheme, {})[chosen.lam] = part.final(*path).tolist()
        SweepDisplay(values, metric=_PANELS[path], interval=0.6).plot(ax, legend=False)
        _labelled(ax, "λ", path)

    yield "figure2.png", _figure(_AS_PAPER, panel)
    yield "figure2-beside.png", _figure(_BESIDE, panel)
    yield "equal-accuracy.png", _equal_accuracy(parts)


def _equal_accuracy(parts: Sequence[PartResults]) -> Figure:
    """ECE against accuracy after each scored epoch, to compare calibration at equal accuracy."""
    strong = max((part.settings[0].lam for part in parts if part.settings[0].lam <= _STRONG), default=0.0)
    chosen = [part for part in parts if part.settings[0].lam in (0.0, strong)]

    def panel(ax: Axes, path: tuple[str, str]) -> None:
        for part, line in zip(chosen, LINES, strict=False):
            right, error = (np.median(part.over_epochs(*each)[1], axis=0) for each in (("test", "accuracy"), path))
            ax.plot(right, error, label=part.name, **line.on(ax, markers=True))
        _labelled(ax, "accuracy", path)
        percent_axis(ax.xaxis)

    return _figure((("test", "ece"), ("scaled", "ece")), panel)


def _diagrams(parts: Sequence[PartResults]) -> Iterator[tuple[str, Figure]]:
    """Fig. 3 for each network, plain and with a temperature: the first seed's diagrams."""
    for network in dict.fromkeys(str(part.settings[0].to_dict()["network"]) for part in parts):
        own = [part for part in parts if part.settings[0].to_dict()["network"] == network]
        for what, suffix in (("test", ""), ("scaled", "-temperature")):
            yield f"figure3-{network}{suffix}.png", reliability_grid([_diagram(part, what) for part in own])


def _diagram(part: PartResults, what: str) -> ReliabilityDisplay:
    final = part.results[0]["final"]
    bins, closely = final["reliability"][what], final["closely"][what]
    count = torch.tensor(bins["count"])
    columns = {
        name: torch.tensor([math.nan if value is None else value for value in bins[name]], dtype=torch.float64)
        for name in ("confidence", "accuracy")
    }
    edges = torch.linspace(0, 1, len(count) + 1, dtype=torch.float64)
    diagram_bins = ReliabilityBins(edges=edges, count=count, weight=count.double(), effective=count.double(), **columns)
    scores: dict[str, Any] = closely["values"]
    intervals = {name: Interval(*ends) for name, ends in closely["intervals"].items()}
    displayed = Scores(
        n=int(count.sum()), classes=10, bins=len(count), k=5, target_accuracy=0.95, level=0.95, intervals=intervals, **scores
    )
    name = part.settings[0].scheme.upper() + (" with temperature" if what == "scaled" else "")
    return ReliabilityDisplay(bins=diagram_bins, scores=displayed, name=name)


def _figure(paths: Sequence[tuple[str, str]], panel: Callable[[Axes, tuple[str, str]], None]) -> Figure:
    """A figure with two panels a row, and a legend above them."""
    from matplotlib.figure import Figure

    rows = len(paths) // 2
    figure = Figure(figsize=(8.4, 3.3 * rows), layout="constrained")
    axes = figure.subplots(rows, 2, squeeze=False).flat
    for ax, path in zip(axes, paths, strict=True):
        panel(ax, path)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=min(len(labels), 4), frameon=False, fontsize="small")
    return figure


def _labelled(ax: Axes, horizontal: str, path: tuple[str, str]) -> None:
    ax.set(xlabel=horizontal, ylabel=_PANELS[path])
    if path[1] in ("ece", "accuracy"):
        percent_axis(ax.yaxis)
    finish(ax)


_FIGURES: Mapping[str, Callable[[Sequence[PartResults]], Iterator[tuple[str, Figure]]]] = {
    "newsgroups-epochs": _epochs,
    "newsgroups-lambda": _lambdas,
    "cifar10-reliability": _diagrams,
    "cifar10-followup": followup_figures,
    "clinc150-followup": followup_figures,
    "membership-newsgroups": leak_figures,
    "membership-fashion": leak_figures,
}
