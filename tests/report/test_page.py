"""The text of the page: its numbers are the study's, its markup is sound, and no name breaks out of it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.report import studies
from tests.report.markup import parsed
from tests.report.page_checks import check_markup, checked_numbers

import calibayes.report
from calibayes.errors import InvalidArgumentError
from calibayes.report.page import render_page, write_page

Study = dict[str, Any]
CASES = [studies.two, studies.hostile, studies.odd]


def texts(*numbers: Any) -> list[str]:
    """Numbers in the format of the page's attributes."""
    return ["null" if value is None else value if isinstance(value, str) else repr(value) for value in numbers]


def three(cell: dict[str, Any]) -> list[str]:
    ends = [] if cell["low"] is None and cell["high"] is None else [cell["low"], cell["high"]]
    return texts(cell["value"], *ends)


@pytest.mark.parametrize("case", CASES)
def test_every_number_stands_where_it_belongs(case: Callable[[], Study]) -> None:
    study = case()
    page = parsed(render_page(study))
    models = study["models"]
    rows = page.one("table", "scores").one("tbody").all("tr")
    assert [row.attributes["data-metric"] for row in rows] == [metric["name"] for metric in study["metrics"]]
    for row, metric in zip(rows, study["metrics"], strict=True):
        assert metric["title"] in row.text
        assert metric["about"] in row.text
        assert [cell.numbers() for cell in row.all("td")] == [three(model["scores"][metric["name"]]) for model in models]
    for model, table in zip(models, page.all("table", "bins"), strict=True):
        for row, entry in zip(table.one("tbody").all("tr"), model["reliability"], strict=True):
            names = ("left", "right", "count", "share", "confidence", "accuracy")
            assert row.numbers() == texts(*(entry[name] for name in names), *(entry["band"] or ()))
    for pair, table in zip(study["differences"], page.all("table", "differences"), strict=True):
        numbers = {row.attributes["data-metric"]: row.numbers() for row in table.one("tbody").all("tr")}
        assert numbers == {name: texts(*map(value.get, ("value", "low", "high"))) for name, value in pair["metrics"].items()}
    classes = {row.one("th").text: row.numbers() for row in page.one("table", "classes").one("tbody").all("tr")}
    for entries in zip(*(model["per_class"] for model in models), strict=True):
        pairs = [value for entry in entries for value in (entry["probability"], entry["ece"])]
        assert classes.pop(entries[0]["name"]) == texts(entries[0]["share"], *pairs)
    assert not classes
    for row in page.one("table", "coverages").one("tbody").all("tr"):
        wanted = float(re.findall(r"\d+", row.one("th").text)[0]) / 100
        for cell, model in zip(row.all("td"), models, strict=True):
            curve = model["risk_coverage"]
            place = min(range(len(curve["coverage"])), key=lambda index: abs(curve["coverage"][index] - wanted))
            assert cell.numbers() == texts(curve["risk"][place], curve["threshold"][place])


@pytest.mark.parametrize("case", CASES)
def test_shown_numbers_are_the_exact_ones_rounded(case: Callable[[], Study]) -> None:
    assert checked_numbers(parsed(render_page(case()))) > 300


@pytest.mark.parametrize("case", CASES)
def test_the_json_inside_is_the_study(case: Callable[[], Study]) -> None:
    study = case()
    page = render_page(study)
    block = parsed(page).one("script", id="study").text
    assert json.loads(block) == study
    assert not re.search("[<>&\u2028\u2029]", block)


@pytest.mark.parametrize("case", [*CASES, pytest.param(studies.large, marks=pytest.mark.slow)])
def test_markup_is_sound(case: Callable[[], Study]) -> None:
    check_markup(parsed(render_page(case())))


def test_no_name_breaks_out() -> None:
    study = studies.hostile()
    page = parsed(render_page(study))
    assert not page.all("img")
    assert len(page.all("script")) == 2
    assert len(page.all("style")) == 1
    assert all(model["name"] in page.one("section", id="verdict").text for model in study["models"])
    shown = [row.one("th").text for row in page.one("table", "classes").one("tbody").all("tr")]
    assert sorted(shown) == sorted(studies.HOSTILE)
    assert "49" not in "".join(shown)
    assert study["command"] in page.one("section", id="settings").text


def test_policy_allows_this_style_and_this_script_alone() -> None:
    page = parsed(render_page(studies.two()))
    policy = next(node.attributes["content"] for node in page.all("meta") if "http-equiv" in node.attributes)
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    for rule, text in (("style-src", page.one("style").text), ("script-src", page.all("script")[-1].text)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert rules[rule] == f"'sha256-{digest}'"


@pytest.mark.parametrize("case", CASES)
def test_nothing_points_out_of_the_page(case: Callable[[], Study]) -> None:
    html = render_page(case())
    assert not re.search(r"https?://|url\((?!#)|@import", html)


@pytest.mark.parametrize(("case", "some"), [(studies.hostile, False), (studies.two, True)])
def test_best_is_marked_only_where_every_difference_is_clear(case: Callable[[], Study], some: bool) -> None:
    study = case()
    marks = 0
    for row in parsed(render_page(study)).one("table", "scores").one("tbody").all("tr"):
        metric = next(metric for metric in study["metrics"] if metric["name"] == row.attributes["data-metric"])
        for model, cell in zip(study["models"], row.all("td"), strict=True):
            against = [pair for pair in study["differences"] if model["name"] in (pair["first"], pair["second"])]
            assert ("best" in cell.classes) == all(beats(model["name"], pair, metric) for pair in against)
            marks += "best" in cell.classes
    assert marks or not some


def beats(name: str, pair: dict[str, Any], metric: dict[str, Any]) -> bool:
    difference = pair["metrics"].get(metric["name"])
    if difference is None or metric["better"] is None:
        return False
    higher: bool = difference["low"] > 0 if name == pair["first"] else difference["high"] < 0
    lower: bool = difference["high"] < 0 if name == pair["first"] else difference["low"] > 0
    return higher if metric["better"] == "higher" else lower


def test_no_mark_without_a_clear_difference() -> None:
    study = studies.two()
    assert parsed(render_page(study)).all("td", "best")
    for difference in study["differences"][0]["metrics"].values():
        difference["low"], difference["high"] = -abs(difference["value"]), abs(difference["value"]) * 2
    page = parsed(render_page(study))
    assert not page.all("td", "best")
    assert {cell.text for cell in page.all("td", "reading")} == {"no clear difference"}


def test_interval_on_the_other_side_of_zero_says_nothing() -> None:
    study = studies.two()
    for difference in study["differences"][0]["metrics"].values():
        difference |= {"value": 0.1, "low": -0.3, "high": -0.2}
    page = parsed(render_page(study))
    assert not page.all("td", "best")
    assert {cell.text for cell in page.all("td", "reading")} == {"no clear difference"}


def test_equal_models_do_not_differ() -> None:
    probs, targets = studies.predictions(400, 5, 1.3, 2.0, 1)
    page = parsed(render_page(calibayes.report.study({"a": probs, "b": probs.copy()}, targets, replicates=50).to_dict()))
    assert {cell.text for cell in page.all("td", "reading")} == {"no clear difference"}
    shown = {node.text for node in page.one("table", "differences") if "data-value" in node.attributes}
    assert {text.strip("0.") for text in shown} == {""}
    assert not page.all("svg", "forest")


def test_number_outside_its_interval_is_explained() -> None:
    study = studies.two()
    for model in study["models"]:
        for score in model["scores"].values():
            score["low"] = score["high"] = score["value"]
    assert "lies outside" not in render_page(study)
    study["models"][1]["scores"]["ece"]["high"] /= 2
    assert "lies outside" in render_page(study)


def test_one_model_has_no_differences() -> None:
    page = parsed(render_page(studies.odd()))
    assert not page.all("table", "differences")
    assert "differences" not in [node.attributes.get("id") for node in page]
    assert "best" not in page.one("section", id="metrics").text


def test_worst_classes_come_first_and_unknown_ones_last() -> None:
    study = studies.odd()
    study["models"][0]["per_class"][7]["ece"] = None
    rows = parsed(render_page(study)).one("table", "classes").one("tbody").all("tr")
    errors = [row.numbers()[-1] for row in rows]
    assert errors[-1] == "null"
    known = [float(error) for error in errors[:-1]]
    assert known == sorted(known, reverse=True)


def test_size_and_repeatability() -> None:
    study = studies.large()
    page = render_page(study)
    assert len(page.encode()) < 2_000_000
    assert page == render_page(study)


def test_numbers_that_json_cannot_hold_are_rejected() -> None:
    study = studies.two()
    study["models"][0]["temperature"]["value"] = float("nan")
    with pytest.raises(InvalidArgumentError, match="Infinity"):
        render_page(study)


def test_written_file_is_the_page(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")
    write_page(studies.hostile(), path)
    assert path.read_bytes().decode() == render_page(studies.hostile())
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.parametrize("name", ["no/such/folder/report.html", "folder", "nul\0.html", "x" * 300])
def test_place_that_cannot_be_written_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(InvalidArgumentError, match=re.escape(repr(str(tmp_path / name))[1:-1])):
        write_page(studies.two(), tmp_path / name)
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder"]


def test_failure_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")

    def full(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(InvalidArgumentError, match="no space left"):
        write_page(studies.two(), path)
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]
