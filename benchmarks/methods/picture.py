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
    for base, colour in colours.items():
        entries = [each for each in summary(rows) if each["base"] == base and best[base, each["method"]] == each["way"]]
        xs, ys = [each["trainings"] for each in entries], [each["scores"]["nll"][0] for each in entries]
        spread = [each["scores"]["nll"][1] for each in entries]
        axes.errorbar(xs, ys, yerr=spread, fmt="o", color=colour, label=f"{base} base", markersize=5, elinewidth=0.8)
        for x, y, each in zip(xs, ys, entries, strict=True):
            axes.annotate(each["title"], (x, y), xytext=(5, 3), textcoords="offset points", fontsize=7, color=colour)
    axes.set_xscale("log")
    axes.set_xlabel("cost of training (epochs, as a multiple of one plain training)")
    axes.set_ylabel("test NLL (lower is better)")
    axes.set_title(title, fontsize=10)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
    plt.close(figure)
