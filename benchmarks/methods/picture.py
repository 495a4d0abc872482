"""Cost against NLL: which method is worth its price."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.methods.table import summary
from calibayes.displays.style import BLUE, VERMILLION

__all__ = ["draw"]


def draw(rows: Sequence[dict[str, Any]], title: str, path: Path) -> None:
    """Every method's test NLL, the better of plain and scaled by validation, against what its training costs."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 5.5), layout="constrained")
    validation: dict[tuple[str, str, str], list[float]] = {}
    for row in rows:
        for way in ("plain", "scaled"):
            validation.setdefault((row["base"], row["method"], way), []).append(row["validation"][way]["nll"])
    best = {
        (base, method): min(("plain", "scaled"), key=lambda way: sum(validation[base, method, way]))
        for base, method, _ in validation
    }
    colours = {"plain": BLUE, "regularised": VERMILLION}
    shown = {base: [e for e in summary(rows) if e["base"] == base and best[base, e["method"]] == e["way"]] for base in colours}
    values = [each["scores"]["nll"][0] for entries in shown.values() for each in entries]
    gap = (max(values) - min(values)) / 38
    for base, side in (("plain", -1), ("regularised", 1)):
        for cost in sorted({each["trainings"] for each in shown[base]}):
            column = sorted((e for e in shown[base] if e["trainings"] == cost), key=lambda e: float(e["scores"]["nll"][0]))
            _draw_column(axes, column, cost * 1.03**side, side, gap, colours[base])
        axes.plot([], [], "o", color=colours[base], label=f"{base} base")
    axes.set_xlim(0.38, max(e["trainings"] for entries in shown.values() for e in entries) * 2.6)
    axes.set_xscale("log")
    axes.set_xlabel("cost of training (epochs, as a multiple of one plain training)")
    axes.set_ylabel("test NLL (lower is better)")
    axes.set_title(title, fontsize=10)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _draw_column(axes: Any, column: Sequence[dict[str, Any]], x: float, side: int, gap: float, colour: str) -> None:
    """Methods of one cost from the lowest NLL on: points, and names beside them that do not cover each other."""
    height = -1.0
    for each in column:
        nll, spread = each["scores"]["nll"]
        axes.errorbar([x], [nll], yerr=[spread], fmt="o", color=colour, markersize=4, elinewidth=0.6)
        height = max(nll, height + gap)
        axes.annotate(
            each["title"],
            (x, nll),
            xytext=(x * 1.09**side, height),
            ha="left" if side > 0 else "right",
            va="center",
            fontsize=6.5,
            color=colour,
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.4},
        )
