"""Scaling an ensemble by its members' out-of-fold predictions: closer to the best temperature than members' own."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from calibayes.errors import InvalidArgumentError, InvalidProbabilitiesError
from calibayes.metrics import nll
from calibayes.posthoc import SharpenedScaling, TemperatureScaling, VectorScaling, ensemble_scaling


def members_of(n: int, number: int, noise: float, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Members that add noise of their own to shared logits, ``[number, n, 3]``, and labels."""
    generator = torch.Generator().manual_seed(seed)
    truth = 2 * torch.randn(n, 3, generator=generator).double()
    labels = torch.multinomial(truth.softmax(-1), 1, generator=generator)[:, 0]
    shift = noise * torch.randn(number, n, 3, generator=generator).double()
    return (1.3 * (truth + shift)).softmax(-1), labels


@pytest.mark.parametrize("noise", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("rounds", [2, 3])
def test_it_is_closer_to_the_best_than_members_or_averages(noise: float, rounds: int) -> None:
    members, labels = members_of(4000, 10, noise)
    best, single, average = (
        np.log(TemperatureScaling().fit(probs, labels).temperature)
        for probs in (members.mean(0), members[0], members[:rounds].mean(0))
    )
    scaling = ensemble_scaling(members[:rounds], labels, members=10)
    assert isinstance(scaling, TemperatureScaling)
    found = np.log(scaling.temperature)
    assert abs(found - best) < abs(average - best) < abs(single - best)


def test_the_extrapolation_is_its_formula() -> None:
    members, labels = members_of(1000, 2, 1.0)
    of_one = TemperatureScaling().fit(members.flatten(0, 1), labels.repeat(2)).temperature
    of_two = TemperatureScaling().fit(members.mean(0), labels).temperature
    for number in (2, 5, 10):
        scaling = ensemble_scaling(members, labels, members=number)
        assert isinstance(scaling, TemperatureScaling)
        expected = of_two * (of_two / of_one) ** ((1 / 2 - 1 / number) / (1 - 1 / 2))
        assert scaling.temperature == pytest.approx(expected, rel=1e-6)


def test_one_round_goes_half_the_way() -> None:
    members, labels = members_of(1000, 1, 1.0)
    alone = TemperatureScaling().fit(members[0], labels).temperature
    for probs in (members, members[0]):
        scaling = ensemble_scaling(probs, labels, members=5)
        assert isinstance(scaling, TemperatureScaling)
        assert scaling.temperature == pytest.approx(alone**0.5, rel=1e-6)
    single = ensemble_scaling(members, labels, members=1)
    assert isinstance(single, TemperatureScaling)
    assert single.temperature == pytest.approx(alone, rel=1e-6)


def test_members_that_agree_need_no_sharpening() -> None:
    members, labels = members_of(1000, 1, 1.0)
    scaling = ensemble_scaling(members.expand(2, -1, -1), labels, members=10)
    assert isinstance(scaling, TemperatureScaling)
    assert scaling.temperature == pytest.approx(TemperatureScaling().fit(members[0], labels).temperature, rel=1e-6)


def test_other_methods_see_the_sharpened_ensemble() -> None:
    members, labels = members_of(3000, 10, 1.5)
    by_vector = ensemble_scaling(members[:2], labels, members=10, method="vector")
    assert isinstance(by_vector, SharpenedScaling)
    assert by_vector.sharpness > 1.1
    ensemble = members.mean(0)
    inner = VectorScaling().fit(members[:2].mean(0), labels)
    expected = inner.transform(by_vector.sharpness * ensemble.log(), logits=True)
    torch.testing.assert_close(by_vector.transform(ensemble), expected, atol=1e-9, rtol=0)
    naive = VectorScaling().fit(members[0], labels).transform(ensemble)
    assert nll(by_vector.transform(ensemble), labels) < nll(naive, labels)
    with pytest.raises(InvalidArgumentError, match="comes fitted"):
        by_vector.fit(ensemble, labels)


def test_logits_arrays_and_weights() -> None:
    members, labels = members_of(500, 2, 1.0)
    times = torch.randint(3, (500,), generator=torch.Generator().manual_seed(0))
    plain = ensemble_scaling(members.repeat_interleave(times, 1), labels.repeat_interleave(times), members=10)
    same = ensemble_scaling(members.log().numpy(), labels.numpy(), members=10, weights=times.numpy(), logits=True)
    assert isinstance(plain, TemperatureScaling)
    assert isinstance(same, TemperatureScaling)
    assert same.temperature == pytest.approx(plain.temperature, rel=1e-6)


def test_what_does_not_fit_is_named() -> None:
    members, labels = members_of(50, 3, 1.0)
    with pytest.raises(InvalidArgumentError, match="those of all 3 rounds of folds, but got 2"):
        ensemble_scaling(members, labels, members=2)
    with pytest.raises(
        InvalidProbabilitiesError, match=r"shape \[R, n, K\], or \[n, K\] for one round of folds, but got \[50\]"
    ):
        ensemble_scaling(members[0, :, 0], labels, members=2)
