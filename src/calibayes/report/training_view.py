"""The content of the report on a training: the rows of its tables, and the values that a template cannot compute."""

from __future__ import annotations

import math
from typing import Any

from calibayes.report.charts_importance import importance_bar, importance_scale
from calibayes.report.page_numbers import NOISE, as_float, percent, places
from calibayes.report.page_view import view

__all__ = ["training_view"]

_MAIN = ("accuracy", "roc_auc", "nll", "brier", "overconfidence", "ece", "kce_p_value", "coverage_at_target")
_FEW_CLASSES = 10  # a matrix with names on top, counts and shares; above, it is written small
_SAY_PAIRS = 5  # classes above which the most confused pairs are listed
_COLUMNS = 20  # of the importance


def training_view(content: dict[str, Any]) -> dict[str, Any]:
    """The variables of the template.

    Args:
        content: the result of `TrainingStudy.to_dict`.
    """
    variables, training = view(content), content["training"]
    rows = variables["score_rows"]
    if training["roc_auc"] is not None:
        rows = [*rows, _auc_row(training)]
    by_name = {row["name"]: row for row in rows}
    shown = training["importance"][:_COLUMNS]
    scale = importance_scale(shown)
    classes = len(training["class_rates"])
    return {
        **variables,
        "layout": "training",
        "training": training,
        "main_rows": [by_name[name] for name in _MAIN if name in by_name],
        "other_rows": [row for row in rows if row["name"] not in _MAIN],
        "matrix": _matrix(training),
        "compact": classes > _FEW_CLASSES,
        "pairs_listed": training["confused"] if classes > _SAY_PAIRS else [],
        "rate_rows": _rate_rows(training["class_rates"]),
        "rates_sorted": classes > _FEW_CLASSES,
        "importance": [
            {**each, "bar": importance_bar(each, scale), "decimals": _decimals(as_float(each["low"]), as_float(each["high"]))}
            for each in shown
        ],
        "attempts": [_attempt(each, training) for each in training["attempts"]],
        "lowest_is_chosen": _lowest_is_chosen(training),
    }


def duration(seconds: float) -> str:
    """A time that something took.

    Examples:
        >>> duration(0.31), duration(42.4), duration(125)
        ('0.3 s', '42 s', '2 min 5 s')
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _decimals(low: float, high: float) -> int:
    """The decimals of an increase: one more than its interval warrants, so that an end below zero does not read as zero.

    Examples:
        >>> _decimals(11.8, 12.7), _decimals(-0.0002, 0.005), _decimals(0.0, 0.0)
        (2, 4, 3)
    """
    half = (high - low) / 2
    return max(1, min(5, 1 + math.ceil(-math.log10(half)))) if math.isfinite(half) and half > NOISE else 3


def _auc_row(training: dict[str, Any]) -> dict[str, Any]:
    first, second = (each["name"] for each in training["class_rates"])
    cell = training["roc_auc"]
    return {
        "name": "roc_auc",
        "title": "AUC",
        "better": "higher",
        "about": f"Area under the ROC curve: how often a row of class “{second}” gets a higher probability of it than a row of "
        f"class “{first}”. Guessing has 0.5. The interval is DeLong's.",
        "decimals": places([(as_float(cell["high"]) - as_float(cell["low"])) / 2]),
        "cells": [cell],
        "best": None,
    }


def _matrix(training: dict[str, Any]) -> list[dict[str, Any]] | None:
    """The rows of the confusion matrix, with a step of colour for each share of a row."""
    if training["confusion"] is None:
        return None
    names = [each["name"] for each in training["class_rates"]]
    rows = []
    for place, (name, counts) in enumerate(zip(names, training["confusion"], strict=True)):
        total = sum(counts)
        cells = []
        for other, count in enumerate(counts):
            share = count / total if total else None
            # A single case among thousands still has a colour.
            step = 0 if not count else max(1, math.ceil(10 * count / total - 1e-9))
            kind = "hit" if other == place else "miss"
            told = f"{name} taken for {names[other]}: {count:,} ({percent(share)})"
            cells.append({"count": count, "share": share, "kind": f"{kind} heat-{step}", "told": told})
        rows.append({"name": name, "support": total, "cells": cells})
    return rows


def _rate_rows(rates: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Few classes in their order; many by their F1, the lowest first and unknown ones last."""
    if len(rates) <= _FEW_CLASSES:
        return rates
    return sorted(rates, key=lambda each: math.inf if each["f1"]["value"] is None else float(each["f1"]["value"]))


def _attempt(attempt: dict[str, Any], training: dict[str, Any]) -> dict[str, Any]:
    chosen = attempt["title"] == training["method"] and attempt["result"] == "complete"
    outcome = attempt["reason"] or ("" if attempt["result"] == "complete" else attempt["result"])
    return {
        **attempt,
        "chosen": chosen,
        "outcome": outcome[:1].upper() + outcome[1:],
        "partial": attempt["result"] != "complete" and attempt["nll"] is not None,
        "duration": duration(float(attempt["seconds"])),
    }


def _lowest_is_chosen(training: dict[str, Any]) -> bool:
    complete = [each for each in training["attempts"] if each["result"] == "complete" and each["nll"] is not None]
    return not complete or min(complete, key=lambda each: as_float(each["nll"]))["title"] == training["method"]
