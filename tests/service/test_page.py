"""The page of a service in a real browser: a row typed in, a file dropped, and what it says."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.files.guaranteed import HEADER, drawn_rows, trained
from tests.files.made import write_csv
from tests.report.browser import Browser, missing
from tests.service.running import Service, serving

pytest.importorskip("fastapi")
pytestmark = [pytest.mark.serve, pytest.mark.browser, pytest.mark.skipif(missing() is not None, reason=missing() or "")]

# What a person does with the mouse and the keyboard, and the text of the answer.
_TYPE = """
const [values] = arguments;
values.forEach((value, place) => { document.getElementById(`cell-${place}`).value = value; });
document.querySelector("#row-form button").click();
"""
_DROP = """
const [name, text] = arguments;
const carried = new DataTransfer();
carried.items.add(new File([text], name, {type: "text/csv"}));
document.getElementById("drop").dispatchEvent(new DragEvent("drop", {dataTransfer: carried, bubbles: true, cancelable: true}));
"""
_LINES = """
$("answer").replaceChildren(bars([["dog", 0.99999], ["cow", 0.00001]], null));
return [...document.querySelectorAll("#answer .number")].map((each) => {
  const text = document.createRange();
  text.selectNodeContents(each);
  return new Set([...text.getClientRects()].map((part) => part.top)).size;
});
"""
_OVERFLOW = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    path = tmp_path_factory.mktemp("page") / "pets.model"
    trained().model.save(path)
    with serving(path, "--abstain-below", "0.8", "--sets", "0.9", "--token", "open-sesame") as running:
        yield running


def wait_for(browser: Browser, script: str, *arguments: Any) -> Any:
    end = time.monotonic() + 60
    while not (found := browser.script(script, *arguments)):
        assert time.monotonic() < end, browser.script("return document.body.innerText")
        time.sleep(0.1)
    return found


def answer(browser: Browser, words: str) -> str:
    """The text of the answer, once it holds these words."""
    script = "const text = document.getElementById('answer').innerText; return text.includes(arguments[0]) ? text : ''"
    return str(wait_for(browser, script, words))


@pytest.mark.parametrize("width", [360, 1280])
def test_a_person_gets_an_answer_and_sees_how_sure_it_is(service: Service, tmp_path: Path, width: int) -> None:
    with Browser() as browser:
        browser.resize(width)
        browser.post("/url", {"url": f"http://127.0.0.1:{service.port}/"})
        wait_for(browser, "return !document.getElementById('token-form').hidden")
        enter = "document.getElementById('token').value = arguments[0]; document.querySelector('#token-form button').click()"
        browser.script(enter, "guess")
        assert "needs a token" in answer(browser, "token")
        browser.script(enter, "open-sesame")
        wait_for(browser, "return !document.getElementById('ask').hidden")
        assert "pets.model" in browser.script("return document.title")
        assert browser.script("return document.getElementById('links').hidden")  # a link carries no token

        browser.script(_TYPE, ["4", "0"])
        sure = answer(browser, "sure")
        assert sure.startswith("dog\n\n9")
        assert "The set with the guaranteed coverage (in bold): dog" in sure
        browser.screenshot(tmp_path / f"sure-{width}.png")

        assert browser.script(_LINES) == [1, 1], "a percentage is parted from its sign"

        browser.script(_TYPE, ["0.6", "0.5"])
        unsure = answer(browser, "No decision")
        assert "is below 0.8, the lowest that was asked for." in unsure
        browser.screenshot(tmp_path / f"unsure-{width}.png")

        browser.script(_TYPE, [" ", ""])
        assert "an empty row says nothing" in answer(browser, "Fill in")
        browser.script(_TYPE, ["", "0.5"])
        assert "Cells are missing in column 'x'" in answer(browser, "no guarantee covers them")

        browser.script(_TYPE, ["a<b>", "1"])
        assert "Row 1, column 'x': 'a<b>' is not a number." in answer(browser, "is not a number")

        text = write_csv(tmp_path / "new.csv", drawn_rows(120, seed=4), HEADER).read_text()
        browser.script(_DROP, "new.csv", text)
        table = answer(browser, "120 rows of new.csv")
        assert "The first 50 rows." in table
        assert "without a decision" in table
        assert browser.script("return document.querySelectorAll('#answer tbody tr').length") == 50
        browser.screenshot(tmp_path / f"file-{width}.png")
        assert browser.script(_OVERFLOW) <= 0, "the page is wider than the window"

        browser.script(_DROP, "bad.csv", "x,z\n1,2\n1,two\n")
        assert "line 3, column 'z': 'two' is not a number" in answer(browser, "line 3")
        errors = [entry for entry in browser.log("browser") if "401" not in entry["message"] and "422" not in entry["message"]]
        assert not errors
