"""Which contender is recommended: the rule, on numbers that are made up."""

from __future__ import annotations

import math
from statistics import median

import numpy as np
import pytest
import torch
from tests.recipes.compare.made_up import BASELINES, BY_NAME, made_up

from calibayes.recipes.compare.contenders import CONTENDERS
from calibayes.recipes.compare.recommendation import Differences, decide

ALL = (*BASELINES, *CONTENDERS)


def test_simplicity_is_the_published_order() -> None:
    assert list(map(str, CONTENDERS)) == [
        "FNN", "FNN + T", "CA-FNN", "CA-FNN + T", "BNN", "BNN + T", "CA-BNN", "CA-BNN + T",
    ]  # fmt: skip


def test_of_equals_the_simplest_is_used() -> None:
    verdict = decide(made_up({"CA-BNN": 0.4999}))
    assert (str(verdict.leader), str(verdict.recommended)) == ("CA-BNN", "FNN")
    assert verdict.clearly_worse == []
    assert str(decide(made_up({"CA-BNN": 0.4999}, contenders=ALL)).recommended) == "logistic regression"


def test_the_leader_is_used_when_all_that_is_simpler_is_worse() -> None:
    verdict = decide(made_up({"BNN": 0.4, "CA-BNN": 0.6}))
    assert verdict.leader == verdict.recommended == BY_NAME["BNN"]
    assert [str(each) for each in verdict.clearly_worse] == [str(each) for each in CONTENDERS if str(each) != "BNN"]


def test_the_first_that_is_level_is_used_in_between() -> None:
    verdict = decide(made_up({"FNN": 0.6, "FNN + T": 0.6, "CA-FNN": 0.5003, "CA-BNN + T": 0.4995}))
    assert (str(verdict.leader), str(verdict.recommended)) == ("CA-BNN + T", "CA-FNN")


@pytest.mark.parametrize(("factor", "expected"), [(0.9, "FNN"), (1.1, "CA-BNN")])
def test_level_is_within_one_standard_error(factor: float, expected: str) -> None:
    above = decide(made_up({"CA-BNN": 0.4}, test_error=0.01)).above
    errors = [each.standard_error for each in above.values()]
    error = min(above[BY_NAME["FNN"]].standard_error, median(errors))
    assert min(errors) < error
    worse = dict.fromkeys((str(each) for each in CONTENDERS), 0.7)
    moved = made_up({**worse, "FNN": 0.4 + factor * error, "CA-BNN": 0.4}, test_error=0.01)
    verdict = decide(moved)
    assert str(verdict.recommended) == expected
    assert BY_NAME["FNN"] not in verdict.clearly_worse  # far from what an interval would tell


def test_a_method_is_not_level_for_being_erratic() -> None:
    """Of two that are as far behind, one varies far more from seed to seed than all others."""
    quiet = made_up({"CA-BNN": 0.45, "FNN": 0.47, "CA-FNN": 0.47}, test_error=0.002)
    erratic = [0.47 + shift for shift in (-0.2, 0.2, -0.1, 0.1, 0.0)]
    values = {**quiet.values, BY_NAME["FNN"]: {**quiet.values[BY_NAME["FNN"]], "nll": erratic}}
    found = decide(Differences(values, quiet.draws))
    own = found.above[BY_NAME["FNN"]]
    assert own.value < own.standard_error  # level, if its own error alone counted
    assert found.recommended == found.leader == BY_NAME["CA-BNN"]


def test_the_standard_error_joins_seeds_and_examples() -> None:
    found = made_up(seeds=(-0.01, 0.02, 0.0)).between(BY_NAME["FNN"], BY_NAME["BNN"])
    assert found.seeds_error is not None
    assert found.standard_error == pytest.approx(math.hypot(found.seeds_error, found.test_error))
    one = made_up(seeds=(0.0,)).between(BY_NAME["FNN"], BY_NAME["BNN"])
    assert one.standard_error == one.test_error > 0


def test_an_infinite_nll_is_clearly_worse_and_eight_of_them_are_no_answer() -> None:
    verdict = decide(made_up({"FNN": math.inf}))
    assert str(verdict.recommended) == "FNN + T"
    assert verdict.clearly_worse == [BY_NAME["FNN"]]
    several = decide(made_up({"FNN": math.inf, "FNN + T": math.inf, "CA-FNN": 0.5004}))  # their errors are not numbers
    assert str(several.recommended) == "CA-FNN"
    nobody = decide(made_up(dict.fromkeys(BY_NAME, math.inf)))
    assert nobody.leader is nobody.recommended is None


def simulated(gap: float, times: int = 300) -> tuple[float, float]:
    """How often the simplest of eight is recommended, and how often it is called clearly worse, if it is worse by a gap."""
    generator, seeds, draws = np.random.default_rng(0), 4, 50
    used = worse = 0
    for _ in range(times):
        values, replicates = {}, {}
        for contender in CONTENDERS:
            mean = gap if contender == CONTENDERS[0] else 0.0
            observed = (mean + generator.normal(size=seeds) + generator.normal()).tolist()
            values[contender] = dict.fromkeys(("nll", "ece", "accuracy", "brier"), observed)
            spread = torch.from_numpy(generator.normal(size=(1, draws)))
            replicates[contender] = dict.fromkeys(values[contender], spread)
        verdict = decide(Differences(values, replicates))
        used += verdict.recommended == CONTENDERS[0]
        worse += CONTENDERS[0] in verdict.clearly_worse
    return used / times, worse / times


def test_equals_are_seldom_called_clearly_worse_although_the_leader_is_chosen_by_the_same_numbers() -> None:
    used, worse = simulated(0.0)
    assert worse < 0.025 + 3 * math.sqrt(0.025 * 0.975 / 300)
    assert used > 1 / 8  # more often than by the lowest NLL alone


def test_what_is_much_worse_is_not_used_for_being_simple() -> None:
    used, _ = simulated(6.0)  # three standard errors of a difference
    assert used < 0.03


def test_a_difference_that_is_clear_but_nothing_to_speak_of_decides_nothing() -> None:
    numbers = {"FNN": 0.5004, "FNN + T": 0.5}
    verdict = decide(made_up(numbers, test_error=1e-6, seeds=(0.0, 0.0)))
    assert verdict.above[BY_NAME["FNN"]].above
    assert str(verdict.recommended) == "FNN"
