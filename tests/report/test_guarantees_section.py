"""The section on sets and certified thresholds: its numbers are those of the study, on both pages and on the terminal."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from tests.report import training_studies as trainings
from tests.report.markup import Node, parsed
from tests.report.page_checks import check_markup, checked_numbers
from tests.report.studies import HOSTILE, predictions

from calibayes.acting import CertifyRequest, CostTable, GuaranteeRequest, calibrate_guarantees
from calibayes.errors import InvalidArgumentError
from calibayes.metrics.pairs import as_pairs
from calibayes.report import Study, render_page, study
from calibayes.report.guarantees_text import guarantees_text
from calibayes.report.guarantees_view import guarantees_view
from calibayes.report.study_text import show
from calibayes.report.training_report import render_training_report

BOTH = GuaranteeRequest(0.9, certify=CertifyRequest("accuracy", 0.8))


def studied(request: GuaranteeRequest, models: int = 1, classes: int = 10, names: list[str] | None = None) -> Study:
    tables = {f"model {seed}": predictions(800, classes, 1.0, 2.0, seed)[0] for seed in range(1, models + 1)}
    targets = predictions(800, classes, 1.0, 2.0, 1)[1]
    return study(tables, targets, class_names=names, replicates=60, guarantees=request)


def section(page: Node) -> Node:
    return next(node for node in page if node.attributes.get("id") == "guarantees")


def numbers(node: Node) -> list[str]:
    return [each.attributes["data-value"] for each in node if "data-value" in each.attributes]


@pytest.mark.parametrize(
    "request_",
    [
        BOTH,
        GuaranteeRequest(sets=0.99, score="aps", by_class=True),
        GuaranteeRequest(certify=CertifyRequest("precision", 0.9)),
        GuaranteeRequest(certify=CertifyRequest("accuracy", 0.999)),
        GuaranteeRequest(
            certify=CertifyRequest("cost", 0.2), costs=CostTable(("a", "b"), tuple((float(i),) * 9 + (0.0,) for i in (1, 2)))
        ),
    ],
)
def test_the_page_has_the_numbers_of_the_study(request_: GuaranteeRequest) -> None:
    content = studied(request_).to_dict()
    page = parsed(render_page(content))
    check_markup(page)
    checked_numbers(page)
    found, own = content["models"][0]["guarantees"], section(page)
    shown = numbers(own)
    if found["sets"] is not None:
        measured = found["sets"]["measured"]
        for name in ("coverage", "mean_size", "one_class"):
            assert {repr(measured[name][end]) for end in ("value", "low", "high")} <= set(shown)
        assert found["sets"]["statement"] in own.text.replace("\u00a0", " ")
        counts = [int(row.all("td")[1].attributes["data-value"]) for row in own.one("table", "sizes").one("tbody").all("tr")]
        assert sum(counts) == 800
    if found["threshold"] is not None:
        assert repr(found["threshold"]["coverage"]["value"]) in shown
        for text in found["threshold"]["statements"]:
            assert text in own.text.replace("\u00a0", " ")
        if found["threshold"]["measure"] != "precision":
            value = found["threshold"]["value"]
            assert "no threshold" in own.text if value is None else repr(value) in shown


def test_nothing_is_shown_that_was_not_asked_for() -> None:
    content = study({"one": predictions(300, 3, 1.0, 2.0, 1)[0]}, predictions(300, 3, 1.0, 2.0, 1)[1], replicates=60).to_dict()
    assert content["models"][0]["guarantees"] is None
    page = parsed(render_page(content))
    assert not [node for node in page if node.attributes.get("id") == "guarantees"]
    del content["models"][0]["guarantees"]  # as an earlier version wrote it
    assert render_page(content)


def test_several_models_have_their_own() -> None:
    found = studied(BOTH, models=2)
    page = section(parsed(render_page(found.to_dict())))
    assert [node.text.split()[-2:] for node in page.all("h3")] == [["model", "1"], ["model", "2"]]
    values = [model.guarantees.threshold.value for model in found.models]  # type: ignore[union-attr]
    assert values[0] != values[1]
    stream = io.StringIO()
    show(found, Console(file=stream))
    told = " ".join(stream.getvalue().split())
    for model in found.models:
        assert model.guarantees is not None
        assert f"{model.name}: {' '.join(guarantees_text(model.guarantees, found.class_names).split())}" in told


def test_the_terminal_says_coverage_sizes_and_statements() -> None:
    (model,) = studied(BOTH).models
    assert model.guarantees is not None
    measured = model.guarantees.measured
    assert measured is not None
    text = guarantees_text(model.guarantees)
    assert f"the true class is in {100 * measured.coverage:.1f} % of 800 sets" in text
    assert f"{measured.mean_size:.2f} classes on average" in text
    assert "Each row is measured with a threshold from the other half." in text
    assert "asked accuracy of 80 %" in text


def test_names_of_classes_cannot_break_the_page() -> None:
    content = studied(GuaranteeRequest(0.9, certify=CertifyRequest("precision", 0.8)), names=list(HOSTILE)).to_dict()
    page = parsed(render_page(content))
    check_markup(page)
    promises = section(page).one("ul", "promises").all("li")
    assert len(promises) == 1 + 10  # that all hold together, and each class
    assert len(page.all("script")) == len(parsed(render_page(studied(BOTH).to_dict())).all("script"))


def test_the_report_on_a_training_has_the_section_of_its_rows_set_aside() -> None:
    probs, targets = predictions(300, 5, 1.0, 1.5, 8)
    found = calibrate_guarantees(BOTH, probs, targets)
    page = parsed(render_training_report(replace(trainings.five(), guarantees=found)))
    check_markup(page)
    checked_numbers(page)
    assert found.measured is not None
    assert repr(found.measured.coverage) in numbers(section(page))
    assert "300" in numbers(section(page))
    assert "These were set aside" in section(page).text
    assert not [node for node in parsed(render_training_report(trainings.five())) if node.attributes.get("id") == "guarantees"]


def test_large_sets_are_counted_together() -> None:
    counts = [0, 5, 0, *[1] * 17]
    content: dict[str, Any] = {"sets": {"measured": {"size_counts": counts}}, "threshold": None}
    shown = guarantees_view(content)
    assert shown is not None
    rows = shown["size_rows"]
    assert [row["size"] for row in rows] == [*map(str, range(1, 11)), "more than 10"]
    assert sum(row["count"] for row in rows) == sum(counts)
    assert sum(row["share"] for row in rows) == pytest.approx(1)


def test_weights_and_pairs() -> None:
    probs, targets = predictions(100, 3, 1.0, 2.0, 1)
    with pytest.raises(InvalidArgumentError, match="all count the same"):
        study({"one": probs}, targets, weights=np.ones(100), replicates=60, guarantees=BOTH)
    pairs = as_pairs(probs.max(1), probs.argmax(1) == targets)
    only = GuaranteeRequest(certify=CertifyRequest("accuracy", 0.8))
    (model,) = study({"one": pairs}, replicates=60, guarantees=only).models
    (whole,) = study({"one": probs}, targets, replicates=60, guarantees=only).models
    assert model.guarantees is not None
    assert whole.guarantees is not None
    assert model.guarantees.threshold == whole.guarantees.threshold
    with pytest.raises(InvalidArgumentError, match="Leave --sets out"):
        study({"one": pairs}, replicates=60, guarantees=BOTH)
