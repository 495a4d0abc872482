"""The page's tables come from records, and the text around them stays."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.reproduction.shift.made_up_shift import made_up_parts

from calibayes.errors import InvalidArgumentError
from calibayes.methods import METHODS, method_named
from reproduction.shift import fill_page
from reproduction.shift.fill_page import SKELETON, filled, markdown_table
from reproduction.shift.shift_experiments import METHODS_UNDER_SHIFT, SHIFTS


def test_a_table_has_a_row_for_each_method_and_way() -> None:
    lines = markdown_table(made_up_parts("shift-digits"), "nll").splitlines()
    assert lines[0] == "| method | 0 | 1 | 2 | 3 | 4 | 5 | against FNN + T |"
    assert len(lines) == 2 + 2 * len(METHODS_UNDER_SHIFT)
    assert {line.count("|") for line in lines} == {9}
    people = markdown_table(made_up_parts("shift-cifar10"), "people").splitlines()
    assert "\\|confidence − agreement\\|" in people[0]


def test_only_what_stands_between_marks_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = "Before.\n\n<!-- table: shift-digits nll -->\nold\n<!-- end of table -->\n\nAfter."
    empty = filled(page, tmp_path)
    assert "old" not in empty
    assert "No results yet." in empty
    (tmp_path / "shift").mkdir()
    monkeypatch.setattr(fill_page, "recorded", lambda asked, folder: made_up_parts(asked.name))
    full = filled(empty, tmp_path)
    assert full.startswith("Before.\n\n<!-- table: shift-digits nll -->\n\n| method |")
    assert full.endswith("|\n\n<!-- end of table -->\n\nAfter.")
    assert filled(full, tmp_path) == full
    with pytest.raises(InvalidArgumentError, match=r"but got 'nlll'\. Did you mean 'nll'"):
        filled(page.replace(" nll ", " nlll "), tmp_path)


def test_the_skeleton_has_every_experiment(tmp_path: Path) -> None:
    page = SKELETON.read_text(encoding="utf-8")
    for name in SHIFTS:
        assert f"<!-- table: {name} nll -->" in page
        assert f"results/reproduction/{name}/severity.png" in page
    assert filled(page, tmp_path).count("No results yet.") == page.count("<!-- table:")


def test_the_page_says_how_many_methods_there_are_and_none_of_networks_is_missing() -> None:
    assert set(METHODS_UNDER_SHIFT) == {name for name in METHODS if method_named(name).plan is not None}
    assert len(METHODS_UNDER_SHIFT) == 14
    for page in (SKELETON, Path(__file__).parents[3] / "docs" / "explanation" / "shift.md"):
        words = " ".join(page.read_text(encoding="utf-8").split())
        assert "for all fourteen methods of calibayes that train networks" in words
