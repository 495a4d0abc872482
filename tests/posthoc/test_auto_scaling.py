"""The automatic choice: what it takes, why, and that its scores are what they are said to be."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from calibayes.errors import InvalidArgumentError
from calibayes.metrics import nll
from calibayes.posthoc import AutoScaling, NoScaling, PosthocWarning, TemperatureScaling, VectorScaling
from calibayes.posthoc.auto_scaling import scaling_named


def drawn(n: int, classes: int, temperature: float = 1.0, favour: float = 0.0, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Logits, and labels that are drawn from them at a temperature, with one class favoured."""
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(n, classes, generator=generator).double()
    truth = logits / temperature
    truth[:, 0] += favour
    return logits, torch.multinomial(truth.softmax(-1), 1, generator=generator)[:, 0]


@pytest.mark.parametrize(
    ("classes", "temperature", "favour", "chosen"),
    [
        (3, 1.0, 0.0, "none"),
        (3, 2.0, 0.0, "temperature"),
        (3, 2.0, 2.0, "vector"),
        (2, 1.0, 0.0, "none"),
        (2, 2.0, 2.0, "platt"),
    ],
)
def test_the_simplest_that_is_level_is_taken(classes: int, temperature: float, favour: float, chosen: str) -> None:
    logits, targets = drawn(1500, classes, temperature, favour)
    scaling = AutoScaling(repeats=1).fit(logits, targets, logits=True)
    assert scaling.chosen == chosen
    best = min(tried.nll for tried in scaling.results)
    for tried in scaling.results:
        assert tried.behind == pytest.approx(tried.nll - best, abs=1e-12)
        if tried.name == chosen:
            assert tried.behind <= tried.standard_error
            break
        assert tried.behind > tried.standard_error


def test_the_choice_is_fitted_on_all() -> None:
    logits, targets = drawn(800, 3, 2.0)
    auto = AutoScaling(["none", "temperature"]).fit(logits, targets, logits=True)
    alone = TemperatureScaling().fit(logits, targets, logits=True)
    assert isinstance(auto.scaling, TemperatureScaling)
    assert auto.scaling.temperature == alone.temperature
    assert torch.equal(auto.transform(logits, logits=True), alone.transform(logits, logits=True))


def test_scores_are_of_examples_that_did_not_fit() -> None:
    """Without anything to fit, the score is the plain NLL; with much to fit and few examples, it is worse than on these."""
    logits, targets = drawn(60, 5)
    auto = AutoScaling(["none", "vector"], repeats=3).fit(logits, targets, logits=True)
    none, vector = auto.results
    assert none.nll == pytest.approx(nll(logits.softmax(-1), targets))
    on_the_same = nll(VectorScaling().fit(logits, targets, logits=True).transform(logits, logits=True), targets)
    assert vector.nll > on_the_same + 0.1


def test_the_same_seed_gives_the_same_scores() -> None:
    logits, targets = drawn(200, 3, 2.0)
    one, same, other = (AutoScaling(seed=seed).fit(logits, targets, logits=True).results for seed in (0, 0, 1))
    assert one == same != other


def test_what_the_data_do_not_settle_is_left_out() -> None:
    probs = torch.tensor([[0.6, 0.4], [0.3, 0.7], [0.8, 0.2], [0.1, 0.9]])
    scaling = AutoScaling(["none", "temperature"]).fit(probs, torch.tensor([0, 1, 0, 1]))
    assert scaling.chosen == "none"
    left_out = scaling.results[1]
    assert math.isnan(left_out.nll)
    assert left_out.reason is not None
    assert left_out.reason.startswith("Every held-out example is decided right")
    with pytest.warns(PosthocWarning, match="None of temperature is settled by these data, so nothing is changed"):
        only = AutoScaling(["temperature"]).fit(probs, torch.tensor([0, 1, 0, 1]))
    assert isinstance(only.scaling, NoScaling)
    torch.testing.assert_close(only.transform(probs), probs)


def test_a_certain_mistake_rules_isotonic_regression_out() -> None:
    logits, targets = drawn(150, 2, 2.0)
    isotonic = AutoScaling(["none", "isotonic"]).fit(logits, targets, logits=True).results[1]
    assert isotonic.nll == math.inf
    assert isotonic.behind == math.inf


def test_weights_count() -> None:
    """Examples of weight zero, all labelled wrong, change nothing."""
    logits, targets = drawn(600, 3, 2.0)
    wrong = (targets + 1) % 3
    weights = torch.cat((torch.ones(600), torch.zeros(600)))
    weighted = AutoScaling().fit(logits.repeat(2, 1), torch.cat((targets, wrong)), weights=weights, logits=True)
    alone = AutoScaling().fit(logits, targets, weights=torch.ones(600), logits=True)
    assert weighted.results == alone.results


def test_one_example_changes_nothing() -> None:
    scaling = AutoScaling(["none", "vector"]).fit(np.array([[0.7, 0.3]]), np.array([0]))
    assert scaling.chosen == "none"


def test_names() -> None:
    assert isinstance(scaling_named("auto"), AutoScaling)
    assert isinstance(scaling_named(VectorScaling), VectorScaling)
    with pytest.raises(InvalidArgumentError, match=r"one of auto, none, temperature, .*, but got 'temprature'"):
        scaling_named("temprature")
    with pytest.raises(InvalidArgumentError, match="to make a Scaling, but got int"):
        scaling_named(int)  # type: ignore[arg-type]
    for methods in (["none", "sigmoid"], []):
        with pytest.raises(InvalidArgumentError, match="Expected `methods` among none, temperature"):
            AutoScaling(methods)
    with pytest.raises(InvalidArgumentError, match="`folds` to be at least 2, but got 1"):
        AutoScaling(folds=1)
