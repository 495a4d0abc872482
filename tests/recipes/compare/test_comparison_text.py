"""What a comparison says follows from its numbers, branch by branch."""

from __future__ import annotations

import math

from tests.recipes.compare.made_up import BY_NAME, made_up

from calibayes.recipes.compare.comparison_settings import Settings
from calibayes.recipes.compare.comparison_task import FASHION_MNIST
from calibayes.recipes.compare.comparison_text import above_table, closing_words, opening_words
from calibayes.recipes.compare.recommendation import Differences, decide
from calibayes.terminal import as_text


def words(found: Differences, settings: Settings | None = None) -> str:
    return closing_words(decide(found), found, Settings.thorough() if settings is None else settings, FASHION_MNIST)


def test_the_simplest_leads() -> None:
    said = words(made_up({"FNN": 0.45}))
    assert "Use FNN: it has the lowest NLL (0.450), and nothing here is simpler." in said
    assert "Against" not in said
    assert "None has a clearly lower ECE than FNN." in said


def test_the_leader_is_worth_its_trouble() -> None:
    said = words(made_up({"CA-FNN": 0.45}, ece={"CA-FNN": 0.01}))
    assert "Use CA-FNN: it has the lowest NLL (0.450), and the simpler ones are clearly worse: FNN, FNN + T." in said
    assert "Against FNN: NLL lower by 0.050 (0.04" in said
    assert "ECE lower by 2.0 points (1." in said


def test_the_simplest_is_good_enough() -> None:
    found = made_up({"CA-BNN": 0.499})
    said = words(found)
    difference = decide(found).above[BY_NAME["FNN"]]
    apart = f"{difference.value:.3f} ({difference.low:.3f} to {difference.high:.3f}) apart."
    assert f"Use FNN: its NLL (0.500) is not clearly worse than the lowest, CA-BNN's (0.499): {apart}" in said
    assert "Nothing here is simpler." in said


def test_one_in_between_is_good_enough() -> None:
    said = words(made_up({"FNN": 0.6, "CA-BNN": 0.499}))
    assert "Use FNN + T: its NLL (0.500) is not clearly worse than the lowest, CA-BNN's (0.499): 0.001 (" in said
    assert "The simpler ones are clearly worse: FNN." in said
    assert "Against FNN: NLL lower by 0.100 (" in said


def test_where_nothing_is_known_nothing_is_recommended() -> None:
    for found in (made_up({"CA-BNN": 0.499}, seeds=(-0.3, 0.3)), made_up({"FNN": 0.499}, seeds=(-0.3, 0.3))):
        assert not decide(found).clearly_worse
        said = words(found, Settings.quick(2))
        assert "No answer yet: nothing is clearly worse than the lowest NLL, " in said
        assert "until then start with FNN, the simplest." in said
        assert "Use " not in said


def test_a_change_that_may_be_chance_is_called_so() -> None:
    said = words(made_up({"FNN": 0.6}, accuracy={"FNN + T": 0.7999}))
    assert "accuracy lower by 0.0 points (-" in said
    assert "which may be chance" in said


def test_who_has_a_clearly_better_score_is_mentioned() -> None:
    said = words(made_up({"FNN": 0.45}, ece={"BNN": 0.01}, accuracy={"CA-BNN": 0.85}))
    assert "Clearly lower ECE than FNN: BNN by 2.0 points (1." in said
    assert "Clearly higher accuracy than FNN: CA-BNN by 5.0 points (4." in said
    assert "None has a clearly lower ECE" not in said


def test_what_the_intervals_cover_is_said() -> None:
    said = words(made_up())
    assert "Intervals: 95 %, corrected for 7 comparisons (Bonferroni); they cover the chance in 5 seeds and 5,000" in said
    assert "More seeds" not in said
    assert "(--quick)" not in said


def test_one_seed_is_said_not_to_cover_the_chance_in_training() -> None:
    said = words(made_up(seeds=(0.0,)), Settings.quick())
    assert "they cover the chance in the 600 test images only" in said
    assert "One seed says nothing about the chance in training" in said
    assert "Do not decide by it." in said
    assert "(--quick)" in said


def test_two_seeds_are_few() -> None:
    assert "Two seeds say little" in words(made_up(seeds=(-0.001, 0.001)))


def test_eight_infinite_scores_are_no_answer() -> None:
    said = words(made_up(dict.fromkeys(BY_NAME, math.inf)))
    assert "No answer: every contender gives some true class a probability of zero" in said
    assert "Use " not in said


def test_the_table_says_who_is_clearly_worse() -> None:
    text = as_text(above_table(decide(made_up({"CA-BNN": 0.499, "BNN": 0.6, "BNN + T": math.inf}))))
    lines = {line.split("  ")[1]: line for line in text.splitlines() if line.startswith("  ") and "worse" in line}
    assert set(lines) == set(BY_NAME) - {"CA-BNN"}
    assert "not clearly worse" in lines["FNN"]
    assert " 0.101 " in lines["BNN"]
    assert "< 0.001   clearly worse" in lines["BNN"]
    assert "inf to inf   < 0.001   clearly worse" in lines["BNN + T"]
    assert "-0.000" not in text


def test_the_opening_counts_the_trainings() -> None:
    said = opening_words(FASHION_MNIST, Settings.thorough(5), 2)
    assert "41 trainings of 12 epochs, 2 at a time" in said  # 1 + 4 + 4 + 16 candidates, and 4 more seeds of 4 schemes
