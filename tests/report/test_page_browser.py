"""The page in a real browser: seeing, pointing, pressing, printing and saving."""

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
from tests.report.browser import Browser

pytestmark = pytest.mark.browser

Write = Callable[[dict[str, Any]], Path]
ESCAPE, TAB, RIGHT, HOME, END, ENTER = "\ue00c", "\ue004", "\ue014", "\ue011", "\ue010", "\ue007"
CASES = [studies.two, studies.hostile, studies.odd]

# Contrast of every visible text against its background, as defined by WCAG.
CONTRASTS = """
const parse = (text) => { const p = text.match(/[\\d.]+/g).map(Number); return p.length < 4 ? [...p, 1] : p; };
const over = (top, under) => top.slice(0, 3).map((c, i) => c * top[3] + under[i] * (1 - top[3]));
const light = (c) => { const [r, g, b] = c.map(v => v / 255).map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
                       return .2126 * r + .7152 * g + .0722 * b; };
const ground = (e) => { const stack = []; for (; e; e = e.parentElement) stack.push(parse(getComputedStyle(e).backgroundColor));
                        return stack.reverse().reduce((under, top) => over(top, under), [255, 255, 255]); };
const ratios = {};
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const e = walker.currentNode.parentElement;
  if (!walker.currentNode.data.trim() || !e.checkVisibility() || e.closest("script,style,title,desc")) continue;
  const style = getComputedStyle(e), svg = e.namespaceURI.endsWith("svg");
  const behind = ground(svg ? e.closest("svg").parentElement : e);
  const ink = over(parse(svg ? style.fill : style.color), behind);
  const [a, b] = [light(ink), light(behind)];
  const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
  const key = `${e.tagName}.${e.getAttribute("class") || ""}`;
  ratios[key] = Math.min(ratios[key] || 99, ratio);
}
return ratios;
"""


def problems(browser: Browser) -> list[str]:
    return [entry["message"] for entry in browser.log("browser") if entry["level"] in ("WARNING", "SEVERE")]


@pytest.mark.parametrize("case", CASES)
def test_quiet_console_and_no_request_but_the_file(
    browser: Browser, written: Write, case: Callable[[], dict[str, Any]]
) -> None:
    path = written(case())
    browser.open(path)
    assert problems(browser) == []
    messages = [json.loads(entry["message"])["message"] for entry in browser.log("performance")]
    asked = [message["params"]["request"]["url"] for message in messages if message["method"] == "Network.requestWillBeSent"]
    assert path.absolute().as_uri() in asked
    assert [address for address in asked if address != path.absolute().as_uri() and not address.startswith("data:")] == []
    assert browser.script("return performance.getEntriesByType('resource').length") == 0


def test_numbers_in_the_page_are_those_of_the_json(browser: Browser, written: Write) -> None:
    study = studies.two()
    browser.open(written(study))
    assert browser.script("return JSON.parse(document.getElementById('study').textContent)") == study
    cells = browser.script(
        "const numbers = (cell) => [...cell.querySelectorAll('[data-value]')].map(e => JSON.parse(e.dataset.value));"
        "const rows = [...document.querySelectorAll('.scores tbody tr')];"
        "return rows.map(row => [row.dataset.metric, [...row.cells].slice(1).map(numbers)]);"
    )
    for name, rows in cells:
        for model, numbers in zip(study["models"], rows, strict=True):
            score = model["scores"][name]
            assert numbers == [value for value in (score["value"], score["low"], score["high"]) if value is not None]
    assert len(cells) == len(study["metrics"])


def tip(browser: Browser) -> str | None:
    shown: str | None = browser.script("const tip = document.getElementById('tip'); return tip.hidden ? null : tip.innerText")
    return None if shown is None else shown.replace("\u00a0", " ")


def lines(entry: dict[str, Any]) -> list[str]:
    """The expected text about a bin, written independently of the page."""
    return [
        f"{100 * entry['left']:.1f} to {100 * entry['right']:.1f} %",
        f"{entry['count']:,} answers",
        f"confidence {100 * entry['confidence']:.1f} %",
        f"right {100 * entry['accuracy']:.1f} %",
        f"{abs(100 * (entry['confidence'] - entry['accuracy'])):.1f} points",
        f"{100 * entry['band'][0]:.1f} to {100 * entry['band'][1]:.1f} %",
    ]


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("how", ["hover", "tap"])
def test_pointing_at_a_bar_shows_its_numbers(browser: Browser, written: Write, how: str, width: int) -> None:
    study = studies.two()
    browser.resize(width)
    browser.open(written(study))
    filled = [entry for entry in study["models"][0]["reliability"] if entry["count"]]
    assert tip(browser) is None
    for place in (len(filled), 3):
        selector = f".diagrams figure:first-child .mark:nth-of-type({place + 1})"  # the axes are the first group
        if how == "tap":
            browser.point(selector, press=True, kind="touch")
        else:
            browser.point(selector)
        shown = tip(browser)
        assert shown is not None
        assert all(line in shown for line in lines(filled[place - 1]))
        box = browser.script("return document.getElementById('tip').getBoundingClientRect()")
        assert box["left"] >= 0 and box["right"] <= width and box["top"] >= 0  # noqa: PT018
    browser.keys(ESCAPE)
    assert tip(browser) is None


def test_keyboard_reaches_every_bar(browser: Browser, written: Write) -> None:
    study = studies.two()
    browser.open(written(study))
    filled = [entry for entry in study["models"][0]["reliability"] if entry["count"]]
    browser.script("document.querySelector('#metrics details:last-of-type summary').focus()")
    for _ in range(200):
        browser.keys(TAB)
        if tip(browser):
            break
    for index, entry in enumerate(filled):
        shown = tip(browser)
        assert shown is not None
        assert all(line in shown for line in lines(entry) if entry["count"] > 1), index
        browser.keys(RIGHT)
    assert all(line in (tip(browser) or "") for line in lines(filled[-1]))
    browser.keys(HOME)
    assert all(line in (tip(browser) or "") for line in lines(filled[0]) if filled[0]["count"] > 1)
    outline = (
        "const style = getComputedStyle(document.activeElement.querySelector('.hit')); return style.strokeWidth + style.stroke"
    )
    assert browser.script(outline).startswith("3px")
    browser.keys(ESCAPE)
    assert tip(browser) is None
    browser.keys(TAB)  # one tab leaves the chart
    assert not browser.script("return document.activeElement.closest('.reliability')")


def test_names_are_text(browser: Browser, written: Write) -> None:
    study = studies.hostile()
    browser.open(written(study))
    assert (
        browser.script("return document.querySelectorAll('img, iframe, object, [onerror], [onload], [onmouseover]').length")
        == 0
    )
    assert browser.script("return document.scripts.length") == 2
    with pytest.raises(RuntimeError, match="no such alert"):
        browser.post("/alert/accept", {})
    names = browser.script("return [...document.querySelectorAll('.classes tbody th')].map(e => e.textContent)")
    assert sorted(names) == sorted(studies.HOSTILE)
    heads = browser.script("return [...document.querySelectorAll('.card h3 bdi')].map(e => e.textContent)")
    assert heads == [model["name"] for model in study["models"]]
    assert problems(browser) == []


@pytest.mark.parametrize("width", [360, 768, 1280])
@pytest.mark.parametrize("case", [*CASES, studies.large])
def test_no_sideways_scrolling(browser: Browser, written: Write, case: Callable[[], dict[str, Any]], width: int) -> None:
    browser.resize(width)
    browser.open(written(case()))
    browser.script("document.querySelectorAll('details').forEach(e => e.open = true)")
    assert browser.script("return document.documentElement.scrollWidth") == width
    # Anything wider than the window is inside a box that scrolls.
    loose = browser.script(
        "const free = (e) => e.checkVisibility() && !e.closest('.scroll, .unseen, svg, .skip');"
        "const out = (e) => e.getBoundingClientRect().right > innerWidth + 1;"
        "return [...document.querySelectorAll('body *')].filter(e => free(e) && out(e)).map(e => e.outerHTML.slice(0, 80))"
    )
    assert loose == []


@pytest.mark.parametrize("case", CASES)
def test_contrast_in_both_themes(browser: Browser, written: Write, case: Callable[[], dict[str, Any]]) -> None:
    path = written(case())
    grounds = []
    for theme in ("light", "dark"):
        browser.media(prefers_color_scheme=theme)
        browser.open(path)
        browser.script("document.querySelectorAll('details').forEach(e => e.open = true)")
        ratios = browser.script(CONTRASTS)
        assert len(ratios) > 25
        assert {name: ratio for name, ratio in ratios.items() if ratio < 4.5} == {}
        grounds.append(browser.script("return getComputedStyle(document.body).backgroundColor"))
    assert grounds[0] != grounds[1]


def test_toggle_by_keyboard(browser: Browser, written: Write) -> None:
    browser.open(written(studies.two()))
    ground = "return getComputedStyle(document.body).backgroundColor"
    light = browser.script(ground)
    browser.script("document.getElementById('theme').focus()")
    browser.keys(ENTER)
    assert browser.script("return document.getElementById('theme').getAttribute('aria-pressed')") == "true"
    dark = browser.script(ground)
    assert dark != light
    assert {name: ratio for name, ratio in browser.script(CONTRASTS).items() if ratio < 4.5} == {}
    browser.keys(" ")
    assert browser.script(ground) == light
    browser.media(prefers_color_scheme="dark")  # the reader's choice stays
    assert browser.script(ground) == light


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


def test_a_table_that_is_wider_than_the_page_says_so(browser: Browser, written: Write) -> None:
    browser.open(written(studies.two()))
    wide = (
        "return [...document.querySelectorAll('.scroll')].filter(e => e.checkVisibility()).map(e => "
        "[e.scrollWidth > e.clientWidth + 1, e.previousElementSibling.checkVisibility()])"
    )
    for width in (1280, 420):
        browser.resize(width)
        found = browser.script(wide)
        assert all(wider == said for wider, said in found)
        assert any(wider for wider, _ in found) == (width == 420)
