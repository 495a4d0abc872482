"""Training an ensemble: one member after the other, in processes, or all together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import calibayes as cb
from calibayes.errors import InvalidArgumentError, UnsupportedNetworkError
from calibayes.posterior.ensemble import member_seed


def data(n: int = 90) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(5)
    x = torch.randn(n, 6, generator=generator)
    return x, x[:, :4].argmax(-1)


def net() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 10), nn.Tanh(), nn.Linear(10, 4))


def ensemble(kind: str = "mean field", make: Any = net) -> cb.Ensemble:
    def member(seed: int) -> cb.Posterior:
        return cb.Point(make()) if kind == "point" else cb.MeanField(make(), init_std=0.05)

    return cb.Ensemble.of(member, members=3, seed=1)


def fitted(posterior: cb.Posterior, **others: Any) -> cb.History:
    settings = {"epochs": 3, "batch_size": 25, "seed": 4, "progress": False, **others}
    return cb.fit(posterior, data(), cb.Objective(lam=5.0), **settings)


def weights(posterior: cb.Posterior) -> Tensor:
    return torch.cat([parameter.detach().reshape(-1) for parameter in posterior.parameters()])


@pytest.mark.parametrize("kind", ["point", "mean field"])
def test_every_member_is_trained_as_it_would_be_alone_with_its_own_seed(kind: str) -> None:
    whole, apart = ensemble(kind), ensemble(kind)
    history = fitted(whole)
    alone = [fitted(member, seed=member_seed(4, index)) for index, member in enumerate(apart.members)]
    assert torch.equal(weights(whole), weights(apart))
    assert history.members == alone
    assert history.epochs[-1]["total"] == pytest.approx(sum(each.epochs[-1]["total"] for each in alone) / 3)
    assert not whole.training


def test_members_have_orders_of_their_own() -> None:
    made = net()
    same = cb.Ensemble([cb.Point(made), cb.Point(made)])
    fitted(same)
    first, second = same.members
    assert not torch.equal(weights(first), weights(second))


def test_buffers_are_each_members_own() -> None:
    made = ensemble("point", lambda: nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 4)))
    fitted(made)
    means = [member.buffer_values()["1.running_mean"] for member in made.members]
    assert not torch.equal(means[0], means[1])


@pytest.mark.slow
def test_processes_give_the_same_bits() -> None:
    one, two = ensemble(), ensemble()
    assert fitted(one) == fitted(two, workers=2)
    assert torch.equal(weights(one), weights(two))


@pytest.mark.parametrize(("kind", "samples"), [("point", 1), ("mean field", 1), ("mean field", 3)])
def test_together_they_take_the_steps_that_each_would_take_alone(kind: str, samples: int) -> None:
    apart, together = ensemble(kind), ensemble(kind)
    others: dict[str, Any] = {
        "samples": samples,
        "clip_norm": 0.5,
        "averaging": cb.EMA(0.8),
        "optimizer": lambda parameters: torch.optim.AdamW(parameters, lr=0.01, weight_decay=0.1),
    }
    histories = [fitted(apart, **others), fitted(together, together=True, **others)]
    torch.testing.assert_close(weights(together), weights(apart), rtol=1e-4, atol=1e-5)
    for row, expected in zip(histories[1].epochs, histories[0].epochs, strict=True):
        assert row == pytest.approx(expected, rel=1e-3, abs=1e-4)


def test_together_with_weights_of_examples() -> None:
    apart, together = ensemble("point"), ensemble("point")
    x, y = data()
    counts = torch.arange(90) % 3 + 1.0
    for each, settings in ((apart, {}), (together, {"together": True})):
        cb.fit(each, (x, y, counts), cb.Objective(lam=5.0), epochs=2, batch_size=25, seed=4, **settings)  # type: ignore[arg-type]
    torch.testing.assert_close(weights(together), weights(apart), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("together", [False, True])
def test_what_is_interrupted_ends_with_the_same_bits(tmp_path: Path, together: bool) -> None:
    whole, parts = ensemble(), ensemble()
    expected = fitted(whole, epochs=4, together=together, validation=data(30))
    fitted(parts, epochs=2, together=together, validation=data(30), checkpoint=tmp_path / "run")
    again = ensemble()
    history = fitted(again, epochs=4, together=together, validation=data(30), checkpoint=tmp_path / "run")
    assert torch.equal(weights(again), weights(whole))
    assert history.epochs == expected.epochs


def test_together_validation_is_that_of_the_ensemble() -> None:
    made = ensemble("point")
    history = fitted(made, together=True, validation=data(40))
    x, y = data(40)
    assert history.epochs[-1]["val_nll"] == pytest.approx(cb.metrics.nll(cb.predict(made, x).probs, y), rel=1e-4)


def test_members_own_their_parameters_after_training_together(tmp_path: Path) -> None:
    made = ensemble("point")
    fitted(made, together=True)
    cb.save(made, tmp_path / "ensemble.safetensors")
    before = weights(made.members[1])
    with torch.no_grad():
        next(made.members[0].parameters()).zero_()
    assert torch.equal(weights(made.members[1]), before)


def test_refusals() -> None:
    with pytest.raises(InvalidArgumentError, match="`checkpoint`"):
        fitted(ensemble(), checkpoint="")
    with pytest.raises(InvalidArgumentError, match="`seed`"):
        fitted(ensemble(), seed="one")
    with pytest.raises(InvalidArgumentError, match="members of an ensemble apart, but this is not one"):
        fitted(cb.Point(net()), workers=2)
    with pytest.raises(InvalidArgumentError, match="members of an ensemble"):
        fitted(cb.Point(net()), together=True)
    with pytest.raises(InvalidArgumentError, match="leave one of the two out"):
        fitted(ensemble(), together=True, workers=2)
    with pytest.raises(InvalidArgumentError, match="member 2 is not like member 1"):
        fitted(cb.Ensemble([cb.Point(net()), cb.MeanField(net())]), together=True)
    with pytest.raises(InvalidArgumentError, match="NaturalGradient"):
        fitted(ensemble(), together=True, optimizer=cb.NaturalGradient())
    with pytest.raises(InvalidArgumentError, match="`on_epoch` cannot look into other processes"):
        fitted(ensemble(), workers=2, on_epoch=lambda posterior, epoch: None)
    normed = ensemble("point", lambda: nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 4)))
    with pytest.raises(UnsupportedNetworkError, match="vmap does not support their network"):
        fitted(normed, together=True)


def test_together_a_warm_start_takes_the_steps_that_each_would_take_alone() -> None:
    def member(seed: int) -> cb.Posterior:
        return cb.MeanField(net(), init_std=0.05, epochs_before=0.5)

    apart, together = (cb.Ensemble.of(member, members=2, seed=1) for _ in range(2))
    for each, at_once in ((apart, False), (together, True)):
        fitted(each, epochs=4, together=at_once)
    torch.testing.assert_close(weights(together), weights(apart), rtol=1e-4, atol=1e-5)


def test_together_losses_and_terms_see_one_member_at_a_time() -> None:
    def hinge(logits: Tensor, targets: Tensor) -> Tensor:
        assert logits.dim() == 2
        assert targets.shape == logits.shape[:1]
        return nn.functional.multi_margin_loss(logits, targets, reduction="none")

    apart, together = ensemble("point"), ensemble("point")
    for each, at_once in ((apart, False), (together, True)):
        cb.fit(each, data(), cb.Objective(lam=2.0, loss=hinge), epochs=2, batch_size=25, seed=4, together=at_once)
    torch.testing.assert_close(weights(together), weights(apart), rtol=1e-4, atol=1e-5)


def test_together_other_networks_and_decay_of_widths_are_refused() -> None:
    other = nn.Sequential(nn.Linear(6, 10), nn.ReLU(), nn.Linear(10, 4))
    with pytest.raises(InvalidArgumentError, match="member 2 is not like member 1"):
        fitted(cb.Ensemble([cb.Point(net()), cb.Point(other)]), together=True)

    def careless(groups: Any) -> torch.optim.Optimizer:
        return torch.optim.AdamW([each for group in groups for each in group["params"]], weight_decay=0.1)

    with pytest.raises(cb.errors.OptimizerError, match="rho"):
        fitted(ensemble(), together=True, optimizer=careless)


def test_members_with_other_columns_have_those_that_all_have() -> None:
    history = fitted(ensemble("point"), on_epoch=lambda posterior, epoch: {"first": 1.0} if epoch == 1 else None)
    assert ["first" in row for row in history.epochs] == [True, False, False]
