"""The report on a training: its numbers are those of scikit-learn and of its input, and it says what was done."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree.ElementTree import fromstring

import numpy as np
import pytest
from sklearn import metrics as sk
from tests.report import training_studies as trainings
from tests.report.markup import Node, parsed
from tests.report.page_checks import check_markup, checked_numbers
from tests.report.studies import HOSTILE

from calibayes.errors import InvalidArgumentError
from calibayes.metrics import evaluate
from calibayes.report import TrainingStudy, training_report
from calibayes.report.charts_importance import importance_bar, importance_scale
from calibayes.report.training_report import render_training_report

Case = Callable[[], TrainingStudy]
PAGES: dict[str, Node] = {}


def page_of(case: Case) -> Node:
    """The page of a case, made once."""
    if case.__name__ not in PAGES:
        PAGES[case.__name__] = parsed(render_training_report(case()))
    return PAGES[case.__name__]


def rows_of(table: Node) -> list[Node]:
    return table.one("tbody").all("tr")


@pytest.mark.parametrize("case", trainings.ALL)
def test_markup_is_sound_and_numbers_are_rounded_from_exact_ones(case: Case) -> None:
    page = page_of(case)
    check_markup(page)
    assert checked_numbers(page) > 100


@pytest.mark.parametrize("case", [trainings.two, trainings.five, trainings.many, trainings.huge])
def test_rates_of_classes_are_those_of_scikit_learn(case: Case) -> None:
    study = case()
    decided, names = np.asarray(study.probs).argmax(1), list(study.class_names)
    labels = list(range(len(names)))
    expected = np.stack(sk.precision_recall_fscore_support(study.targets, decided, labels=labels, zero_division=np.nan), -1)
    found = {row.one("th").text: row for row in rows_of(page_of(case).one("table", "rates"))}
    assert len(found) == len(names)
    for name, (precision, recall, f1, support) in zip(names, expected, strict=True):
        numbers = [float("nan" if "null" in cell.numbers() else cell.numbers()[0]) for cell in found[name].all("td")]
        assert numbers == pytest.approx([support, precision, recall, f1], nan_ok=True)


@pytest.mark.parametrize("case", [trainings.two, trainings.five, trainings.many])
def test_the_matrix_is_that_of_scikit_learn(case: Case) -> None:
    study = case()
    expected = sk.confusion_matrix(study.targets, np.asarray(study.probs).argmax(1))
    compact = len(study.class_names) > 10
    for place, (row, counts) in enumerate(zip(rows_of(page_of(case).one("table", "matrix")), expected, strict=True)):
        cells = row.all("td")[:-1]
        assert [other for other, cell in enumerate(cells) if "hit" in cell.classes] == [place]
        shown = [int(cell.numbers()[0]) if cell.numbers() else 0 for cell in cells]
        assert shown == counts.tolist()
        if not compact:
            assert [float(cell.numbers()[1]) for cell in cells] == pytest.approx((counts / counts.sum()).tolist())
        heats = [int(cell.classes[1].removeprefix("heat-")) for cell in cells]
        assert all((heat == 0) == (count == 0) for heat, count in zip(heats, counts, strict=True))
        assert heats[int(counts.argmax())] == max(heats)


@pytest.mark.parametrize("case", [trainings.many, trainings.huge])
def test_the_most_confused_pairs_are_the_largest_cells_off_the_diagonal(case: Case) -> None:
    study = case()
    counts = sk.confusion_matrix(study.targets, np.asarray(study.probs).argmax(1))
    wrong = counts - np.diag(np.diag(counts))
    rows = rows_of(page_of(case).one("table", "confused"))
    shown = [int(row.numbers()[0]) for row in rows]
    assert shown == sorted(wrong.flatten().tolist(), reverse=True)[: len(rows)]
    names = list(study.class_names)
    for row in rows:
        true, predicted = names.index(row.one("th").text), names.index(row.all("td")[0].text)
        assert wrong[true, predicted] == int(row.numbers()[0])
        assert float(row.numbers()[1]) == pytest.approx(wrong[true, predicted] / counts[true].sum())


def test_a_matrix_too_large_to_read_is_not_drawn() -> None:
    page = page_of(trainings.huge)
    assert not page.all("table", "matrix")
    assert "too large to read" in page.one("section", id="confusion").text
    assert not page_of(trainings.two).all("table", "confused")


def test_the_scores_are_those_of_evaluate_and_scikit_learn() -> None:
    study = trainings.two()
    rows = {
        row.attributes["data-metric"]: row.numbers()
        for table in page_of(trainings.two).all("table", "scores")
        for row in rows_of(table)
    }
    scores = evaluate(study.probs, study.targets, replicates=60)
    for name in ("accuracy", "nll", "ece"):
        assert list(map(float, rows[name])) == pytest.approx([getattr(scores, name), *scores.intervals[name]])
    area, low, high = map(float, rows["roc_auc"])
    assert area == pytest.approx(sk.roc_auc_score(study.targets, np.asarray(study.probs)[:, 1]))
    assert low < area < high
    assert len(rows) == len(scores.metrics) + 1
    guess = page_of(trainings.two).one("section", id="metrics").all("p")[0].numbers()
    shares = np.bincount(np.asarray(study.targets)) / len(study.targets)
    expected = [shares.max(), sk.log_loss(study.targets, np.tile(shares, (len(study.targets), 1)))]
    assert list(map(float, guess)) == pytest.approx(expected)


def test_only_two_classes_have_an_auc() -> None:
    assert "roc_auc" not in [row.attributes.get("data-metric") for row in page_of(trainings.five).all("tr")]


def test_importance_shows_the_first_columns_and_says_how_many_were_examined() -> None:
    study, section = trainings.many(), page_of(trainings.many).one("section", id="importance")
    rows = rows_of(section.one("table", "importances"))
    assert len(rows) == 20
    assert "the first 20 of 40" in section.text
    assert "40 of 300 columns were examined within the time limit" in section.text
    for row, column in zip(rows, study.importance, strict=False):
        assert row.one("th").text == column.name
        assert list(map(float, row.numbers())) == [column.increase, column.low, column.high]
        assert ("clear" in row.one("svg").classes) == (column.low > 0)
    assert "were examined" not in page_of(trainings.two).one("section", id="importance").text


def test_importance_bars_share_one_scale() -> None:
    columns = [{"increase": 0.4, "low": 0.3, "high": 0.5}, {"increase": -0.05, "low": -0.1, "high": 0.0}]
    scale = importance_scale(columns)
    assert scale is not None
    first, second = (fromstring(importance_bar(each, scale) or "") for each in columns)
    axes = [[node.get("d") for node in drawn.iter("path") if node.get("class") == "axis"] for drawn in (first, second)]
    assert axes[0] == axes[1]
    widths = [float(next(drawn.iter("rect")).get("width", "")) for drawn in (first, second)]
    assert widths[0] / widths[1] == pytest.approx(8, rel=0.01)
    assert [drawn.get("class", "").split()[1] for drawn in (first, second)] == ["clear", "unclear"]
    span = next(node.get("d", "") for node in first.iter("path") if node.get("class") == "span")
    low, high = (float(end) for end in re.findall(r"M([\d.]+).*H([\d.]+)", span)[0])
    assert (high - low) / widths[0] == pytest.approx(0.5, rel=0.01)
    assert importance_scale([{"increase": 0.0, "low": 0.0, "high": 0.0}]) is None


def test_attempts_say_what_became_of_them() -> None:
    section = page_of(trainings.two).one("section", id="attempts")
    rows = rows_of(section.one("table"))
    assert [row.one("th").text for row in rows] == [each.title for each in trainings.ATTEMPTS]
    assert [row.all("td")[2].text.strip() for row in rows] == [
        "Complete, not chosen",
        "★ Chosen",
        "Would not have been done in timeits NLL is that of the rows it predicted until then",
        "Out of memory",
    ]
    assert rows[0].numbers() == ["0.4012", "0.0101"]
    assert rows[3].numbers() == ["null"]
    assert [row.all("td")[1].text for row in rows] == ["2.3 s", "1 min 15 s", "41 s", "0.1 s"]
    assert "which is simpler" not in section.text
    simpler = replace(trainings.two(), method="logistic regression")
    assert "which is simpler" in parsed(render_training_report(simpler)).one("section", id="attempts").text


def test_how_the_scores_were_obtained_is_told_as_it_was() -> None:
    folds = page_of(trainings.two).one("section", id="scoring").text
    assert all(words in folds for words in ("5 folds", "conservative", "correct for having chosen", "counts the rows"))
    assert "slightly optimistic" in folds
    strict = parsed(render_training_report(replace(trainings.two(), stopped_on_held_out=False)))
    assert "slightly optimistic" not in strict.one("section", id="scoring").text
    part = page_of(trainings.single_split)
    assert "split once" in part.one("section", id="scoring").text
    assert "folds" not in part.one("section", id="scoring").text
    assert not [node for node in part if node.attributes.get("id") == "attempts"]
    assert "Texts have no columns" in part.one("section", id="importance").text
    other = parsed(render_training_report(replace(trainings.two(), scored_on="test file", test_file="later.csv", attempts=())))
    assert "later.csv" in other.one("section", id="scoring").text
    alone = parsed(render_training_report(replace(trainings.two(), attempts=trainings.ATTEMPTS[1:2])))
    assert "correct for having chosen" not in alone.one("section", id="scoring").text


@pytest.mark.parametrize("examples", ["rows", "texts", "images"])
def test_only_tables_have_columns(examples: str) -> None:
    page = parsed(render_training_report(replace(trainings.single_split(), examples=examples)))
    check_markup(page)
    (lead,) = page.all("p", "lead")
    assert f"1,000 {examples}, " in lead.text
    assert f"200 {examples} that were kept out" in lead.text
    assert ("3 columns" in lead.text) == (examples == "rows")
    assert len([node for node in page if node.attributes.get("id") == "importance"]) == (examples == "rows")


def test_warnings_stand_beside_the_verdict() -> None:
    warnings = ("Not clearly better than guessing.", "Many rows are copies of others.")
    page = parsed(render_training_report(replace(trainings.two(), warnings=warnings)))
    card = page.one("section", id="verdict").one("article")
    assert [each.text for each in card.all("p", "warning")] == list(warnings)
    assert not page_of(trainings.two).one("section", id="verdict").all("p", "warning")


def test_the_command_and_all_numbers_are_in_the_page(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    training_report(path, trainings.five())
    page = parsed(path.read_text(encoding="utf-8"))
    assert trainings.five().command in page.one("pre", "command").text  # type: ignore[operator]
    assert json.loads(page.one("script", id="study").text) == trainings.five().to_dict()
    assert not re.search(r"https?://|url\((?!#)|@import", path.read_text(encoding="utf-8"))
    with pytest.raises(InvalidArgumentError, match="folder"):
        training_report(tmp_path, trainings.five())


def test_no_name_breaks_out() -> None:
    page = page_of(trainings.hostile)
    assert not page.all("img")
    assert (len(page.all("script")), len(page.all("style"))) == (2, 1)
    for name in ("rates", "matrix", "importances", "attempts"):
        shown = [row.one("th").text for row in rows_of(page.one("table", name))]
        assert sorted(shown) == sorted(HOSTILE), name


def test_folds_must_be_counted() -> None:
    with pytest.raises(InvalidArgumentError, match="number of folds"):
        replace(trainings.two(), folds=None)
