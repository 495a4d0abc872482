"""What can be asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from calibayes.errors import InvalidArgumentError
from calibayes.recipes.compare import Settings


@pytest.mark.parametrize(("name", "value"), [("seeds", 0), ("epochs", -1), ("train", 2.5), ("seeds", True)])
def test_impossible_counts_are_quoted(name: str, value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=f"`{name}` to be a positive integer, but got {value}"):
        Settings(**{name: value})


@pytest.mark.parametrize("values", [(), (0.0,), (1.0, -1.0), (3.0, 3.0), (float("nan"),), (float("inf"),)])
def test_impossible_grids_are_quoted(values: tuple[float, ...]) -> None:
    with pytest.raises(InvalidArgumentError, match="`lams` to be positive numbers"):
        Settings(lams=values)


@pytest.mark.parametrize("name", ["learning_rate", "prior_std", "init_std"])
def test_impossible_sizes_are_quoted(name: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"`{name}` to be a positive finite number, but got -1"):
        Settings(**{name: -1})  # type: ignore[arg-type]


def test_the_same_values_in_another_type_are_the_same_settings() -> None:
    assert Settings(lams=[3, 10], betas=(0.03, 0.1), learning_rate=1) == Settings(learning_rate=1.0)  # type: ignore[arg-type]


def test_trainings_are_the_candidates_and_the_other_seeds_of_the_chosen() -> None:
    assert Settings(seeds=3, baselines=()).trainings == (1 + 2 + 2 + 4) + 2 * 4
    assert Settings.thorough(5).trainings == (1 + 4 + 4 + 16) + 4 * 4 + 5 * 2


@pytest.mark.parametrize("baselines", ["boosted-trees", ("boosted-trees", "boosted-trees"), ("trees",)])
def test_impossible_baselines_are_quoted(baselines: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="`baselines` to be among logistic-regression, boosted-trees, each once"):
        Settings(baselines=baselines)


def test_a_baseline_is_not_a_method() -> None:
    with pytest.raises(InvalidArgumentError, match="Expected 'boosted-trees' in `baselines`"):
        Settings(methods=("fnn", "boosted-trees"))


def test_only_quick_settings_are_quick() -> None:
    assert Settings.quick(3).is_quick
    assert replace(Settings.quick(), epochs=1).is_quick
    assert replace(Settings.quick(), validation=180, test=240).is_quick  # of a file with few rows
    assert not Settings(seeds=3).is_quick
    assert not replace(Settings.thorough(), train=300, validation=100, test=100).is_quick
    assert not Settings.thorough().is_quick
