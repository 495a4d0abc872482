"""The charts of the page are to scale, and draw nothing that is not in the data."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any
from xml.etree.ElementTree import Element, fromstring

import pytest
from tests.report import studies

from calibayes.report.charts import forest_row, model_class
from calibayes.report.charts_coverage import coverage_chart
from calibayes.report.charts_reliability import highest_share, reliability_chart


def marks(chart: Element) -> list[Element]:
    return [node for node in chart.iter("g") if node.get("class") == "mark"]


def part(group: Element, name: str) -> dict[str, float]:
    matches = [node for node in group.iter("rect") if name in (node.get("class") or "").split()]
    assert len(matches) == 1, name
    return {key: float(matches[0].get(key, "nan")) for key in ("x", "y", "width", "height")}


@pytest.fixture
def model() -> dict[str, Any]:
    first: dict[str, Any] = studies.two()["models"][0]
    return first


def test_reliability_is_drawn_to_scale(model: dict[str, Any]) -> None:
    top = highest_share([model])
    chart = fromstring(reliability_chart(model, "A", top_share=top, level=0.95))
    filled = [entry for entry in model["reliability"] if entry["count"]]
    assert 0 < len(filled) < len(model["reliability"])
    assert len(marks(chart)) == len(filled)
    side = part(marks(chart)[0], "hit")
    grid = [float(re.findall(r"[\d.]+", node.get("d", ""))[1]) for node in chart.iter("path") if node.get("class") == "grid"]
    bottom, ceiling = max(grid), min(grid)
    strip = max(part(group, "share")["height"] for group in marks(chart))
    for group, entry in zip(marks(chart), filled, strict=True):
        bar, gap, band, share = (part(group, name) for name in ("bar", "gap", "band", "share"))
        height = bottom - ceiling
        assert bar["height"] == pytest.approx(height * entry["accuracy"], abs=0.02)
        assert bar["y"] + bar["height"] == pytest.approx(bottom, abs=0.02)
        assert gap["height"] == pytest.approx(height * abs(entry["confidence"] - entry["accuracy"]), abs=0.02)
        assert gap["y"] == pytest.approx(bottom - height * max(entry["confidence"], entry["accuracy"]), abs=0.02)
        assert band["y"] == pytest.approx(bottom - height * entry["band"][1], abs=0.02)
        assert band["height"] == pytest.approx(height * (entry["band"][1] - entry["band"][0]), abs=0.02)
        assert share["height"] == pytest.approx(max(1, strip * entry["share"] / top), abs=0.02)
        assert bar["x"] - side["x"] == pytest.approx((entry["left"] - filled[0]["left"]) * 15 * side["width"], abs=0.05)


def test_gaps_that_chance_explains_have_no_colour(model: dict[str, Any]) -> None:
    chart = fromstring(reliability_chart(model, "A", top_share=1, level=0.95))
    filled = [entry for entry in model["reliability"] if entry["count"]]
    for group, entry in zip(marks(chart), filled, strict=True):
        (gap,) = [node for node in group.iter("rect") if "gap" in (node.get("class") or "").split()]
        assert ("chance" in (gap.get("class") or "").split()) == (not entry["beyond_chance"])
    assert {entry["beyond_chance"] for entry in filled} == {True, False}


def test_its_class_says_which_way_the_gap_goes(model: dict[str, Any]) -> None:
    chart = fromstring(reliability_chart(model, "A", top_share=1, level=0.95))
    for group, entry in zip(marks(chart), [entry for entry in model["reliability"] if entry["count"]], strict=True):
        too_sure = entry["confidence"] > entry["accuracy"]
        part(group, "over" if too_sure else "under")
        assert ("overconfident" in group.get("aria-label", "")) == too_sure


def test_label_of_a_bar_has_its_numbers(model: dict[str, Any]) -> None:
    chart = fromstring(reliability_chart(model, "A", top_share=1, level=0.95))
    entry = [entry for entry in model["reliability"] if entry["count"]][-1]
    label = marks(chart)[-1].get("aria-label", "").replace("\u00a0", " ")
    for name in ("confidence", "accuracy", "share"):
        assert f"{100 * entry[name]:.1f} %" in label
    assert f"{entry['count']:,} answers" in label
    assert f"{100 * entry['band'][0]:.1f} to {100 * entry['band'][1]:.1f} %" in label
    assert [mark.get("tabindex") for mark in marks(chart)].count("0") == 1


def test_all_bins_empty_of_weight_draw_no_bar(model: dict[str, Any]) -> None:
    for entry in model["reliability"]:
        entry |= {"share": 0.0, "confidence": None, "accuracy": None, "band": None}
    assert not marks(fromstring(reliability_chart(model, "A", top_share=0.0, level=0.95)))


@pytest.mark.parametrize("worst", [0.0, 0.0004, 0.03, 0.5, 1.0])
def test_curves_fit_the_chart(worst: float) -> None:
    curve = {"coverage": [0.1, 0.5, 1.0], "risk": [0.0, worst / 2, worst], "threshold": [0.9, 0.8, 0.3]}
    chart = fromstring(coverage_chart([{"name": "a", "risk_coverage": curve}]))
    width, height = (float(size) for size in chart.get("viewBox", "").split()[2:])
    path = next(node.get("d", "") for node in chart.iter("path") if node.get("class") == "curve")
    points = [tuple(map(float, point.split())) for point in path[1:].split("L")]
    assert all(0 <= x <= width and 0 <= y <= height for x, y in points)
    ticks = [
        (float(text.text or ""), float(text.get("y", "")) - 4)
        for text in chart.iter("text")
        if text.get("text-anchor") == "end"
    ]
    (low, bottom), (high, top) = min(ticks), max(ticks)
    assert points[-1][1] == pytest.approx(bottom + (100 * worst - low) / (high - low) * (top - bottom), abs=0.1)


def test_curves_of_many_models_differ_in_more_than_colour() -> None:
    curve = {"coverage": [0.1, 0.5, 1.0], "risk": [0.0, 0.1, 0.2], "threshold": [0.9, 0.8, 0.3]}
    chart = fromstring(coverage_chart([{"name": str(index), "risk_coverage": curve} for index in range(7)]))
    signs = {node.get("d") for node in chart.iter("path") if node.get("class") == "symbol"}
    assert len(signs) == 7
    assert len({model_class(index).split()[1] for index in range(7)}) == 7
    heights = sorted(float(node.get("y", "")) for node in chart.iter("text") if node.get("class") == "end")
    assert len(heights) == 7
    assert min(b - a for a, b in pairwise(heights)) >= 15


def test_forest_row_is_to_scale_around_zero() -> None:
    chart = fromstring(forest_row(-0.1, -0.3, 0.1, reach=0.4, clear=False))
    width = float(chart.get("viewBox", "").split()[2])
    low, high = (float(number) for number in re.findall(r"M([\d.]+).*H([\d.]+)", next(chart.iter("path")).get("d", ""))[0])
    rect = next(chart.iter("rect"))
    middle = float(rect.get("x", "")) + 4
    assert (low + high) / 2 == pytest.approx(middle, abs=0.1)
    assert (width / 2 - low) / (high - width / 2) == pytest.approx(3, rel=0.01)
    assert "unclear" in chart.get("class", "")
