"""Claims are judged by the numbers, branch by branch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.reproduction.made_up import made_up, newsgroups

from reproduction.claim_verdicts import PaperClaim
from reproduction.experiments import experiment
from reproduction.paper_claims import claims

LAMS = (3, 10, 30, 100, 300)


def judged(text: str, **errors: Any) -> PaperClaim:
    return next(claim for claim in claims(newsgroups(**errors), []) if text in claim.text)


@pytest.mark.parametrize(
    ("errors", "verdict"),
    [({"hard": 0.25}, "holds"), ({"hard": 0.15}, "does not hold here"), ({}, "cannot be told")],
)
def test_fully_differentiable_scores(errors: dict[str, Any], verdict: str) -> None:
    assert judged("Fully differentiable", **errors).verdict == verdict


def test_scores_are_compared_where_the_term_is_strong_too() -> None:
    claim = judged("lower ECE at a larger λ", hard30=0.25, hard100=0.15)
    assert [gap.value for gap in claim.gaps] == pytest.approx([0.05, -0.05], abs=1e-6)
    assert claim.verdict == "holds in part"
    assert judged("lower ECE at a larger λ", hard30=0.25, hard100=0.25).verdict == "holds"


def test_accuracy_may_suffer() -> None:
    assert judged("without affecting").verdict == "holds"
    assert judged("without affecting", soft={"ece": 0.2, "accuracy": 0.59}).verdict == "holds"
    assert judged("without affecting", soft={"ece": 0.2, "accuracy": 0.55}).verdict == "does not hold here"


def test_the_term_is_set_against_no_term() -> None:
    assert judged("at all", soft=0.1).verdict == "holds in part"
    assert judged("at all", soft=0.1, hard=0.1).verdict == "holds"


def test_a_bnn_that_is_only_less_often_right_holds_in_part() -> None:
    weaker = {"ece": 0.1, "accuracy": 0.3, "way": [(0.05, 0.1)]}
    assert judged("A BNN", bnn=0.1).verdict == "holds"
    # On its way to an accuracy of 0.6 the FNN passed 0.3 with an ECE of 0.1: as calibrated as the BNN is there.
    claim = judged("A BNN", fnn={"ece": 0.2, "way": [(0.05, 0.1), (0.1, 0.3)]}, bnn=weaker)
    assert claim.gaps[2].value == pytest.approx(0.0, abs=1e-6)
    assert claim.verdict == "holds in part"


@pytest.mark.parametrize(
    ("errors", "verdict"),
    [
        ({3: 0.19, 10: 0.18, 30: 0.15, 100: 0.1, 300: 0.05}, "holds"),
        ({100: 0.19, 300: 0.19}, "holds"),
        ({3: 0.15, 10: 0.15, 30: 0.15, 100: 0.15, 300: 0.15}, "holds in part"),
        ({300: 0.3}, "does not hold here"),
        ({}, "cannot be told"),
    ],
)
@pytest.mark.parametrize("scheme", ["fnn", "bnn"])
def test_larger_weights_of_the_term(scheme: str, errors: dict[int, float], verdict: str) -> None:
    given = {f"ca{scheme}{lam}": error for lam, error in errors.items()}
    assert judged(f"lowers the ECE of CA-{scheme.upper()}", **given).verdict == verdict


def test_the_fall_is_the_slope_over_tenfold_weights() -> None:
    errors = {lam: 0.5 - 0.1 * np.log10(lam) for lam in LAMS}
    gap = judged("lowers the ECE of CA-FNN", **{f"cafnn{lam}": error for lam, error in errors.items()}).gaps[0]
    assert gap.value == pytest.approx(0.1)


def test_accuracy_is_looked_at_for_every_weight() -> None:
    claim = next(c for c in claims(newsgroups(cafnn300={"ece": 0.1, "accuracy": 0.56}), []) if "marginally" in c.text)
    assert [gap.value < -0.03 for gap in claim.gaps] == [False, False, False, False, True]
    assert claim.verdict == "holds in part"


def test_weights_at_which_training_breaks_down_are_named_and_not_judged() -> None:
    broken = {"cafnn300": {"ece": 0.5, "accuracy": 0.4}, "cafnn100": 0.1}
    claim = judged("lowers the ECE of CA-FNN", **broken)
    assert claim.text.endswith("(training breaks down at λ = 300)")
    assert claim.gaps[1].name == "ECE less at λ = 100 than at 0"
    assert claim.verdict == "holds"
    slight = next(c for c in claims(newsgroups(**broken), []) if "marginally" in c.text)
    assert (len(slight.gaps), slight.verdict) == (4, "holds")


def test_the_largest_sound_weight_is_set_against_none_at_equal_accuracy() -> None:
    found = claims(newsgroups(cafnn300=0.1, fnn={"ece": 0.2, "way": [(0.05, 0.1)]}), [])
    claim = next(each for each in found if "ECE at equal accuracy" in each.text)
    assert claim.gaps[0].name == "ECE less at λ = 300 than at 0"
    assert claim.gaps[0].value == pytest.approx(0.1 - 0.15 * 0.01 / 0.5, abs=1e-3)  # a point of accuracy before its end
    assert claim.verdict == "holds"


@pytest.mark.parametrize(
    ("errors", "verdict"),
    [
        ({"cabnn30": 0.1}, "holds"),
        ({"cabnn30": 0.19}, "holds in part"),
        ({}, "does not hold here"),
        ({f"cabnn{lam}": 0.3 for lam in LAMS}, "does not hold here"),
    ],
)
def test_two_points_between_ca_bnn_and_ca_fnn(errors: dict[str, Any], verdict: str) -> None:
    assert judged("more than 2 points", **errors).verdict == verdict


def test_ca_bnn_is_set_against_ca_fnn_at_equal_accuracy() -> None:
    weaker = {"ece": 0.1, "accuracy": 0.3, "way": [(0.05, 0.1)]}
    on_the_way = {"ece": 0.2, "way": [(0.05, 0.1), (0.1, 0.3)]}
    claim = judged("at equal accuracy it is", cafnn30=on_the_way, cabnn30=weaker)
    assert claim.gaps[LAMS.index(30)].value == pytest.approx(0.0, abs=1e-6)


def test_temperature_scaling_is_set_against_the_best_on_validation() -> None:
    claim = judged("temperature scaling", cabnn30={"ece": 0.03, "nll": 0.9})
    assert "CA-BNN, λ = 30" in claim.text
    assert claim.verdict == "holds"
    assert [gap.value for gap in claim.gaps] == pytest.approx([0.05 - 0.03, 1.0 - 0.9], abs=1e-3)
    assert judged("temperature scaling", cabnn30={"ece": 0.06, "nll": 0.99}).verdict == "holds in part"


def test_images_one_network_at_a_time() -> None:
    errors = {"FNN": 0.05, "BNN": 0.04, "CA-FNN": 0.03, "CA-BNN": 0.02}
    parts = []
    for part in experiment("cifar10-reliability").parts:
        network, scheme = part.name.split(": ")
        parts.append(made_up(part, errors[scheme] if network == "resnet20" else 0.05))
    found = {claim.text: claim.verdict for claim in claims([], parts)}
    assert len(found) == 6
    for text, verdict in found.items():
        assert verdict == ("holds" if "resnet20" in text else "cannot be told"), text


def test_nothing_is_claimed_of_what_is_missing() -> None:
    assert claims([], []) == []
    assert {claim.text[:5] for claim in claims(newsgroups()[:1], [])} == set()
