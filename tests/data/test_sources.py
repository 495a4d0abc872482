"""Data of every kind as batches."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

from calibayes.data.overlap import check_apart
from calibayes.data.sources import Batch, as_source
from calibayes.distributed import ALONE, Processes
from calibayes.errors import DataError, DataOverlapError

X, Y = torch.arange(20.0).view(10, 2), torch.arange(10) % 3


def sources() -> dict[str, Any]:
    return {
        "tensors": as_source((X, Y), 4, "train"),
        "dataset": as_source(TensorDataset(X, Y), 4, "train"),
        "loader": as_source(DataLoader(TensorDataset(X, Y), batch_size=4, shuffle=True), 99, "train"),
    }


@pytest.mark.parametrize("kind", sources())
def test_an_epoch_has_every_example_once_with_its_label(kind: str) -> None:
    source = sources()[kind]
    batches = list(source.epoch(seed=0, epoch=0))
    assert [len(y) for _, y, *_ in batches] == ([4, 4, 2] if kind == "loader" else [4, 3, 3])  # no small one is left over
    assert source.steps() == 3
    assert source.size == 10
    seen = torch.cat([x for x, *_ in batches])
    assert torch.equal(seen[:, 0].sort().values, X[:, 0])
    for x, y, total, _ in batches:
        assert total == len(y)
        assert torch.equal(y, Y[(x[:, 0] / 2).long()])


@pytest.mark.parametrize("kind", sources())
def test_the_order_depends_on_seed_and_epoch_alone_and_can_be_entered_anywhere(kind: str) -> None:
    def order(seed: int, epoch: int, skip: int = 0) -> list[float]:
        torch.rand(3)  # whatever else draws from the global generator
        return [float(v) for x, *_ in sources()[kind].epoch(seed, epoch, skip) for v in x[:, 0]]

    first = order(1, 2)
    assert order(1, 2) == first
    assert order(1, 2, skip=1) == first[4:]
    assert order(1, 3) != first
    assert order(2, 2) != first


@pytest.mark.parametrize("kind", sources())
def test_drawn_examples_repeat_only_where_there_are_not_enough(kind: str) -> None:
    source = sources()[kind]
    x, y, *_ = source.draw(6, 0, "held-out", 1)
    assert len(set(x[:, 0].tolist())) == 6
    assert torch.equal(y, Y[(x[:, 0] / 2).long()])
    assert len(source.draw(25, 0, "held-out", 1)[1]) == 25
    assert torch.equal(source.draw(6, 0, "held-out", 1)[0], x)
    assert not torch.equal(source.draw(6, 0, "held-out", 2)[0], x)


class Unconnected(Processes):
    """Processes that cannot ask each other anything."""

    def differ(self, value: object) -> list[int]:
        return []


@pytest.mark.parametrize("kind", sources())
@pytest.mark.parametrize("size", [2, 3, 5])
def test_processes_share_out_the_batches_of_one(kind: str, size: int) -> None:
    source = sources()[kind]
    everyone = [Unconnected(None, rank, size) for rank in range(size)]
    ways: list[Callable[[Processes], list[Batch]]] = [
        lambda each: list(source.epoch(0, 1, processes=each)),
        lambda each: [source.draw(7, 0, "held-out", processes=each)],
    ]
    if kind != "loader":  # this one shuffles
        ways.append(lambda each: list(source.ordered(processes=each)))
    for way in ways:
        for whole, *shares in zip(way(ALONE), *map(way, everyone), strict=True):
            assert {share.total for share in shares} == {len(whole.targets)}
            own = [len(share.targets) if everyone[k].sizes(share.total)[k] else 0 for k, share in enumerate(shares)]
            assert max(own) - min(own) <= 1
            parts = [share.inputs[:count] for share, count in zip(shares, own, strict=True)]
            assert torch.equal(torch.cat(parts), whole.inputs)
            labels = [share.targets[:count] for share, count in zip(shares, own, strict=True)]
            assert torch.equal(torch.cat(labels), whole.targets)
            assert all(len(share.targets) >= 1 for share in shares)  # networks are never given nothing


class Jittered(Dataset[tuple[Tensor, Tensor]]):
    """Examples that come out otherwise each time."""

    def __len__(self) -> int:
        return 10

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return X[index] + torch.rand(()) + float(np.random.rand()) + random.random(), Y[index]


def test_what_a_dataset_makes_of_an_example_at_random_does_not_depend_on_the_number_of_processes() -> None:
    source = as_source(Jittered(), 4, "train")
    everyone = [ALONE, Processes(None, 0, 2), Processes(None, 1, 2)]
    for whole, *shares in zip(*(list(source.epoch(0, 1, processes=each)) for each in everyone), strict=True):
        assert torch.equal(torch.cat([share.inputs for share in shares]), whole.inputs)
    assert not torch.equal(next(iter(source.epoch(0, 1))).inputs, next(iter(source.epoch(0, 2))).inputs)


def test_inputs_keep_their_structure() -> None:
    (batch, targets, *_), *_ = as_source(({"a": X, "b": Y}, Y), 4, "train").ordered()
    assert torch.equal(batch["a"], X[:4])
    assert torch.equal(batch["b"], targets)
    (pair, *_), *_ = as_source(((X, X + 1), Y), 4, "train").ordered()
    assert torch.equal(pair[1], X[:4] + 1)


class Articles(Dataset[dict[str, Tensor]]):
    def __len__(self) -> int:
        return 5

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        return {"input_ids": X[index], "labels": Y[index]}


def test_a_dict_with_labels_is_inputs_and_targets() -> None:
    inputs, targets, *_ = next(as_source(DataLoader(Articles(), batch_size=5), 1, "train").ordered())
    assert list(inputs) == ["input_ids"]
    assert torch.equal(targets, Y[:5])


class Endless(IterableDataset[Tensor]):
    def __iter__(self) -> Any:
        while True:
            yield X[0], Y[0]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ((X, X, X, Y), "a tuple of"),
        ((X, X, Y), "targets of `train` must be class indices"),
        (None, "a NoneType"),
        (DataLoader(Endless()), "has no length"),
        ((X, Y[:3]), r"10 inputs.*shape \[3\]"),
        (((X, X[:3]), Y), r"\[10, 2\], \[3, 2\]"),
        (("ab", Y), "must be tensors"),
    ],
)
def test_other_data_gets_a_named_error(data: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        as_source(data, 4, "train")


def test_a_loader_of_inputs_alone_is_named() -> None:
    with pytest.raises(DataError, match=r"every batch of `train` to be \(inputs, targets\)"):
        next(as_source(DataLoader(TensorDataset(X)), 4, "train").ordered())


def of_a_subset(indices: Any, dataset: Any = None) -> DataLoader[Any]:
    return DataLoader(TensorDataset(X, Y) if dataset is None else dataset, batch_size=2, sampler=SubsetRandomSampler(indices))


@pytest.mark.parametrize("indices", [[1, 4, 7, 8], torch.tensor([1, 4, 7, 8])])
def test_the_examples_of_a_loader_are_those_that_its_sampler_chooses_from(indices: Any) -> None:
    source = as_source(of_a_subset(indices), 99, "train")
    assert source.size == 4
    drawn = torch.cat([source.draw(3, 0, "held-out", step).inputs for step in range(8)])
    assert set((drawn[:, 0] / 2).int().tolist()) == {1, 4, 7, 8}
    weighted = DataLoader(TensorDataset(X, Y), batch_size=2, sampler=WeightedRandomSampler([1.0] * 10, 4))
    assert as_source(weighted, 99, "train").size == 10


def test_loaders_of_different_examples_of_a_data_set_are_apart() -> None:
    whole: Any = TensorDataset(X, Y)
    half = Subset(whole, [5, 6, 7, 8])
    check_apart(of_a_subset([0, 1], whole), of_a_subset([2, 3], whole), "a", "b")
    check_apart(of_a_subset([0, 1], half), Subset(whole, [0, 7]), "a", "b")
    for other in (of_a_subset(torch.tensor([1, 2]), whole), Subset(whole, [1]), whole):
        with pytest.raises(DataOverlapError):
            check_apart(of_a_subset([0, 1], whole), other, "a", "b")
    with pytest.raises(DataOverlapError):
        check_apart(of_a_subset([0, 1], half), Subset(whole, [6]), "a", "b")


def test_a_dict_without_labels_is_told_by_its_keys() -> None:
    rows: Any = [{"x": X[0], "label": 1}]
    loader: DataLoader[Any] = DataLoader(rows, batch_size=1)
    with pytest.raises(DataError, match=r"a dict with 'labels', but got a dict with \['x', 'label'\]"):
        next(iter(as_source(loader, 1, "train").epoch(seed=0, epoch=0)))
