"""The module and dataloaders: the number of examples, and randomness in them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, SubsetRandomSampler, TensorDataset, WeightedRandomSampler

pytest.importorskip("lightning")
from tests.lightning.toy import MARKS, N, data, module, perceptron, trainer

import calibayes as cb
from calibayes.lightning import CalibayesModule
from calibayes.lightning.loaders import number_of_examples, shuffle_by_epoch

pytestmark = MARKS


def test_the_examples_are_those_that_a_sampler_chooses_from() -> None:
    dataset: Any = TensorDataset(*data())
    chosen = DataLoader(dataset, batch_size=5, sampler=SubsetRandomSampler(range(15)))
    assert number_of_examples(chosen) == 15
    assert number_of_examples(DataLoader(dataset, sampler=WeightedRandomSampler([1.0] * N, 15))) == N
    here, run = module("bnn"), trainer(1)
    run.fit(here, chosen)
    terms = run.callback_metrics
    assert float(terms["train_loss"]) == pytest.approx(float(terms["cross_entropy"] + 0.1 / 15 * terms["kl"]), rel=1e-5)


class Random(Dataset[Any]):
    """Examples that are noise, from PyTorch's global generator."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return torch.randn(6, dtype=torch.float64), 0


class Seeing(CalibayesModule):
    """Notes the batches of an epoch as one of several processes gets them."""

    def __init__(self, rank: int) -> None:
        super().__init__(perceptron(), cb.Objective(lam=0.0))
        self.rank, self.seen = rank, list[Tensor]()

    @property
    def global_rank(self) -> int:
        return self.rank

    def training_step(self, batch: Any, batch_idx: int) -> Tensor:
        self.seen.append(batch[0])
        return super().training_step(batch, batch_idx)


def test_no_two_processes_change_their_examples_alike() -> None:
    found = []
    for rank in (0, 1, 1):
        here = Seeing(rank)
        trainer(2).fit(here, DataLoader(Random(), batch_size=2))
        found.append(torch.stack(here.seen))
    assert torch.equal(found[1], found[2])
    assert all(not torch.equal(*batches) for batches in zip(found[0], found[1], strict=True))


def test_workers_of_two_processes_have_seeds_of_their_own() -> None:
    loaders = [DataLoader(Random()) for _ in range(2)]
    for rank, loader in enumerate(loaders):
        shuffle_by_epoch(loader, seed=0, epoch=1, rank=rank)
    first, second = (loader.generator.initial_seed() for loader in loaders)
    assert first != second
