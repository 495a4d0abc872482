"""What is tried on which examples, and which averages of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from calibayes.crossfit import contenders, select, stratified_folds, table_representation
from calibayes.crossfit.representation import Representation
from calibayes.methods import Examples


def planes(rows: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """Eight normal numbers, and whether they lie on the same side of two oblique planes: no single column tells."""
    random = np.random.default_rng(0)
    x, directions = random.normal(size=(rows, 8)).astype(np.float32), random.normal(size=(8, 2))
    return x, ((x @ directions).prod(1) > 0).astype(np.int64)


def tried(representation: Representation, method: str | None = None) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """The titles of what is tried, and the averages by the titles of their parts."""
    x, y = planes()
    ways, blends = contenders(representation, Examples(torch.from_numpy(x), torch.from_numpy(y)), 2,
                              stratified_folds(y, 3, seed=0), method=method)  # fmt: skip
    titles = [each.learner.title for each in ways]
    return titles, [(title, [titles[place] for place in places]) for title, places in blends]


def of_numbers() -> Representation:
    return table_representation(planes()[0], range(8), [], 2)


FIRST, SECOND = "network (EMA)", "network on standardised numbers (EMA)"


def test_a_table_of_numbers_has_two_networks_and_their_average() -> None:
    assert tried(of_numbers(), "ema") == ([FIRST, SECOND], [("both networks, averaged", [FIRST, SECOND])])


@pytest.mark.boosting
def test_trees_are_averaged_with_one_network_and_with_both() -> None:
    titles, averages = tried(of_numbers())
    assert titles == ["logistic regression", "boosted trees", FIRST, SECOND]
    assert averages[1:] == [
        ("boosted trees and network, averaged", ["boosted trees", FIRST]),
        ("boosted trees and both networks, averaged", ["boosted trees", FIRST, SECOND]),
    ]


def test_without_a_second_network_there_is_one_average_at_most() -> None:
    alone = replace(of_numbers(), second_network=None)
    assert tried(alone, "ema") == ([FIRST], [])
    categories = table_representation(np.zeros((300, 2), np.float32), [], [(0, 2), (1, 2)], 2)
    assert categories.second_network is None


def test_methods_other_than_averaged_weights_have_one_network() -> None:
    assert tried(of_numbers(), "fnn")[0] == ["network (FNN)"]


def test_where_no_single_column_tells_standardised_numbers_have_the_lower_loss() -> None:
    x, y = planes()
    ways, blends = contenders(of_numbers(), Examples(torch.from_numpy(x), torch.from_numpy(y)), 2,
                              stratified_folds(y, 3, seed=0), method="ema")  # fmt: skip
    found = {each.title: each.nll for each in select(ways, budget=100, blends=blends).attempts}
    assert found[SECOND] < found[FIRST]
    assert found["both networks, averaged"] < found[FIRST]
