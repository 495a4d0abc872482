"""Which contender is recommended: the rule, on numbers that are made up."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from tests.recipes.compare.made_up import BY_NAME, made_up

from calibayes.recipes.compare.contenders import CONTENDERS
from calibayes.recipes.compare.recommendation import Differences, decide


def test_simplicity_is_the_published_order() -> None:
    assert list(map(str, CONTENDERS)) == [
        "FNN", "FNN + T", "CA-FNN", "CA-FNN + T", "BNN", "BNN + T", "CA-BNN", "CA-BNN + T",
    ]  # fmt: skip


def test_of_equals_the_simplest_is_used() -> None:
    verdict = decide(made_up({"CA-BNN": 0.4999}))
    assert (str(verdict.leader), str(verdict.recommended)) == ("CA-BNN", "FNN")
    assert verdict.clearly_worse == []
    assert verdict.gain is None


def test_the_leader_is_used_when_all_that_is_simpler_is_clearly_worse() -> None:
    verdict = decide(made_up({"BNN": 0.4, "CA-BNN": 0.6}))
    assert verdict.leader == verdict.recommended == BY_NAME["BNN"]
    assert [str(each) for each in verdict.clearly_worse] == [str(each) for each in CONTENDERS if str(each) != "BNN"]
    assert verdict.gain is not None
    assert verdict.gain["nll"].value == pytest.approx(-0.1)
    assert verdict.gain["nll"].below


def test_the_first_that_is_not_clearly_worse_is_used_in_between() -> None:
    verdict = decide(made_up({"FNN": 0.6, "FNN + T": 0.6, "CA-FNN": 0.501, "CA-BNN + T": 0.4995}))
    assert (str(verdict.leader), str(verdict.recommended)) == ("CA-BNN + T", "CA-FNN")


def test_wide_intervals_favour_the_simple() -> None:
    numbers = {"FNN": 0.51, "CA-BNN": 0.48}
    assert str(decide(made_up(numbers)).recommended) == "CA-BNN"
    assert str(decide(made_up(numbers, test_error=0.02)).recommended) == "FNN"
    assert str(decide(made_up(numbers, seeds=(-0.05, 0.06))).recommended) == "FNN"


def test_who_is_clearly_better_in_another_score_is_named() -> None:
    verdict = decide(made_up({"FNN": 0.4}, ece={"BNN": 0.01, "CA-BNN": 0.06}, accuracy={"CA-FNN": 0.9, "BNN": 0.7}))
    assert {str(each) for each in verdict.better["ece"]} == {"BNN"}
    assert verdict.better["ece"][BY_NAME["BNN"]].value == pytest.approx(0.02)
    assert {str(each) for each in verdict.better["accuracy"]} == {"CA-FNN"}


def test_an_infinite_nll_is_clearly_worse_and_eight_of_them_are_no_answer() -> None:
    verdict = decide(made_up({"FNN": math.inf}))
    assert str(verdict.recommended) == "FNN + T"
    assert verdict.clearly_worse == [BY_NAME["FNN"]]
    nobody = decide(made_up(dict.fromkeys(BY_NAME, math.inf)))
    assert nobody.leader is nobody.recommended is None


def test_the_simplest_of_equals_is_seldom_passed_over_although_the_leader_is_chosen_by_the_same_numbers() -> None:
    # Eight contenders that are all the same in truth, with luck of their own in the seeds and in the test examples.
    generator, times, seeds, draws = np.random.default_rng(0), 200, 4, 50
    passed_over = 0
    for _ in range(times):
        values, replicates = {}, {}
        for contender in CONTENDERS:
            observed = (generator.normal(size=seeds) + generator.normal()).tolist()
            values[contender] = dict.fromkeys(("nll", "ece", "accuracy", "brier"), observed)
            spread = torch.from_numpy(generator.normal(size=(1, draws)))
            replicates[contender] = dict.fromkeys(values[contender], spread)
        passed_over += decide(Differences(values, replicates)).recommended != CONTENDERS[0]
    assert passed_over / times < 0.025 + 3 * math.sqrt(0.025 * 0.975 / times)


def test_a_difference_that_is_clear_but_nothing_to_speak_of_decides_nothing() -> None:
    numbers = {"FNN": 0.5004, "FNN + T": 0.5}
    verdict = decide(made_up(numbers, test_error=1e-6, seeds=(0.0, 0.0)))
    assert verdict.above[BY_NAME["FNN"]].above
    assert str(verdict.recommended) == "FNN"
