"""The page in a real browser: seeing, pointing and pressing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.report import studies
from tests.report.browser import ENTER, ESCAPE, HOME, RIGHT, TAB, Browser

pytestmark = pytest.mark.browser

Write = Callable[[dict[str, Any]], Path]
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
