"""The tables and notes of a comparison follow from its numbers, branch by branch."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from tests.recipes.compare.made_up import BASELINES, BY_NAME, made_up, made_up_comparison

from calibayes.recipes.compare import CONTENDERS, FASHION_MNIST, Settings
from calibayes.recipes.compare.comparison_text import above_table, closing_words, opening_words, scores_table
from calibayes.recipes.compare.recommendation import Differences
from calibayes.terminal import as_text

ALL = (*BASELINES, *CONTENDERS)


def words(validation: Differences, test: Differences | None = None, settings: dict[str, Any] | None = None) -> str:
    return closing_words(made_up_comparison(validation, test, settings))


def test_a_temperature_is_advice_only_where_it_lowers_the_validation_nll() -> None:
    test = made_up({"FNN + T": 0.9, "BNN + T": 0.1})  # has no say
    said = words(made_up({"FNN + T": 0.45, "CA-FNN + T": 0.4, "BNN + T": 0.501}), test)
    assert "A temperature lowers the validation NLL of FNN and CA-FNN." in said
    assert "A temperature does not lower the validation NLL of BNN and CA-BNN." in said
    assert "is applied" in said


def test_who_has_a_clearly_better_score_on_test_examples_is_mentioned() -> None:
    said = words(made_up({"FNN": 0.45}), made_up(ece={"BNN": 0.01}, accuracy={"CA-BNN": 0.85}))
    assert "Clearly lower ECE than FNN on the test points: BNN by 2.0 points (1." in said
    assert "Clearly higher accuracy than FNN on the test points: CA-BNN by 5.0 points (4." in said
    assert "None has a clearly lower ECE than FNN on the test points." in words(made_up({"FNN": 0.45}))


def test_baselines_are_said_to_be_calibrated() -> None:
    said = words(made_up(contenders=ALL))
    assert said.startswith(
        "Logistic regression and boosted trees: of scikit-learn, calibrated by cross-validation on the training"
    )
    assert "scikit-learn" not in words(made_up())


def test_what_the_intervals_cover_is_said() -> None:
    said = words(made_up())
    assert "corrected for 7 comparisons (Bonferroni); they cover the chance in 5 seeds and in 80 validation or 150 test" in said
    assert "More seeds" not in said
    assert "(--quick)" not in said


def test_one_seed_is_said_not_to_cover_the_chance_in_training() -> None:
    quick = Settings.quick()
    sizes = {"train": quick.train, "validation": quick.validation, "test": quick.test}
    said = words(made_up(seeds=(0.0,)), settings=sizes)
    assert "they cover the chance in the 400 validation or 600 test points only" in said
    assert "One seed says nothing about the chance in training" in said
    assert "(--quick)" in said


def test_two_seeds_are_few() -> None:
    assert "Two seeds say little" in words(made_up(seeds=(-0.001, 0.001)))


def test_the_table_shows_what_was_chosen_by_beside_the_check() -> None:
    validation = made_up({"CA-BNN": 0.499, "BNN": 0.6, "BNN + T": math.inf})
    text = as_text(above_table(made_up_comparison(validation, made_up({"BNN": 0.45}))))
    lines = {line.split("  ")[1]: line for line in text.splitlines() if line.startswith("  ") and "worse" in line}
    assert set(lines) == {str(each) for each in CONTENDERS} - {"CA-BNN"}
    assert "not clearly worse" in lines["FNN"]
    assert " 0.600   0.101 " in lines["BNN"]
    assert "  clearly worse        -0.050  -0.0" in lines["BNN"]  # what the test examples say is shown, and changes nothing
    assert "inf to inf  clearly worse" in lines["BNN + T"]
    assert "-0.000" not in text
    assert any(line.split() == ["CA-BNN", "0.499", "lowest"] for line in text.splitlines())


def test_the_table_says_what_calibrates_each() -> None:
    found = made_up_comparison(made_up(contenders=ALL))
    text = as_text(scores_table(found.entries.values(), found.settings, found.task))
    lines = {line.split("  ")[1]: line.split() for line in text.splitlines() if line.startswith("  ")}
    assert "sigmoid" in lines["boosted trees"]
    assert lines["FNN + T"][5:8] == ["T", "=", "1.50"]
    assert lines["FNN"][3] == "–"
    assert max(map(len, text.splitlines())) <= 110
    assert text.count("accuracy %") == 1  # not split: it fits where there is no terminal


def test_the_opening_counts_the_trainings() -> None:
    settings = replace(Settings.thorough(5), baselines=())
    said = opening_words(FASHION_MNIST, settings, 2)
    assert "41 trainings, 2 at a time" in said  # 1 + 4 + 4 + 16 candidates, and 4 more seeds of 4 schemes
    assert "for 12 epochs" in said
    assert "51 trainings" in opening_words(FASHION_MNIST, Settings.thorough(5), 2)  # and 5 seeds of 2 baselines


def test_nothing_is_made_up_about_contenders_that_are_not_there() -> None:
    assert all(str(each) not in words(made_up()) for each in BASELINES)
    assert len(BY_NAME) == 10
