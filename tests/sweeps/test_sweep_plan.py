"""What users write, on the command line and in a file, and what is made of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from calibayes.errors import DataError, InvalidArgumentError
from calibayes.sweeps.sweep_plan import SweepPlan, choices, read_plan

PLAN = """
trial = "package.module:function"
label = "{scheme}"
seeds = 2

[settings]
epochs = 3
widths = [[16, 16]]

[[grid]]
scheme = "fnn"

[[grid]]
scheme = ["ca-fnn", "ca-bnn"]
lam = [1, 3.5]
"""


def test_a_file_has_grids_that_share_settings(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    plan = read_plan(path)
    assert (plan.trial, plan.label, plan.out) == ("package.module:function", "{scheme}", None)
    found = plan.combinations({}, None)
    assert len(found) == 2 + 8
    assert found[1] == {"epochs": 3, "widths": [16, 16], "scheme": "fnn", "seed": 1}
    assert found[-1] == {"epochs": 3, "widths": [16, 16], "scheme": "ca-bnn", "lam": 3.5, "seed": 1}


def test_the_command_line_has_the_last_word(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    found = read_plan(path).combinations(choices(["epochs=5", "lam=10"]), 1)
    assert [each["scheme"] for each in found] == ["fnn", "ca-fnn", "ca-bnn"]
    assert {(each["epochs"], each["lam"], each["seed"]) for each in found} == {(5, 10, 0)}


def test_words_become_numbers_where_they_are_some() -> None:
    assert choices(["a=1, 2.5,1e-3,x,true,null,-3"]) == {"a": [1, 2.5, 0.001, "x", True, None, -3]}


@pytest.mark.parametrize("word", ["lam", "lam=", "=3", " = ", "lam=1,,3", "lam=1,"])
def test_words_without_a_name_or_a_value_are_quoted(word: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"like lam=1,3,10, but got '{word}'"):
        choices([word])


def test_lists_dicts_and_quoted_texts_are_one_value() -> None:
    found = choices(["widths=[64,32],[]", 'x={"a":[1,2],"b":3},4', 'text="a,b","nan",c[1'])
    assert found == {"widths": [[64, 32], []], "x": [{"a": [1, 2], "b": 3}, 4], "text": ["a,b", "nan", "c[1"]}


@pytest.mark.parametrize("value", ["nan", "NaN", "inf", "-Infinity", "1e999"])
def test_numbers_are_finite(value: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"the values of --set to be finite, but got '{value}' in 'lam=1,{value}'"):
        choices([f"lam=1,{value}"])


def test_what_selects_may_be_repeated() -> None:
    assert choices(["seed=1", "seed=2,3"], "--only", again=True) == {"seed": [1, 2, 3]}
    with pytest.raises(InvalidArgumentError, match="Expected --only to be like"):
        choices(["seed"], "--only")


def test_a_setting_is_named_once() -> None:
    with pytest.raises(InvalidArgumentError, match="to name 'lam' once"):
        choices(["lam=1", "lam=3"])


def test_seeds_and_a_setting_of_that_name_do_not_go_together() -> None:
    with pytest.raises(InvalidArgumentError, match=r"seeds or the setting seed, but got 2 and \[3, 4\]"):
        SweepPlan(settings={"seed": [3, 4]}).combinations({}, 2)
    assert SweepPlan(seeds=3).combinations({"seed": [7]}, None) == [{"seed": 7}]
    with pytest.raises(InvalidArgumentError, match="`seeds` to be at most 100,000, but got 1000000000"):
        SweepPlan().combinations({}, 10**9)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("setings = 3", "not to have 'setings'. Did you mean 'settings'?"),
        ("lam = 3", r"'lam'. Settings of trials belong below \[settings\]"),
        ("settings = 3", r"'settings' in '.*plan.toml' to be a table: \[settings\], but got 3"),
        ("grid = [3]", r"to be tables: \[\[grid\]\], but got \[3\]"),
        ("trial = 3 3", "to be a TOML file, but: .*line 1"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        read_plan(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"Cannot read '.*nowhere.toml': No such file"):
        read_plan(tmp_path / "nowhere.toml")
