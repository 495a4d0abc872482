"""Cost against NLL: which method is worth its price."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.methods.table import summary
from calibayes.displays.style import BLUE, VERMILLION

__all__ = ["draw"]

_COLOURS = {"plain": BLUE, "regularised": VERMILLION}


def draw(rows: Sequence[dict[str, Any]], title: str, path: Path) -> None:
    """Every method's test NLL, the better of plain and scaled by validation, over what its training costs; a panel a base."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    ways = _better_ways(rows)
    entries = [each for each in summary(rows) if ways[each["base"], each["method"]] == each["way"]]
    values = [each["scores"]["nll"][0] for each in entries]
    gap = (max(values) - min(values)) / 34
    costs = sorted({each["trainings"] for each in entries})
    figure, panels = plt.subplots(1, len(_COLOURS), figsize=(12, 5.5), sharey=True, layout="constrained")
    for axes, (base, colour) in zip(panels, _COLOURS.items(), strict=True):
        for place, cost in enumerate(costs):
            column = [each for each in entries if each["base"] == base and each["trainings"] == cost]
            _draw_column(axes, sorted(column, key=lambda e: float(e["scores"]["nll"][0])), place, gap, colour)
        axes.set_xticks(range(len(costs)), [f"{cost:g}×" for cost in costs])
        axes.set_xlim(-0.3, len(costs) - 0.1)
        axes.set_xlabel("cost of training, in plain trainings")
        axes.set_title(f"{base} base", fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("test NLL (lower is better)")
    figure.suptitle(title, fontsize=11)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _better_ways(rows: Sequence[dict[str, Any]]) -> dict[tuple[str, str], str]:
    """Whether validation NLL prefers a method plain or with a temperature."""
    sums: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows:
        found = sums.setdefault((row["base"], row["method"]), {"plain": 0.0, "scaled": 0.0})
        for way in found:
            found[way] += row["validation"][way]["nll"]
    return {key: min(found, key=lambda way: found[way]) for key, found in sums.items()}


def _draw_column(axes: Any, column: Sequence[dict[str, Any]], x: float, gap: float, colour: str) -> None:
    """Methods of one cost from the lowest NLL on: points, and names beside them that do not cover each other."""
    height = -1.0
    for each in column:
        nll, spread = each["scores"]["nll"]
        axes.errorbar([x], [nll], yerr=[spread], fmt="o", color=colour, markersize=4, elinewidth=0.6)
        height = max(nll, height + gap)
        axes.annotate(
            each["method"] + (" + T" if each["way"] == "scaled" else ""),
            (x, nll),
            xytext=(x + 0.1, height),
            va="center",
            fontsize=7,
            color=colour,
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.4},
        )
