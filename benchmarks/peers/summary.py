"""The peers' results in short, as the tables of the README: ``python -m benchmarks.peers.summary`` prints them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.peers.contest import MOST
from benchmarks.report import RESULTS

__all__ = ["tables"]

_STEPS = {
    "MLP": "step: MLP 64-256-256-10",
    "20 Newsgroups CNN": "step: 20 Newsgroups CNN of stock layers",
    "ResNet-20": "step: ResNet-20 (32×32) of stock layers",
    "transformer": "step: transformer encoder (2 layers, d = 128, 4 heads, 64 tokens)",
    "predict, MLP": "predict: MLP 64-256-256-10, 2,000 inputs",
    "predict, ResNet-20": "predict: ResNet-20 (32×32) of stock layers, 250 inputs",
}
_METHODS = ("ensemble: ", "Laplace: ", "SWAG: ", "natural gradient: ")


def tables(record: Mapping[str, Any]) -> Iterator[str]:
    """Lines of Markdown: steps and predictions over the limit, then the calibration term, metrics, and other methods."""
    yield _line("time over the limit", *_STEPS)
    yield _line(*["---"] * (1 + len(_STEPS)))
    for name in record[_STEPS["MLP"]]:
        if "the limit" not in name:
            yield _line(name, *(_ratio(record[title].get(name)) for title in _STEPS.values()))
    yield ""
    terms = {title.removeprefix("term: "): rows for title, rows in record.items() if title.startswith("term: ")}
    yield _line("calibration term, forward and backward", *terms)
    yield _line(*["---"] * (1 + len(terms)))
    for name in next(iter(terms.values())):
        if "the limit" not in name:
            yield _line(name, *(_cost(rows[name]) for rows in terms.values()))
    yield ""
    yield _line("a million predictions", "library", "time", "over `torch.max`")
    yield _line(*["---"] * 4)
    for title, rows in record.items():
        if title.startswith("metric: "):
            for name, row in list(rows.items())[1:]:
                told = (_reason(row),) * 2 if "error" in row else (f"{row['seconds'] * 1e3:.0f} ms", f"{row['ratio']:.1f}×")
                yield _line(title.removeprefix("metric: "), name, *told)
    yield ""
    yield _line("other methods, time over the limit", "calibayes", "others")
    yield _line(*["---"] * 3)
    for title, rows in record.items():
        if title.startswith(_METHODS):
            times = {name: _times(row) for name, row in list(rows.items())[1:]}
            ours = [f"{each}{name.removeprefix('calibayes')}" for name, each in times.items() if name.startswith("calibayes")]
            others = [f"{each} {name}" for name, each in times.items() if not name.startswith("calibayes")]
            yield _line(title, ", ".join(ours), ", ".join(others))


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _ratio(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return "–"
    if "error" in row:
        return "error"
    few = f" ({row['bayesian']:.0%} Bayesian)" if row["bayesian"] < MOST else ""
    return f"{row['ratio']:.2f}×{few}"


def _times(row: Mapping[str, Any]) -> str:
    return "error" if "error" in row else f"{row['ratio']:.2f}×"


def _cost(row: Mapping[str, Any]) -> str:
    if "error" in row:
        return _reason(row)
    return f"{row['seconds'] * 1e3:,.1f} ms, {row['bytes'] / 1e6:,.0f} MB"


def _reason(row: Mapping[str, Any]) -> str:
    return str(row["error"]).split(": ")[-1]


if __name__ == "__main__":
    print(*tables(json.loads((RESULTS / "peers.json").read_text())), sep="\n")
