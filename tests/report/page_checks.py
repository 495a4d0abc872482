"""Checks that every page must pass: sound markup, and numbers that are the exact ones, rounded."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from tests.report.markup import Node

__all__ = ["check_markup", "checked_numbers"]


def checked_numbers(page: Node) -> int:
    """Compare every number shown with the exact one beside it, and return how many there were."""
    checked = 0
    for node in page:
        exact = node.attributes.get("data-value")
        if exact is None:
            continue
        shown = node.text.strip().replace("−", "-").replace(",", "")
        if exact in ("null", "Infinity"):
            assert shown == {"null": "–", "Infinity": "∞"}[exact]
            continue
        scientific = re.fullmatch(r"(-?[\d.]+)·10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)", shown.lstrip("+"))
        if scientific:
            exponent = scientific[2].translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789"))
            assert float(f"{scientific[1]}e{exponent}") == pytest.approx(float(exact), rel=0.05)
            continue
        number = shown.rstrip("%\u00a0")
        step = 10.0 ** -len(number.partition(".")[2])
        # In columns of per cent, only the heading has the sign.
        factors = (100,) if shown.endswith("%") else (1, 100)
        assert min(abs(float(number) - factor * float(exact)) for factor in factors) <= 0.5001 * step, (shown, exact)
        checked += 1
    return checked


def check_markup(page: Node) -> None:
    """Ids are unique, references lead somewhere, and tables, headings and charts can be read aloud."""
    ids = [node.attributes["id"] for node in page if "id" in node.attributes]
    assert len(ids) == len(set(ids))
    for node in page:
        for name in ("aria-labelledby", "aria-describedby", "for"):
            assert set(node.attributes.get(name, "").split()) <= set(ids)
        target = node.attributes.get("href", "")
        assert target == "data:," or target[1:] in ids if target else True
        assert not any(name.startswith("on") or name in ("src", "style") for name in node.attributes)
    assert len(page.all("h1")) == len(page.all("main")) == len(page.all("nav")) == 1
    levels = [int(node.tag[1]) for node in page if re.fullmatch("h[1-6]", node.tag)]
    assert all(after - before <= 1 for before, after in pairwise(levels))
    for table in page.all("table"):
        assert table.one("caption").text.strip()
        assert all(head.attributes.get("scope") in ("row", "col", "colgroup") for head in table.all("th"))
    for chart in page.all("svg"):
        assert chart.attributes.get("aria-hidden") == "true" or (chart.all("title") and chart.all("desc"))
