"""The page in a real browser: sorting, printing, saving, and all numbers without JavaScript."""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.report import studies
from tests.report.browser import ENTER, Browser

pytestmark = pytest.mark.browser

Write = Callable[[dict[str, Any]], Path]


def test_classes_sort_and_unfold(browser: Browser, written: Write) -> None:
    study = studies.odd()
    study["models"][0]["per_class"][7]["ece"] = None
    browser.open(written(study))
    visible = (
        "return [...document.querySelectorAll('.classes tbody tr')].filter(e => !e.hidden).map(e => e.cells[0].textContent)"
    )
    by_error = sorted(
        study["models"][0]["per_class"], key=lambda entry: -1 if entry["ece"] is None else entry["ece"], reverse=True
    )
    assert browser.script(visible) == [entry["name"] for entry in by_error[:30]]
    assert browser.script("return document.querySelector('th[data-column=\"3\"]').getAttribute('aria-sort')") == "descending"
    browser.script("document.querySelector('th[data-column=\"1\"] button').focus()")
    browser.keys(ENTER)
    shares = sorted((entry["share"] for entry in study["models"][0]["per_class"]), reverse=True)
    column = (
        "return [...document.querySelectorAll('.classes tbody tr')].filter(e => !e.hidden).map(e => +e.cells[1].dataset.value)"
    )
    assert browser.script(column) == shares[:30]
    browser.keys(ENTER)
    assert browser.script(column) == shares[::-1][:30]
    sorts = browser.script("return [...document.querySelectorAll('th[data-column]')].map(e => e.getAttribute('aria-sort'))")
    assert sorts == ["none", "ascending", "none", "none"]
    browser.point(".more", press=True)
    assert browser.script(column) == shares[::-1]
    browser.point('th[data-column="0"] button', press=True)
    assert browser.script(visible) == [f"class {index}" for index in range(64)]
    browser.point('th[data-column="3"] button', press=True)
    browser.point('th[data-column="3"] button', press=True)
    assert browser.script(visible)[-1] == "class 7"  # unknown is last, whichever way


def test_without_javascript_all_numbers_are_there(browser: Browser, written: Write) -> None:
    study = studies.odd()
    browser.devtools("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(written(study))
        text = browser.script("return document.querySelector('.classes').innerText")
        assert all(entry["name"] in text for entry in study["models"][0]["per_class"])
        scores = browser.script("return document.querySelector('.scores').innerText")
        assert f"{study['models'][0]['scores']['ece']['value']:.3f}" in scores
        assert "∞" in scores
        hidden = browser.script("return [...document.querySelectorAll('#theme, #download')].map(e => e.checkVisibility())")
        assert hidden == [False, False]
        assert browser.script("return document.querySelectorAll('.classes button').length") == 0
    finally:
        browser.devtools("Emulation.setScriptExecutionDisabled", value=False)


def test_print(browser: Browser, written: Write) -> None:
    browser.media("print", prefers_color_scheme="dark")
    browser.resize(718)
    browser.open(written(studies.two()))
    state = browser.script(
        "const seen = (s) => [...document.querySelectorAll(s)].map(e => e.checkVisibility({contentVisibilityAuto: true}));"
        "return {tools: seen('#theme, #download, nav, .skip'), about: seen('.about p'), bins: seen('.bins'),"
        " paper: getComputedStyle(document.body).backgroundColor, ink: getComputedStyle(document.body).color,"
        " breaks: [...document.querySelectorAll('section')].map(e => getComputedStyle(e).breakBefore),"
        " width: document.documentElement.scrollWidth}"
    )
    assert not any(state["tools"])
    assert state["about"] and all(state["about"])  # noqa: PT018
    assert state["bins"] and all(state["bins"])  # noqa: PT018
    assert state["paper"] == "rgb(255, 255, 255)"
    assert sum(map(int, state["ink"][4:-1].split(","))) < 200
    assert state["breaks"] == ["auto"] + ["page"] * 6
    assert state["width"] == 718
    browser.media()
    pdf = base64.b64decode(browser.devtools("Page.printToPDF")["data"])
    assert 7 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 12
    assert len(pdf) < 3_000_000


def test_download_is_the_json(browser: Browser, written: Write, tmp_path: Path) -> None:
    study = studies.hostile()
    browser.open(written(study))
    browser.devtools("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path / "saved"))
    browser.point("#download", press=True)
    saved = tmp_path / "saved" / "study.json"
    for _ in range(100):
        if saved.exists():
            break
        time.sleep(0.1)
    assert json.loads(saved.read_text(encoding="utf-8")) == study
