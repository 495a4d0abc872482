"""The comparison as a table: means over seeds, and paired differences from the plain network with a temperature."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

__all__ = ["paired", "summary", "table"]

_T95 = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}


def summary(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One entry for each base and method, plain and scaled: mean and standard deviation over seeds of every test score."""
    keys = dict.fromkeys((row["base"], row["method"]) for row in rows)
    found = []
    for base, method in keys:
        part = [row for row in rows if (row["base"], row["method"]) == (base, method)]
        for way in ("plain", "scaled"):
            scores = {name: [row["test"][way][name] for row in part] for name in part[0]["test"][way]}
            found.append(
                {
                    "base": base,
                    "method": method,
                    "title": part[0]["title"] + (" + T" if way == "scaled" else ""),
                    "way": way,
                    "scores": {name: (statistics.mean(each), _spread(each)) for name, each in scores.items()},
                    "trainings": part[0]["cost"]["trainings"],
                    "passes": part[0]["cost"]["passes"],
                    "difference": paired(rows, base, method, way),
                }
            )
    return found


def paired(rows: Sequence[dict[str, Any]], base: str, method: str, way: str, score: str = "nll") -> tuple[float, float]:
    """The mean over seeds of a score minus that of the plain network with a temperature, and half its 95 % interval."""
    first = {row["seed"]: row["test"]["scaled"][score] for row in rows if (row["base"], row["method"]) == ("plain", "fnn")}
    mine = {row["seed"]: row["test"][way][score] for row in rows if (row["base"], row["method"]) == (base, method)}
    gaps = [mine[seed] - first[seed] for seed in first]
    half = _T95[len(gaps)] * statistics.stdev(gaps) / math.sqrt(len(gaps)) if len(gaps) > 1 else math.nan
    return statistics.mean(gaps), half


def table(rows: Sequence[dict[str, Any]], title: str) -> str:
    """The summary as lines of text, best NLL first."""
    entries = sorted(summary(rows), key=lambda each: each["scores"]["nll"][0])
    seeds = len({row["seed"] for row in rows})
    lines = [
        f"{title}; test scores, mean over {seeds} seeds (± standard deviation for NLL)",
        "NLL difference: from the plain network with a temperature, paired over seeds, with a 95 % interval of its own",
        "cost: training in epochs, as a multiple of one plain training; prediction in passes of the network",
        "",
        f"{'base':<12} {'method':<42} {'NLL':>15} {'difference':>17} {'acc %':>6} {'ECE %':>6} {'Brier':>6} {'AURC':>7} "
        f"{'train':>6} {'passes':>6}",
    ]
    for each in entries:
        scores, (gap, half) = each["scores"], each["difference"]
        nll, spread = scores["nll"]
        lines.append(
            f"{each['base']:<12} {each['title']:<42} {nll:>7.4f} ±{spread:.4f} {gap:>+8.4f} ±{half:.4f} "
            f"{100 * scores['accuracy'][0]:>6.1f} {100 * scores['ece'][0]:>6.2f} {scores['brier'][0]:>6.3f} "
            f"{scores['aurc'][0]:>7.4f} {each['trainings']:>5.1f}x {each['passes']:>6}"
        )
    return "\n".join(lines) + "\n"


def _spread(values: Sequence[float]) -> float:
    return statistics.stdev(values) if len(values) > 1 else 0.0
