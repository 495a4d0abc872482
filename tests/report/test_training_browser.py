"""The report on a training in a real browser: on a phone, in both themes, sorted, and with hostile names."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.report import training_studies as trainings
from tests.report.browser import Browser
from tests.report.studies import HOSTILE
from tests.report.test_page_browser import CONTRASTS, problems

from calibayes.report import TrainingStudy, training_report

pytestmark = pytest.mark.browser

Case = Callable[[], TrainingStudy]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    written = {case.__name__: folder / f"{case.__name__}.html" for case in trainings.ALL}
    for case in trainings.ALL:
        training_report(written[case.__name__], case())
    return written


@pytest.mark.parametrize("case", trainings.ALL)
def test_quiet_console_and_no_request_but_the_file(browser: Browser, pages: dict[str, Path], case: Case) -> None:
    path = pages[case.__name__]
    browser.open(path)
    assert problems(browser) == []
    messages = [json.loads(entry["message"])["message"] for entry in browser.log("performance")]
    asked = [message["params"]["request"]["url"] for message in messages if message["method"] == "Network.requestWillBeSent"]
    assert path.absolute().as_uri() in asked
    assert [address for address in asked if address != path.absolute().as_uri() and not address.startswith("data:")] == []


@pytest.mark.parametrize("width", [360, 390, 768, 1280])
@pytest.mark.parametrize("case", trainings.ALL)
def test_no_sideways_scrolling_and_wide_tables_say_that_they_scroll(
    browser: Browser, pages: dict[str, Path], case: Case, width: int
) -> None:
    browser.resize(width)
    browser.open(pages[case.__name__])
    browser.script("document.querySelectorAll('details').forEach(e => e.open = true)")
    browser.script("dispatchEvent(new Event('resize'))")
    assert browser.script("return document.documentElement.scrollWidth") == width
    boxes = browser.script(
        "return [...document.querySelectorAll('.scroll')].map(e => [e.scrollWidth > e.clientWidth + 1,"
        " e.nextElementSibling.className === 'scroll-hint' && e.nextElementSibling.checkVisibility()])"
    )
    assert boxes
    assert all(wide == told for wide, told in boxes)
    if case is trainings.many and width < 400:
        assert any(wide for wide, _ in boxes)


@pytest.mark.parametrize("name", ["rates", "importances"])
def test_the_tables_of_few_classes_fit_a_phone(browser: Browser, pages: dict[str, Path], name: str) -> None:
    browser.resize(390)
    browser.open(pages["two"])
    box = browser.script(f"const e = document.querySelector('.{name}').parentElement; return [e.scrollWidth, e.clientWidth]")
    assert box[0] <= box[1] + 1


@pytest.mark.parametrize("case", [trainings.five, trainings.many, trainings.hostile])
def test_contrast_in_both_themes(browser: Browser, pages: dict[str, Path], case: Case) -> None:
    for theme in ("light", "dark"):
        browser.media(prefers_color_scheme=theme)
        browser.open(pages[case.__name__])
        browser.script("document.querySelectorAll('details').forEach(e => e.open = true)")
        ratios = browser.script(CONTRASTS)
        assert len(ratios) > 25
        assert {name: ratio for name, ratio in ratios.items() if ratio < 4.5} == {}


def test_cells_of_the_matrix_are_coloured_by_their_share(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["five"])
    colours = browser.script(
        "return [...document.querySelectorAll('.matrix tbody tr')].map(row => [...row.cells].slice(1, -1).map(cell =>"
        " [Number(cell.querySelector('.of-row').dataset.value), getComputedStyle(cell).backgroundColor]))"
    )
    cells = sorted((share, colour) for row in colours for share, colour in row)
    alphas = [float(colour.rstrip(")").split(",")[3]) if colour.startswith("rgba") else 1.0 for _, colour in cells]
    assert alphas == sorted(alphas)
    assert alphas[0] < 0.2 < alphas[-1] < 0.5


def test_classes_can_be_sorted_by_a_rate(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["huge"])
    shown = (
        "return [...document.querySelectorAll('.rates tbody tr')].filter(e => e.checkVisibility())"
        ".map(e => Number(e.cells[{column}].querySelector('[data-value]').dataset.value))"
    )
    first = browser.script(shown.replace("{column}", "4"))
    assert len(first) == 30
    assert first == sorted(first)
    browser.point('.rates th[data-column="3"] button', press=True)
    recalls = browser.script(shown.replace("{column}", "3"))
    assert recalls == sorted(recalls, reverse=True)
    browser.point(".more", press=True)
    assert len(browser.script(shown.replace("{column}", "3"))) == 120


def test_names_are_text(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["hostile"])
    odd = "return document.querySelectorAll('img, iframe, object, [onerror], [onload], [onmouseover]').length"
    assert browser.script(odd) == 0
    assert browser.script("return document.scripts.length") == 2
    names = browser.script("return [...document.querySelectorAll('.importances tbody th')].map(e => e.textContent)")
    assert names == list(HOSTILE)
    assert problems(browser) == []
