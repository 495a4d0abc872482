"""What a comparison advises follows from its numbers, branch by branch."""

from __future__ import annotations

import math
import shlex
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from tests.recipes.compare.blobs import BLOBS
from tests.recipes.compare.made_up import BASELINES, made_up, made_up_comparison

from calibayes.recipes.compare import CONTENDERS, Comparison, PlainInputs, Settings
from calibayes.recipes.compare.advice import Advice, advise, train_command
from calibayes.recipes.compare.recommendation import Differences

ALL = (*BASELINES, *CONTENDERS)
WORDS = ["calibayes", "train", "my data.csv", "--target", "y"]


def advice(validation: Differences, test: Differences | None = None, settings: dict[str, Any] | None = None) -> Advice:
    return advise(made_up_comparison(validation, test, settings), WORDS)


def command(found: Advice) -> str:
    (_, line), (more, other) = found.commands
    assert "averages of methods" in more
    assert line.startswith(f"{other} --method")
    return line


def test_a_baseline_that_clearly_wins_is_the_first_thing_said_with_its_command() -> None:
    found = advice(made_up({"boosted trees": 0.4, "FNN + T": 0.45}, contenders=ALL))
    assert found.reason.startswith(
        "Use boosted trees, the clear winner: validation NLL 0.400. The best network, FNN + T, has 0.450, higher by "
        "0.050 (95 % interval 0.0"
    )
    assert found.reason.endswith("over 5 seeds and 80 validation points.")
    assert command(found) == "calibayes train 'my data.csv' --target y --method boosted-trees"
    assert "pip install 'calibayes[boosting]'" in found.remarks[0]


def test_a_baseline_may_win_over_networks_but_not_over_the_other_baseline() -> None:
    found = advice(made_up({"boosted trees": 0.4, "logistic regression": 0.403}, contenders=ALL, test_error=0.0015))
    assert found.reason.startswith("Use boosted trees, clearly better than every network: validation NLL 0.400.")


def test_the_leader_is_clear() -> None:
    found = advice(made_up({"CA-FNN": 0.45}))
    assert found.reason.startswith(
        "Use CA-FNN, the clear winner: validation NLL 0.450. The next best, FNN, has 0.500, higher by 0.050 (95 %"
    )
    assert command(found) == "calibayes train 'my data.csv' --target y --method ca-fnn --set lam=3"
    assert found.remarks == ()


def test_the_leader_is_not_clear() -> None:
    found = advice(made_up({"CA-BNN + T": 0.49}, test_error=0.003))
    assert found.reason.startswith(
        "Use CA-BNN + T: the lowest validation NLL (0.490), though not clearly. The next best, FNN, "
    )
    assert command(found).endswith("--method ca-bnn --set lam=3 --set beta=0.1")
    assert found.remarks == ("The temperature is fitted by calibayes train, too.",)


def test_the_simplest_is_level() -> None:
    found = advice(made_up({"CA-BNN": 0.4999}, contenders=ALL))
    assert found.reason.startswith(
        "Use logistic regression, the simplest of those that are level with the lowest validation NLL: 0.500, higher than "
        "that of CA-BNN (0.500) by 0.000 (95 % interval -0.0"
    )
    assert command(found).endswith("--method logistic-regression")


def test_nothing_is_advised_by_test_examples_but_they_are_shown() -> None:
    validation = made_up({"boosted trees": 0.4, "FNN": 0.49}, contenders=ALL)
    plain = advice(validation)
    other = advice(validation, made_up({"BNN": 0.3, "boosted trees": 0.6}, contenders=ALL))
    assert (other.reason, other.commands, other.remarks) == (plain.reason, plain.commands, plain.remarks)
    assert "Check on 150 test points, which had no part in the choice: NLL 0.600, accuracy 80.0 %, ECE 3.0 %." in other.check
    assert "Against FNN: NLL higher by 0.100 (0.0" in other.check
    others = ", ".join(str(each) for each in ALL if each != ALL[1])
    assert other.check.endswith(f"Clearly lower NLL on them than boosted trees: {others}.")
    assert "Clearly lower" not in plain.check


def test_a_change_that_may_be_chance_is_called_so() -> None:
    found = advice(made_up({"FNN": 0.4}), made_up(accuracy={"FNN": 0.798}))
    assert "NLL the same (-0.0" in found.check
    assert "accuracy lower by 0.2 points (-" in found.check
    assert "; may be chance)" in found.check


def test_what_is_not_settled_is_said() -> None:
    found = advice(made_up({"CA-BNN": 0.499}, seeds=(-0.3, 0.3)))
    assert command(found)
    doubt = "The data do not settle it: the NLL of another choice may be lower by up to "
    assert any(each.startswith(doubt) for each in found.remarks)


def test_one_seed_and_quick_are_no_basis() -> None:
    assert any("--seeds 8" in each for each in advice(made_up(seeds=(0.0,))).remarks)
    quick = Settings.quick()
    sizes = {"train": quick.train, "validation": quick.validation, "test": quick.test}
    assert any("without it before you decide" in each for each in advice(made_up(seeds=(0.0,)), settings=sizes).remarks)
    assert not any("seeds" in each for each in advice(made_up()).remarks)


def test_infinite_scores_are_no_answer() -> None:
    found = advice(made_up({str(each): math.inf for each in CONTENDERS}))
    assert found.reason.startswith("No recommendation: every contender gives some true class a probability of zero")
    assert found.commands == ()
    assert found.check == ""


def on_texts(nll: dict[str, float]) -> Comparison:
    texts = PlainInputs(kind="texts", train=[["a"]], validation=[["a"]], test=[["a"]])
    found: Any = made_up_comparison(made_up(nll, contenders=(BASELINES[0], *CONTENDERS)))
    found.trainings.task = replace(BLOBS, examples="texts", plain_inputs=lambda *sizes: texts)
    comparison: Comparison = found
    return comparison


def test_a_baseline_is_trained_by_its_registered_name() -> None:
    found = advise(on_texts({"logistic regression": 0.4, "BNN + T": 0.45}), WORDS)
    assert found.reason.startswith("Use logistic regression, the clear winner")
    assert found.commands[0] == ("To train it:", command(found))
    assert command(found) == "calibayes train 'my data.csv' --target y --method logistic-regression"


def test_without_a_file_the_command_is_for_ones_own() -> None:
    found = advise(made_up_comparison(made_up({"FNN": 0.4})))
    line = "calibayes train data.csv --target label --method fnn"
    assert found.commands == (("To train it on data of your own:", line),)


@pytest.mark.parametrize("width", [40, 60, 110])
def test_only_a_command_is_longer_than_the_line(width: int) -> None:
    words = [*WORDS, "--ignore", "a column with a rather long name; and so on", "--ignore", "another one that is long"]
    found = advise(made_up_comparison(made_up({"CA-BNN + T": 0.4})), words)
    lines = found.text(width).splitlines()
    long = [line for line in lines if len(line) > width]
    assert [line.strip() for line in long] == [line for _, line in found.commands]
    assert shlex.split(command(found))[: len(words)] == words
    assert " ".join(lines).count("CA-BNN + T") == f"{found.reason} {found.check}".count("CA-BNN + T")  # no name is broken


def test_settings_are_typed_as_set_reads_them() -> None:
    from calibayes.commands.methods import method_settings

    settings = {"lam": 0.3, "members": 3, "ema": 0.98, "flag": True}
    words = shlex.split(train_command(WORDS, "ensemble", settings))
    typed = [word for before, word in pairwise(words) if before == "--set"]
    assert method_settings(typed) == settings
