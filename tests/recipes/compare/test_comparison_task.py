"""What a task must be, and what it is known by."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from tests.recipes.compare.blobs import BLOBS, TINY, load

from calibayes.data import Splits
from calibayes.errors import DataOverlapError, InvalidArgumentError
from calibayes.recipes.compare import FASHION_MNIST
from calibayes.recipes.compare.comparison_task import digest
from calibayes.recipes.compare.trainings import run_trainings


def test_fashion_mnist_comes_in_the_sizes_that_are_asked_for() -> None:
    splits = FASHION_MNIST.load(50, 30, 20)
    assert [len(part[1]) for part in (splits.train, splits.validation, splits.test)] == [50, 30, 20]
    assert FASHION_MNIST.network()(splits.test[0]).shape == (20, 10)


def test_a_digest_sees_every_number_and_its_place() -> None:
    x, y = torch.arange(6.0).reshape(3, 2), torch.arange(3)
    changed = x.clone()
    changed[2, 1] += 1e-6
    others = [(changed, y), (x.flip(0), y), (x, y.flip(0)), (x.reshape(2, 3), y), (x.double(), y), (x[:2], y)]
    assert len({digest((x, y)), *(digest(pair) for pair in others)}) == 7
    assert digest((x.t().contiguous().t(), y)) == digest((x.clone(), y.clone()))  # the layout in memory is none of them


def test_what_cannot_be_sent_to_workers_is_named_before_they_start() -> None:
    local = replace(BLOBS, network=lambda: torch.nn.Linear(2, 3))
    with pytest.raises(InvalidArgumentError, match=r"task 'blobs' to be functions of a module.*Or use `workers=1`"):
        run_trainings(local, TINY, workers=2)


def leaking(train: int, validation: int, test: int) -> Splits:
    splits = load(train, validation, test)
    return replace(splits, test=splits.validation)


def test_parts_that_share_examples_are_refused() -> None:
    with pytest.raises(DataOverlapError, match="`validation` and `test` share examples"):
        run_trainings(replace(BLOBS, load=leaking), TINY, workers=1)


def test_an_impossible_number_of_workers_is_quoted() -> None:
    with pytest.raises(InvalidArgumentError, match="`workers` to be a positive integer, but got 0"):
        run_trainings(BLOBS, TINY, workers=0)
