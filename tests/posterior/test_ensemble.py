"""Ensembles: a mixture of posteriors with equal weights."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import calibayes as cb
from calibayes.errors import InvalidArgumentError, ModelFileError
from calibayes.posterior.ensemble import member_seed


def network(inputs: int = 4, hidden: int = 8) -> nn.Module:
    return nn.Sequential(nn.Linear(inputs, hidden), nn.BatchNorm1d(hidden), nn.Tanh(), nn.Linear(hidden, 3))


def mixture(members: int = 3) -> cb.Ensemble:
    return cb.Ensemble.of(lambda seed: cb.MeanField(network(), init_std=0.4), members=members, seed=5)


def test_the_predictive_is_the_mean_of_the_members_predictives() -> None:
    ensemble, x = mixture(), torch.randn(10, 4)
    whole = cb.predict(ensemble, x, samples=12, seed=7)
    alone = [cb.predict(m, x, samples=4, seed=member_seed(7, k)) for k, m in enumerate(ensemble.members)]
    torch.testing.assert_close(whole.probs, torch.stack([each.probs for each in alone]).mean(0))
    torch.testing.assert_close(whole.aleatoric, torch.stack([each.aleatoric for each in alone]).mean(0))
    within = torch.stack([each.epistemic for each in alone]).mean(0)
    torch.testing.assert_close(whole.within, within, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(whole.between + whole.within, whole.epistemic)
    assert bool((whole.between > 0).all())


def test_members_weigh_the_same_whatever_their_number_of_samples() -> None:
    point, wide, x = cb.Point(network()), cb.MeanField(network(), init_std=0.4), torch.randn(6, 4)
    whole = cb.predict(cb.Ensemble([point, wide]), x, samples=20)
    halves = cb.predict(point, x).probs + cb.predict(wide, x, samples=10, seed=member_seed(0, 1)).probs
    torch.testing.assert_close(whole.probs, halves / 2)


def test_one_member_is_that_member() -> None:
    member, x = cb.MeanField(network(), init_std=0.4), torch.randn(6, 4)
    one, other = cb.predict(cb.Ensemble([member]), x, samples=8), cb.predict(member, x, samples=8)
    assert torch.equal(one.probs, other.probs)
    assert torch.equal(one.between, torch.zeros(6))


def test_batches_do_not_matter() -> None:
    ensemble, x = mixture().eval(), torch.randn(11, 4)
    one, other = (cb.predict(ensemble, x, samples=6, batch_size=size, keep_samples=True) for size in (11, 4))
    torch.testing.assert_close(one.probs, other.probs)
    assert one.samples is not None
    assert one.samples.shape == (6, 11, 3)


def _drawn(posterior: cb.NetworkPosterior) -> list[Tensor]:
    with torch.no_grad():
        return list(posterior.sample(20000).values())


def test_the_kl_is_the_mean_of_the_members_and_no_less_than_the_mixtures_own() -> None:
    ensemble = cb.Ensemble.of(lambda seed: cb.MeanField(nn.Linear(2, 2).double(), prior_std=0.5, init_std=0.3), members=2)
    bound = float(ensemble.kl().detach())
    assert bound == pytest.approx(sum(float(m.kl().detach()) for m in ensemble.members) / 2)
    draws = torch.stack([torch.cat([w.reshape(20000, -1) for w in _drawn(m)], 1) for m in ensemble.members])
    normal = torch.distributions.Normal
    own = [normal(m.mu.detach(), m.rho.detach().exp()) for m in ensemble.members if isinstance(m, cb.MeanField)]
    logs = torch.stack([q.log_prob(draws.reshape(40000, -1)).sum(-1) for q in own])
    mixed = (logs.logsumexp(0) - torch.log(torch.tensor(2.0))).mean()
    prior = normal(0.0, 0.5).log_prob(draws).sum(-1).mean()
    assert float(mixed - prior) <= bound + 0.02


def test_members_start_from_weights_of_their_own_and_the_same_seed_gives_them_again() -> None:
    one, other = mixture(), mixture()
    assert not torch.equal(one.members[0].mean()["0.weight"], one.members[1].mean()["0.weight"])
    for mine, theirs in zip(one.parameters(), other.parameters(), strict=True):
        assert torch.equal(mine, theirs)


def test_one_file_holds_all_members(tmp_path: Path) -> None:
    ensemble = cb.Ensemble([cb.Point(network()), cb.MeanField(network(), prior_std={"0.*": 0.2, "*": 0.1})])
    ensemble.add(cb.MeanField(network(), where="3.*"))
    cb.save(ensemble, tmp_path / "ensemble.safetensors")
    loaded = cb.load(tmp_path / "ensemble.safetensors", network())
    assert [type(member) for member in loaded.members] == [cb.Point, cb.MeanField, cb.MeanField]
    x = torch.randn(5, 4)
    assert torch.equal(cb.predict(loaded, x, samples=6).probs, cb.predict(ensemble, x, samples=6).probs)


def test_members_of_an_ensemble_become_members_one_by_one() -> None:
    assert len(cb.Ensemble([mixture(2), cb.Point(network())]).members) == 3


def test_members_of_different_networks_are_saved_and_loaded(tmp_path: Path) -> None:
    ensemble = cb.Ensemble([cb.Point(network()), cb.MeanField(network(hidden=6))])
    cb.save(ensemble, tmp_path / "x.safetensors")
    x = torch.randn(5, 4)
    loaded = cb.load(tmp_path / "x.safetensors", [network(), network(hidden=6)])
    assert torch.equal(cb.predict(loaded, x).probs, cb.predict(ensemble, x).probs)
    with pytest.raises(ModelFileError, match="is of another architecture"):
        cb.load(tmp_path / "x.safetensors", network())
    with pytest.raises(ModelFileError, match="2 members, but got 3 networks"):
        cb.load(tmp_path / "x.safetensors", [network(), network(hidden=6), network()])


def test_refusals() -> None:
    with pytest.raises(InvalidArgumentError, match="at least one posterior"):
        cb.Ensemble([])
    with pytest.raises(InvalidArgumentError, match="got Sequential"):
        cb.Ensemble([network()])  # type: ignore[list-item]
    member = cb.Point(network())
    with pytest.raises(InvalidArgumentError, match="every member once"):
        cb.Ensemble([member, member])
    with pytest.raises(InvalidArgumentError, match="list of posteriors"):
        cb.Ensemble(member)  # type: ignore[arg-type]


def test_the_audit_shows_members_that_are_alike_once(capsys: pytest.CaptureFixture[str]) -> None:
    cb.Ensemble([cb.Point(network()), cb.Point(network()), cb.MeanField(network())]).audit()
    shown = capsys.readouterr().out
    assert shown.startswith("3 members (Point, MeanField)")
    assert shown.count("Bayesian,") == 2
