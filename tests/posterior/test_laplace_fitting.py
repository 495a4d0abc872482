"""Fitting the last-layer Laplace approximation to data and networks, its training, files and copies."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.posterior.laplace_cases import KINDS, WIDE, Net, data, fitted, precision
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

import calibayes as cb


class Output(dict[str, Tensor]):
    @property
    def logits(self) -> Tensor:
        return self["logits"]


class Wrapped(Net):
    def forward(self, x: Tensor) -> Any:
        return Output(logits=super().forward(x))


def test_logits_in_an_object_are_found() -> None:
    net, xy = Net().to(WIDE), data()
    wrapped = Wrapped().to(WIDE)
    wrapped.load_state_dict(net.state_dict())
    torch.testing.assert_close(precision(fitted(wrapped, xy)), precision(fitted(net, xy)))


@pytest.mark.parametrize("kind", KINDS)
def test_streaming_is_the_same_as_all_at_once_and_leaves_global_generators_alone(kind: str) -> None:
    net, (x, y) = Net().to(WIDE), data()
    whole = fitted(net, (x, y), "marginal-likelihood", covariance=kind)
    reads: list[int] = []

    class Counting(TensorDataset):
        def __getitem__(self, index: int) -> tuple[Tensor, ...]:
            reads.append(index)
            return x[index], y[index]

    loader, state = DataLoader(Counting(x, y), batch_size=7, shuffle=True), torch.get_rng_state()
    streamed = fitted(net, loader, "marginal-likelihood", covariance=kind)
    assert sorted(reads) == list(range(40))
    assert torch.equal(torch.get_rng_state(), state)
    torch.testing.assert_close(precision(streamed), precision(whole))
    assert streamed.log_marginal_likelihood == pytest.approx(whole.log_marginal_likelihood)
    torch.testing.assert_close(
        precision(fitted(net, TensorDataset(x, y), whole.prior_precision, covariance=kind)), precision(whole)
    )


def test_the_given_network_is_left_alone() -> None:
    net, xy = Net().to(WIDE).train(), data()
    net.body.requires_grad_(False)
    net.drop.eval()
    before, modes = copy.deepcopy(net.state_dict()), [part.training for part in net.modules()]
    posterior = fitted(cb.Point(net), xy)
    same = fitted(net, xy)
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())
    assert [part.training for part in net.modules()] == modes
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in net.modules())
    assert not posterior.training
    torch.testing.assert_close(precision(posterior), precision(same))
    assert not fitted(net.requires_grad_(False), xy, where="head.*").training  # a frozen network will do


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bias", [True, False])
def test_files_state_and_copies_give_the_same_bits(kind: str, bias: bool, tmp_path: Path) -> None:
    x, y = data(dtype=torch.float32)
    net = Net(bias=bias)
    posterior = fitted(net, (x, y), "marginal-likelihood", covariance=kind, temperature=0.5)
    cb.save(posterior, tmp_path / "model.safetensors")
    loaded = cb.load(tmp_path / "model.safetensors", Net(bias=bias))
    assert isinstance(loaded, cb.LastLayerLaplace)
    frozen_body = Net(bias=bias)
    frozen_body.body.requires_grad_(False)
    filled = cb.LastLayerLaplace(frozen_body, "head", kind).eval()  # type: ignore[arg-type]
    filled.load_state_dict(posterior.state_dict())
    expected = cb.predict(posterior, x, samples=7)
    for other in (loaded, filled, copy.deepcopy(posterior)):
        assert torch.equal(cb.predict(other, x, samples=7).probs, expected.probs)
        assert other.prior_precision == posterior.prior_precision
        assert other.log_marginal_likelihood == posterior.log_marginal_likelihood
        assert torch.equal(other.kl(), posterior.kl())
    assert (loaded.config(), loaded.prior()) == (posterior.config(), posterior.prior())


def test_the_audit_says_what_is_done(capsys: pytest.CaptureFixture[str]) -> None:
    fitted().audit()
    message = capsys.readouterr().out
    for words in ("gives the network's output", "held at its trained value", "once per input"):
        assert words in message


def test_trained_by_fit_it_is_a_point_and_then_fitted() -> None:
    torch.manual_seed(3)
    net, xy = Net(), data(dtype=torch.float32)
    point, posterior = cb.Point(net), cb.LastLayerLaplace(net, prior_precision=0.5)
    for each in (point, posterior):
        cb.fit(each, xy, cb.Objective(lam=5.0), epochs=3, batch_size=16, seed=1, samples=1)
    for name, weight in point.mean().items():
        torch.testing.assert_close(posterior.mean()[name], weight)
    after = cb.LastLayerLaplace.from_point(point, xy, 0.5)
    torch.testing.assert_close(
        cb.predict(posterior, xy[0], samples="closed-form").probs, cb.predict(after, xy[0], samples="closed-form").probs
    )
    assert posterior.log_marginal_likelihood == pytest.approx(after.log_marginal_likelihood, rel=1e-5)


def test_until_it_is_fitted_it_is_a_point() -> None:
    torch.manual_seed(3)
    net, xy = Net(), data(dtype=torch.float32)
    histories = [
        cb.fit(each, xy, cb.Objective(lam=0.0), epochs=4, batch_size=16, seed=1, validation=xy)
        for each in (cb.Point(net), cb.LastLayerLaplace(net))
    ]
    for row, expected in zip(*(history.epochs for history in reversed(histories)), strict=True):
        assert row["val_nll"] == pytest.approx(expected["val_nll"], rel=1e-5)
    fresh = cb.LastLayerLaplace(net)
    assert not fresh.random
    assert float(fresh.eval().kl().detach()) == 0
