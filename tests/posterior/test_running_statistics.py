"""Running statistics advance once a step, by the average over the samples."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.posterior.zoo import CASES, Buffers
from torch import Tensor, nn
from torch.func import functional_call

import calibayes as cb
from calibayes.posterior import StepStatistics
from calibayes.randomness import generator_for


def batch_normed() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5, momentum=0.3), nn.ReLU(), nn.Linear(5, 3)).double()


def data(examples: int = 12) -> tuple[Tensor, Tensor]:
    return torch.randn(examples, 4).double(), torch.arange(examples) % 3


@pytest.mark.parametrize("kind", [cb.Point, cb.MeanField])
@pytest.mark.parametrize("samples", [1, 4])
@pytest.mark.parametrize("settings", [{}, {"micro_batch_size": 2}, {"lam_on": "held-out"}], ids=["whole", "parts", "held out"])
def test_once_a_step(kind: Any, samples: int, settings: dict[str, Any]) -> None:
    settings = dict(settings)
    if settings.pop("lam_on", None):
        settings["calibration_data"] = data()
    posterior = kind(batch_normed())
    cb.fit(posterior, data(), cb.Objective(), epochs=2, batch_size=4, samples=samples, **settings)
    assert int(posterior.buffer_values()["1.num_batches_tracked"]) == 6


@pytest.mark.parametrize("samples", [1, 3, 4])
@pytest.mark.parametrize("parts", [1, 2])
def test_kept_is_the_average_of_the_samples_updates(samples: int, parts: int) -> None:
    net = batch_normed()
    posterior = cb.MeanField(net, init_std=0.5)
    x, y = data()
    updates = []
    for r in range(samples):
        vectors = posterior.draw(generator_for(torch.device("cpu"), 7, "noise", 0, 0, r))
        theta = {name: view for k, g in enumerate(posterior.groups) for name, view in g.layout.views(vectors[k]).items()}
        for part in x[_order(12)].chunk(parts):
            buffers = {name: buffer.clone() for name, buffer in net.named_buffers()}
            functional_call(net, {**theta, **buffers}, (part,))
            updates.append(buffers)
    cb.fit(
        posterior,
        (x, y),
        cb.Objective(),
        epochs=1,
        batch_size=12,
        samples=samples,
        seed=7,
        micro_batch_size=12 // parts,
    )
    for name in ("1.running_mean", "1.running_var"):
        expected = torch.stack([buffers[name] for buffers in updates]).mean(0)
        assert torch.allclose(posterior.buffer_values()[name], expected, rtol=1e-10)


def _order(examples: int) -> Tensor:
    return torch.randperm(examples, generator=generator_for(torch.device("cpu"), 7, "shuffle", 0))


def test_the_given_network_keeps_its_statistics() -> None:
    net = batch_normed()
    cb.fit(cb.MeanField(net), data(), cb.Objective(), epochs=1)
    assert int(net[1].num_batches_tracked) == 0  # type: ignore[index]
    assert not bool(net[1].running_mean.any())  # type: ignore[index]


@pytest.mark.parametrize("samples", [1, 3])
def test_constants_keep_their_bits_and_new_tensors_are_heard(samples: int) -> None:
    net, (x, y) = Buffers(), CASES["buffers"].data()
    posterior = cb.MeanField(net)
    cb.fit(posterior, (x, y), cb.Objective(), epochs=2, batch_size=len(y), samples=samples)
    kept = posterior.buffer_values()
    for name in ("values", "order", "table"):
        assert torch.equal(kept[name], net.get_buffer(name)), name
    seen = 0.1 * x.mean(0)
    assert torch.allclose(kept["seen"], 0.9 * seen + seen, atol=1e-6)


def test_infinite_entries_stay() -> None:
    net = nn.Linear(4, 3)
    net.register_buffer("mask", torch.tensor([float("-inf"), 0.1, torch.finfo(torch.float32).max]))
    posterior = cb.MeanField(net)
    statistics = StepStatistics(posterior)
    for _ in range(3):
        statistics.add(statistics.fresh(), 8)
    statistics.keep()
    assert torch.equal(posterior.buffer_values()["mask"], net.get_buffer("mask"))


def test_forward_in_training_mode_updates_the_posteriors_own() -> None:
    posterior, x = cb.Point(Buffers()).train(), torch.randn(6, 4)
    posterior(x)
    assert torch.allclose(posterior.buffer_values()["seen"], 0.1 * x.mean(0))
    assert torch.allclose(posterior.state_dict()["buffers_held.seen"], 0.1 * x.mean(0))
