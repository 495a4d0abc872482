"""The content of the page, from the study: the rows of its tables, its charts, and the values that may be called best."""

from __future__ import annotations

import math
from typing import Any

from calibayes.metrics.calibration_test import SMALLEST
from calibayes.report.charts import forest_row
from calibayes.report.charts_coverage import coverage_chart, legend_sample, nearest
from calibayes.report.charts_reliability import highest_share, reliability_chart
from calibayes.report.guarantees_view import guarantees_view
from calibayes.report.page_numbers import NOISE, Number, as_float, key_of, places

__all__ = ["FIRST_CLASSES", "view"]

FIRST_CLASSES = 30  # shown before a reader asks for all
_OPEN_PAIRS = 3  # pairs of models whose table is open; the others are one click away
_COVERAGES = (0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
_NOTHING: dict[str, Number] = {"value": None, "low": None, "high": None}

_VERDICTS = {
    "over-confident": ("overconfident", "over"),
    "under-confident": ("underconfident", "under"),
    "calibrated": ("calibrated", "good"),
    "nearly calibrated": ("nearly calibrated", "good"),
    "mixed": ("over- and underconfident", "mixed"),
    "unclear": ("unclear", "unclear"),
}


def view(study: dict[str, Any]) -> dict[str, Any]:
    """The variables of the template, in the order of the page."""
    models = study["models"]
    keys = {model["name"]: key_of(index) for index, model in enumerate(models)}
    rows = _score_rows(study)
    top, level = highest_share(models), study["settings"]["level"]
    return {
        "study": study,
        "layout": "many" if len(models) > 4 else "",
        "keys": keys,
        "models": [
            {
                **model,
                "index": index,
                "key": keys[model["name"]],
                "badge": _VERDICTS.get(model["verdict"]["kind"], (model["verdict"]["kind"], "unclear")),
                "remedy": " would fix " in model["verdict"]["text"],  # else its effect is not worth a line
                "diagram": reliability_chart(model, keys[model["name"]], top_share=top, level=level),
                "sample": legend_sample(index),
                "guarantees": guarantees_view(model.get("guarantees")),
            }
            for index, model in enumerate(models)
        ],
        "level": f"{100 * level:g}\u00a0%",
        "score_rows": rows,
        "smallest_p": SMALLEST,
        "outside": any(_outside(cell) for row in rows for cell in row["cells"]),
        "pairs": _pairs(study, keys),
        "curves": coverage_chart(models),
        "coverage_rows": [{"coverage": wanted, "cells": [_at(model, wanted) for model in models]} for wanted in _COVERAGES],
        "class_rows": _class_rows(models),
        "guaranteed": any(model.get("guarantees") for model in models),
        "first_classes": FIRST_CLASSES,
    }


def _score_rows(study: dict[str, Any]) -> list[dict[str, Any]]:
    """One row per metric, with the best model if there is one."""
    rows = []
    for metric in study["metrics"]:
        cells = [model["scores"].get(metric["name"], _NOTHING) for model in study["models"]]
        rows.append({**metric, "decimals": places(map(_half_width, cells)), "cells": cells, "best": _best(study, metric)})
    return rows


def _best(study: dict[str, Any], metric: dict[str, Any]) -> str | None:
    """The model that beats every other by a difference whose interval excludes zero; None if no model does."""
    beaten: dict[str, set[str]] = {model["name"]: set() for model in study["models"]}
    for pair in study["differences"]:
        difference = pair["metrics"].get(metric["name"], _NOTHING)
        winner = _winner(difference, metric["better"], pair["first"], pair["second"])
        if winner is not None:
            beaten[winner].add(pair["second"] if winner == pair["first"] else pair["first"])
    return next((name for name, losers in beaten.items() if losers and len(losers) == len(beaten) - 1), None)


def _winner(difference: dict[str, Number], better: str | None, first: str, second: str) -> str | None:
    """The better of the two, if the interval of first minus second excludes zero."""
    if better is None or not _clear(difference):
        return None
    return first if (as_float(difference["low"]) > 0) == (better == "higher") else second


def _clear(difference: dict[str, Number]) -> bool:
    """Return True if the interval excludes zero on the side of the difference itself; an unknown interval does not.

    An interval corrected for bias can lie on the other side: then the difference is not called clear.
    """
    value, low, high = _numbers(difference)
    return (low > NOISE and value > 0) or (high < -NOISE and value < 0)


def _outside(cell: dict[str, Number]) -> bool:
    """Return True if a number lies outside its own interval."""
    value, low, high = _numbers(cell)
    return value < low or value > high


def _pairs(study: dict[str, Any], keys: dict[str, str]) -> list[dict[str, Any]]:
    """One table per pair of models; a metric has the same scale in all of them."""
    reach: dict[str, float] = {}
    half_widths: dict[str, list[float]] = {}
    for pair in study["differences"]:
        for name, difference in pair["metrics"].items():
            ends = [abs(end) for end in _numbers(difference) if math.isfinite(end)]
            reach[name] = max([reach.get(name, 0.0), *ends])
            half_widths.setdefault(name, []).append(_half_width(difference))
    tables = []
    for index, pair in enumerate(study["differences"]):
        first, second = keys[pair["first"]], keys[pair["second"]]
        rows = []
        for metric in study["metrics"]:
            if difference := pair["metrics"].get(metric["name"]):
                own_reach, decimals = reach[metric["name"]], places(half_widths[metric["name"]])
                reading = _reading(difference, metric["better"], first, second)
                chart = _forest(difference, own_reach)
                rows.append(
                    {**metric, **difference, "decimals": decimals, "reach": own_reach, "reading": reading, "chart": chart}
                )
        tables.append({**pair, "first_key": first, "second_key": second, "rows": rows, "open": index < _OPEN_PAIRS})
    return tables


def _reading(difference: dict[str, Number], better: str | None, first: str, second: str) -> str:
    if not _clear(difference):
        return "no clear difference"
    winner = _winner(difference, better, first, second)
    return f"{winner} is better" if winner else f"{first if as_float(difference['low']) > 0 else second} is higher"


def _forest(difference: dict[str, Number], reach: float) -> str | None:
    value, low, high = _numbers(difference)
    if reach <= NOISE or not all(map(math.isfinite, (value, low, high))):
        return None
    return forest_row(value, low, high, reach=reach, clear=_clear(difference))


def _numbers(cell: dict[str, Number]) -> tuple[float, float, float]:
    return as_float(cell["value"]), as_float(cell["low"]), as_float(cell["high"])


def _half_width(cell: dict[str, Number]) -> float:
    return (as_float(cell["high"]) - as_float(cell["low"])) / 2


def _at(model: dict[str, Any], wanted: float) -> dict[str, Number]:
    """The point of a model's risk–coverage curve nearest to a coverage."""
    curve = model["risk_coverage"]
    place = nearest(curve["coverage"], wanted)
    return {name: None if place is None else curve[name][place] for name in ("risk", "threshold")}


def _class_rows(models: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row per class, the one with the largest calibration error of any model first; unknown errors last."""
    rows = [
        {"name": entries[0]["name"], "share": entries[0]["share"], "cells": entries}
        for entries in zip(*(model["per_class"] for model in models), strict=True)
    ]

    def worst(row: dict[str, Any]) -> float:
        return max((as_float(cell["ece"]) for cell in row["cells"] if cell["ece"] is not None), default=-1.0)

    return sorted(rows, key=worst, reverse=True)
