from __future__ import annotations

import copy
import gc
from collections import UserDict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from tests.posterior.zoo import CASES, Case, OneDict, SeveralInputs, mlp, normalised
from torch import Tensor, nn
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    TensorDataset,
)

import calibayes as cb
from calibayes.randomness import generator_for

cases = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


def wide(net: nn.Module | None = None) -> cb.MeanField:
    return cb.MeanField(mlp() if net is None else net, init_std=0.5)


@cases
def test_average_over_an_explicit_loop(case: Case) -> None:
    posterior, inputs = wide(case.build()).eval(), case.inputs()
    probs = []
    with torch.no_grad():
        for s in range(5):
            vectors = posterior.draw(generator_for(torch.device("cpu"), 3, "predict", s))
            probs.append(posterior.call(vectors, inputs).softmax(-1))
    each = torch.stack(probs)
    found = cb.predict(posterior, inputs, samples=5, seed=3, keep_samples=True)
    assert found.samples is not None
    assert torch.equal(found.samples, each)
    assert torch.allclose(found.probs, each.mean(0), atol=1e-6)
    assert torch.allclose(found.aleatoric, torch.special.entr(each).sum(-1).mean(0), atol=1e-6)
    assert torch.equal(found.confidence, found.probs.amax(-1))
    assert torch.equal(found.decision, found.probs.argmax(-1))


@cases
def test_batch_size_does_not_matter(case: Case) -> None:
    posterior, inputs = wide(case.build()), case.inputs()
    one, seven, many = (cb.predict(posterior, inputs, samples=4, batch_size=size) for size in (1, 7, 512))
    for other in (seven, many):
        assert torch.allclose(one.probs, other.probs, atol=1e-6)
        assert torch.allclose(one.aleatoric, other.aleatoric, atol=2e-6)


def test_seed_decides() -> None:
    posterior, x = wide(), torch.randn(9, 4)
    one, same, other = (cb.predict(posterior, x, samples=3, seed=seed).probs for seed in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.allclose(one, other, atol=1e-3)


def test_more_samples_begin_with_the_same_ones() -> None:
    posterior, x = wide(), torch.randn(9, 4)
    few, many = (cb.predict(posterior, x, samples=count, keep_samples=True).samples for count in (3, 8))
    assert few is not None
    assert many is not None
    assert torch.equal(many[:3], few)


def test_the_global_generator_is_left_alone() -> None:
    posterior = wide(normalised()).train()
    state = torch.get_rng_state()
    cb.predict(posterior, torch.zeros(4, 2, 3, 3), samples=3)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("scale", [0.1, 1.0, 100.0])
def test_uncertainty_adds_up(scale: float) -> None:
    found = cb.predict(wide(), scale * torch.randn(50, 4), samples=10)
    assert torch.allclose(found.entropy, found.aleatoric + found.epistemic, atol=1e-6)
    assert bool((found.epistemic >= 0).all())
    assert bool((found.aleatoric >= 0).all())
    assert float(found.epistemic.max()) > 0.01


@pytest.mark.parametrize("posterior", [cb.Point(mlp()), wide()], ids=["point", "mean"])
def test_one_network_has_nothing_to_disagree_about(posterior: cb.Point | cb.MeanField) -> None:
    found = cb.predict(posterior, torch.randn(20, 4), samples="mean", keep_samples=True)
    assert not bool(found.epistemic.any())
    assert torch.equal(found.entropy, found.aleatoric)
    assert found.samples is not None
    assert torch.equal(found.samples, found.probs[None])


def test_a_point_runs_once_whatever_is_asked() -> None:
    found = cb.predict(cb.Point(mlp()), torch.randn(5, 4), samples=20, keep_samples=True)
    assert found.samples is not None
    assert found.samples.shape == (1, 5, 3)


def test_small_probabilities_are_kept_in_float64() -> None:
    net = nn.Linear(1, 2, bias=False)
    nn.init.constant_(net.weight[:1], 200.0)
    nn.init.zeros_(net.weight[1:])
    for dtype, lowest in ((None, 0.0), (torch.float64, np.exp(-200.0))):
        probs = cb.predict(cb.Point(net), torch.ones(1, 1), dtype=dtype).probs
        assert probs.dtype == (dtype or torch.float32)
        assert float(probs[0, 1]) == pytest.approx(lowest, rel=1e-9)


def test_samples_are_not_kept_unasked() -> None:
    assert cb.predict(wide(), torch.randn(5, 4), samples=3).samples is None


class Rows(Dataset[Any]):
    """Examples of any structure, one by one."""

    def __init__(self, rows: list[Any]) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Any:
        return self.rows[index]


def sources() -> dict[str, Callable[[Tensor, Tensor], Any]]:
    def loader(dataset: Dataset[Any]) -> DataLoader[Any]:
        return DataLoader(dataset, batch_size=5)

    return {
        "dataset": TensorDataset,
        "dataset without labels": lambda x, _: TensorDataset(x),
        "dataset of tensors": lambda x, _: Rows(list(x)),
        "loader": lambda x, y: loader(TensorDataset(x, y)),
        "loader without labels": lambda x, _: loader(TensorDataset(x)),
        "loader with its own batches": lambda x, y: DataLoader(
            TensorDataset(x, y), batch_sampler=BatchSampler(range(len(x)), 4, drop_last=False)
        ),
        "array": lambda x, _: x.numpy(),
    }


@pytest.mark.parametrize("make", sources().values(), ids=sources().keys())
def test_sources_of_one_input(make: Callable[[Tensor, Tensor], Any]) -> None:
    posterior, x, y = wide(), torch.randn(13, 4), torch.zeros(13, dtype=torch.long)
    expected = cb.predict(posterior, x, samples=3).probs
    assert torch.allclose(cb.predict(posterior, make(x, y), samples=3, batch_size=4).probs, expected, atol=1e-6)


def test_sources_of_several_inputs() -> None:
    posterior = wide(SeveralInputs())
    a, b, y = torch.randn(13, 4), torch.randn(13, 2), torch.zeros(13, dtype=torch.long)
    named = [{"a": a[k], "b": b[k], "labels": y[k]} for k in range(13)]
    expected = cb.predict(posterior, (a, b), samples=3).probs
    for x in (
        [a, b],
        {"b": b, "a": a},
        TensorDataset(a, b, y),
        DataLoader(TensorDataset(a, b, y), batch_size=5),
        Rows(named),
        Rows([((a[k], b[k]), y[k]) for k in range(13)]),
        DataLoader(Rows(named), batch_size=5, collate_fn=_as_user_dict),
    ):
        assert torch.allclose(cb.predict(posterior, x, samples=3).probs, expected, atol=1e-6)
    one = cb.MeanField(OneDict(), init_std=0.5)
    one.load_state_dict(posterior.state_dict())
    assert torch.equal(cb.predict(one, ({"a": a, "b": b},), samples=3).probs, expected)


def _as_user_dict(rows: list[dict[str, Tensor]]) -> UserDict[str, Tensor]:
    return UserDict({key: torch.stack([row[key] for row in rows]) for key in rows[0]})


class Watching(nn.Module):
    """Records, in some of its runs, how many numbers all living tensors hold."""

    def __init__(self, record: dict[int, int]) -> None:
        super().__init__()
        self.linear, self.record, self.runs = nn.Linear(4, 3), record, 0

    def __deepcopy__(self, memo: dict[int, Any]) -> Watching:
        made = Watching(self.record)
        made.linear = copy.deepcopy(self.linear, memo)
        return made

    def forward(self, x: Tensor) -> Tensor:
        if self.runs in self.record:
            self.record[self.runs] = sum(held.numel() for held in gc.get_objects() if issubclass(type(held), Tensor))
        self.runs += 1
        return self.linear(x)  # type: ignore[no-any-return]


def growth(x: Any, samples: int, **settings: Any) -> int:
    """By how much the numbers held grow between the third sample's last run of four and the last sample's."""
    first, last = 11, 4 * samples - 1
    record = {first: 0, last: 0}
    cb.predict(cb.MeanField(Watching(record)), x, samples=samples, batch_size=16, **settings)
    return record[last] - record[first]


def test_memory_does_not_grow_with_samples() -> None:
    assert growth(torch.randn(64, 4), 40) <= 0
    assert growth(torch.randn(64, 4), 40, keep_samples=True) == 37 * 64 * 3
