"""Checks that cannot fail are worthless: every fault is found, by the check whose business it is."""

from __future__ import annotations

import pytest
from tests.testing import broken
from torch import nn

import calibayes as cb
from calibayes.errors import InvalidArgumentError

GROUPS = [
    (broken.GlobalNoise, "draws_have_the_generators_noise", "is all noise the generator's"),
    (broken.NoNoise, "draws_have_the_generators_noise", "does `draw` use its generator"),
    (broken.WrongPullBack, "pull_back", "3 sample.*autograd through `draw`"),
    (broken.TwiceTheKL, "kl", "log q - log p"),
    (broken.WrongKLGradient, "kl", "`pull_back_kl`"),
    (broken.WrongMean, "mean_and_spread", "`mean` of group"),
    (broken.WrongSpread, "mean_and_spread", "`std` of group"),
    (broken.StateInAnAttribute, "save_and_load", "is all it knows in its state"),
    (broken.NotTrained, "everything_is_trained", "do not move .*rho"),
]
POSTERIORS = [
    (broken.ChangesTheNetwork, "network_is_left_alone", "the network that was given"),
    (broken.Silent, "audit", "0.weight"),
    (broken.CountsWrong, "roles", "`num_bayesian`"),
    (broken.MaskOfTheBatch, "samples_do_not_depend_on_the_batch", "batch_size=1"),
    (broken.SeedOfThePast, "samples_do_not_depend_on_their_number", "sample 0"),
]


def test_a_sound_one_passes() -> None:
    cb.testing.check_posterior(broken.Broken)


@pytest.mark.parametrize(("group", "check", "problem"), GROUPS)
def test_a_broken_group(group: type[broken.Sound], check: str, problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broken.Broken, "group", group)
    with pytest.raises(AssertionError, match=f"(?s)^Broken fails the check '{check}' on the network 'perceptron': .*{problem}"):
        cb.testing.check_posterior(broken.Broken)


@pytest.mark.parametrize(("posterior", "check", "problem"), POSTERIORS)
def test_a_broken_posterior(posterior: type[broken.Broken], check: str, problem: str) -> None:
    expected = f"(?s)^{posterior.__name__} fails the check '{check}' on the network 'perceptron': .*{problem}"
    with pytest.raises(AssertionError, match=expected):
        cb.testing.check_posterior(posterior)


def test_settings_that_are_not_saved() -> None:
    def tempered(net: nn.Module) -> cb.Posterior:
        return broken.ForgetsItsSettings(net, temperature=2.0)

    with pytest.raises(AssertionError, match=r"^ForgetsItsSettings fails the check 'save_and_load'.*in its state"):
        cb.testing.check_posterior(tempered)


def test_a_fault_that_shows_on_one_network_only() -> None:
    def fails_on_norms(net: nn.Module) -> cb.Posterior:
        assert not any(isinstance(part, nn.BatchNorm2d) for part in net.modules()), "no norms, please"
        return cb.Point(net)

    with pytest.raises(AssertionError, match="'convolutions with batch norm': no norms, please"):
        cb.testing.check_posterior(fails_on_norms)


def test_checks_can_be_left_out_by_name() -> None:
    skipped = ("samples_do_not_depend_on_the_batch",)
    with pytest.raises(AssertionError, match="predictions_for_data_of_every_kind"):
        cb.testing.check_posterior(broken.MaskOfTheBatch, skip=skipped)
    with pytest.raises(InvalidArgumentError, match="no check 'btach' to skip; there are network_is_left_alone"):
        cb.testing.check_posterior(cb.Point, skip=("btach",))
    with pytest.raises(InvalidArgumentError, match="'skorch'"):
        cb.testing.check_posterior(cb.Point, doors=("skorch",))


def test_what_is_no_posterior() -> None:
    def network_alone(net: nn.Module) -> cb.Posterior:
        return net  # type: ignore[return-value]

    with pytest.raises(AssertionError, match="network_is_left_alone"):
        cb.testing.check_posterior(network_alone)
