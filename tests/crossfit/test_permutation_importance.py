"""The importance of columns where the truth is known: the order, the intervals, which rows are shuffled, and the limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import calibayes as cb
from calibayes.crossfit.cross_fit import CrossFit
from calibayes.crossfit.folds import stratified_folds
from calibayes.crossfit.permutation_importance import permutation_importance
from calibayes.errors import InvalidArgumentError

WEIGHTS = (2.0, 0.7, 0.0)
COLUMNS = {"strong": [0], "weak": [1], "none": [2]}
SEEN: list[Tensor] = []  # the inputs of all networks


@pytest.fixture(autouse=True)
def _forget() -> None:
    SEEN.clear()


class Rows(NamedTuple):
    inputs: Tensor
    targets: Tensor

    def rows(self, places: Tensor) -> Rows:
        return Rows(self.inputs[places], self.targets[places])


class Logistic(nn.Module):
    """The log-odds of class 1 are a weighted sum; inputs are recorded."""

    def __init__(self, weights: Sequence[float]) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.tensor(weights))

    def forward(self, x: Tensor) -> Tensor:
        SEEN.append(x.clone())
        return torch.stack((torch.zeros(len(x)), x @ self.weights), -1)


@dataclass(frozen=True)
class Known:
    """A learner that knows its weights without training."""

    weights: Sequence[float] = WEIGHTS
    title: str = "known"
    method: str = "known"

    def __call__(self, train: object, held_out: object, classes: int, seed: int) -> cb.Posterior:
        return cb.Point(Logistic(self.weights)).eval()


def drawn(n: int, seed: int, weights: Sequence[float] = WEIGHTS) -> Rows:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, len(weights), generator=generator)
    return Rows(x, torch.bernoulli((x @ torch.tensor(weights)).sigmoid(), generator=generator).long())


def cross_fit(rows: Rows, learner: Known | None = None, folds: int = 4, repeats: int = 1) -> CrossFit:
    places = [fold for seed in range(repeats) for fold in stratified_folds(rows.targets.numpy(), folds, seed=seed)]
    return CrossFit(learner or Known(), rows, 2, places).run()  # type: ignore[arg-type]


def true_increases(n: int = 1_000_000) -> list[float]:
    """The expected increases, from pairs of independent rows."""
    rows, others = drawn(n, 100), drawn(n, 101)
    weights, truth = torch.tensor(WEIGHTS), []
    plain = nn.functional.binary_cross_entropy_with_logits(rows.inputs @ weights, rows.targets.float())
    for place in range(len(WEIGHTS)):
        mixed = rows.inputs.clone()
        mixed[:, place] = others.inputs[:, place]
        truth.append(float(nn.functional.binary_cross_entropy_with_logits(mixed @ weights, rows.targets.float()) - plain))
    return truth


def test_columns_are_sorted_and_one_without_effect_has_exactly_none() -> None:
    found = permutation_importance([cross_fit(drawn(500, 0))], COLUMNS)
    assert [each.name for each in found] == ["strong", "weak", "none"]
    assert found[2][1:] == (0.0, 0.0, 0.0)
    assert [each.clear for each in found] == [True, True, False]
    assert all(each.low <= each.increase <= each.high for each in found)


@pytest.mark.parametrize(("n", "repeats"), [(60, 5), (400, 1), (400, 5)])
def test_intervals_hold_the_true_increase_as_often_as_they_say(n: int, repeats: int) -> None:
    truth = dict(zip(COLUMNS, true_increases(), strict=True))
    found = [
        each
        for seed in range(100)
        for each in permutation_importance([cross_fit(drawn(n, seed), folds=2)], COLUMNS, repeats=repeats, seed=seed)
    ]
    for name in ("strong", "weak"):
        own = [each for each in found if each.name == name]
        held = np.mean([each.low <= truth[name] <= each.high for each in own])
        assert held >= 0.90, (name, held)
        error = float(np.std([each.increase for each in own])) / math.sqrt(len(own))
        assert np.mean([each.increase for each in own]) == pytest.approx(truth[name], abs=4 * error)
        # Not so wide that they say nothing: at most twice the spread of the estimates themselves.
        half = np.mean([each.high - each.low for each in own]) / 2
        assert half < 2 * 1.96 * np.std([each.increase for each in own])


def test_a_useless_column_of_a_trained_model_is_not_clear() -> None:
    clear = 0
    for seed in range(40):
        rows = drawn(300, seed)
        # Trained by chance to use the third column a little, which has nothing to do with the class.
        learner = Known((2.0, 0.7, 0.2 if seed % 2 else -0.2))
        found = {each.name: each for each in permutation_importance([cross_fit(rows, learner)], COLUMNS, seed=seed)}
        clear += found["none"].clear
    assert clear <= 4


def test_values_come_from_held_out_rows_of_the_same_fold_and_each_is_used_once() -> None:
    rows = drawn(120, 3)
    part = cross_fit(rows)
    SEEN.clear()
    before = rows.inputs.clone()
    permutation_importance([part], COLUMNS, repeats=2)
    assert torch.equal(rows.inputs, before)
    folds = [set(map(float, rows.inputs[torch.from_numpy(fold.held_out), 0])) for fold in part.folds]
    moved = 0
    for batch in SEEN:
        (fold,) = [place for place, values in enumerate(folds) if float(batch[0, 0]) in values]
        held_out = rows.inputs[torch.from_numpy(part.folds[fold].held_out)]
        changed = [place for place in range(3) if not torch.equal(batch[:, place], held_out[:, place])]
        assert len(changed) <= 1
        for place in changed:
            assert torch.equal(batch[:, place].sort().values, held_out[:, place].sort().values)
            assert not (batch[:, place] == held_out[:, place]).any()
        moved += len(changed)
    assert moved == 3 * 2 * 4


def test_inputs_of_one_column_are_shuffled_together() -> None:
    rows = drawn(600, 4, (1.5, -1.5, 0.0))
    copied = Rows(torch.stack((rows.inputs[:, 0],) * 2, -1), rows.targets)
    learner = Known((1.5, -1.5))  # the difference of two equal inputs is always zero
    apart = permutation_importance([cross_fit(copied, learner)], {"a": [0], "b": [1]})
    together = permutation_importance([cross_fit(copied, learner)], {"both": [0, 1]})
    assert all(each.increase != 0 for each in apart)
    assert together[0][1:] == (0.0, 0.0, 0.0)


def test_a_blend_is_judged_by_the_mean_of_its_parts() -> None:
    rows = drawn(400, 5)
    parts = [cross_fit(rows, Known((2.0, 0.0, 0.0))), cross_fit(rows, Known((0.0, 0.7, 0.0)))]
    found = {each.name: each for each in permutation_importance(parts, COLUMNS)}
    alone = {each.name: each for each in permutation_importance(parts[:1], COLUMNS)}
    assert found["strong"].clear
    assert found["weak"].increase != 0
    assert alone["weak"].increase == 0
    assert 0 < found["strong"].increase < alone["strong"].increase


def test_the_seed_decides_and_the_other_columns_do_not() -> None:
    part = cross_fit(drawn(300, 6))
    first = permutation_importance([part], COLUMNS, seed=1)
    assert permutation_importance([part], COLUMNS, seed=1) == first
    assert permutation_importance([part], COLUMNS, seed=2) != first
    assert permutation_importance([part], {"weak": [1]}, seed=1)[0] == next(each for each in first if each.name == "weak")


def test_rows_and_time_are_bounded() -> None:
    part = cross_fit(drawn(3000, 7))
    SEEN.clear()
    found = permutation_importance([part], COLUMNS, max_rows=200, repeats=1)
    assert len(found) == 3
    assert sum(len(batch) for batch in SEEN) == 200 * 4  # as they are, and once for each column
    (first,) = permutation_importance([part], COLUMNS, seconds=1e-9)
    assert first.name == "strong"  # it differs most between the classes


def test_only_the_first_repeat_of_folds_is_used() -> None:
    rows = drawn(200, 8)
    assert permutation_importance([cross_fit(rows, repeats=2)], COLUMNS) == permutation_importance([cross_fit(rows)], COLUMNS)


def test_missing_values_are_shuffled_like_others() -> None:
    class Filled(Logistic):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x.nan_to_num())

    class Filling(Known):
        def __call__(self, train: object, held_out: object, classes: int, seed: int) -> cb.Posterior:
            return cb.Point(Filled(self.weights)).eval()

    rows = drawn(300, 9)
    rows.inputs[::3, 0] = math.nan
    rows.inputs[:, 2] = math.nan
    found = permutation_importance([cross_fit(rows, Filling())], COLUMNS)
    assert found[0].name == "strong"
    assert all(math.isfinite(each.increase) for each in found)


def test_wrong_arguments_are_named() -> None:
    part = cross_fit(drawn(100, 0))
    with pytest.raises(InvalidArgumentError, match=r"'age' to places from 0 to 2, but got \[3\]"):
        permutation_importance([part], {"age": [3]})
    with pytest.raises(InvalidArgumentError, match="at least one"):
        permutation_importance([], COLUMNS)
    untrained = CrossFit(Known(), drawn(100, 0), 2, part.folds)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="0 of 4 members"):
        permutation_importance([untrained], COLUMNS)
    other = CrossFit(Known(), drawn(100, 0), 2, stratified_folds(drawn(100, 0).targets.numpy(), 4, seed=9)).run()  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="same folds"):
        permutation_importance([part, other], COLUMNS)
    assert permutation_importance([part], {}) == ()
