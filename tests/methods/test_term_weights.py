"""Which methods have λ and β, and which weights are refused."""

from __future__ import annotations

import pytest
from tests.methods.own import pair

import calibayes as cb
from calibayes.errors import InvalidArgumentError
from calibayes.methods.term_weights import check_method_settings, check_weights, has_beta, has_lam, takes_lam


def test_the_papers_table() -> None:
    assert [(has_lam(each), has_beta(each)) for each in cb.SCHEMES] == [
        (False, False),
        (False, True),
        (True, False),
        (True, True),
    ]
    assert [each for each in cb.NETWORK_METHODS if not takes_lam(each)] == ["fnn", "bnn"]


def test_a_method_of_somebody_elses_has_the_lam_that_it_says() -> None:
    with pair():
        assert has_lam("pair")
        assert takes_lam("pair")
        assert not has_beta("pair")


@pytest.mark.parametrize(
    ("method", "weights", "message"),
    [
        ("fnn", {"lam": 3.0}, "no `lam` for 'fnn', but got 3.0. With the term it is 'ca-fnn'"),
        ("bnn", {"lam": 3.0}, "With the term it is 'ca-bnn'"),
        ("ca-bnn", {"lam": 0.0}, "`lam` > 0 for 'ca-bnn', but got 0.0; without the term it is 'bnn'"),
        ("ensemble", {"beta": 0.1}, "no `beta` for 'ensemble', but got 0.1"),
        ("ensembel", {"lam": 1.0}, "Did you mean 'ensemble'?"),
    ],
)
def test_weights_that_a_method_cannot_have(method: str, weights: dict[str, float], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        check_weights(method, **weights)


def test_weights_that_are_optional() -> None:
    check_weights("ensemble", lam=3.0)
    check_weights("ensemble", lam=0.0)
    check_weights("fnn", lam=0.0, beta=0.0)


def test_settings_of_a_door_are_not_those_of_the_method() -> None:
    check_method_settings("ensemble", {"members": 2}, {"lam": "`lam`"})
    with pytest.raises(InvalidArgumentError, match="'lam' not to be among the method's settings: use `lam` instead"):
        check_method_settings("ensemble", {"lam": 2}, {"lam": "`lam`"})
    with pytest.raises(InvalidArgumentError, match=r"'ensemble' has no setting 'member'\. Did you mean 'members'?"):
        check_method_settings("ensemble", {"member": 2}, {})
    with pytest.raises(InvalidArgumentError, match="`members` to be a positive integer, but got 0"):
        check_method_settings("ensemble", {"members": 0}, {})
