"""Words that follow from numbers."""

from __future__ import annotations

import math

import pytest
import torch
from tests.metrics.simulated import classifier, says
from torch import Tensor

from calibayes.errors import InvalidProbabilitiesError
from calibayes.metrics import Difference, Interval, Scores, ece, evaluate
from calibayes.posthoc import TemperatureScaling
from calibayes.randomness import generator_for
from calibayes.report.confidence_verdict import TemperatureEffect, compared, temperature_effect, verdict

BASE = evaluate(*classifier(50, 1.0, seed=0), intervals=False)
MOST = TemperatureEffect(1.74, 0.081, 0.012, 0.9)


def scores(
    confidence: float,
    accuracy: float,
    gap: tuple[float, float],
    error: tuple[float, float],
    p: float = 0.001,
    classwise: tuple[float, float] = (0.0, 0.02),
) -> Scores:
    values = {name: getattr(BASE, name) for name in ("n", "classes", "bins", "k", "target_accuracy")} | BASE.values
    values |= {"confidence": confidence, "accuracy": accuracy, "overconfidence": confidence - accuracy, "kce_p_value": p}
    known = {"overconfidence": Interval(*gap), "ece": Interval(*error), "accuracy": Interval(accuracy, accuracy)}
    known["ece_classwise"] = Interval(*classwise)
    return Scores(**values, level=0.95, intervals=known)


@pytest.mark.parametrize(
    ("found", "effect", "kind", "text"),
    [
        (
            scores(0.91, 0.83, (0.06, 0.1), (0.06, 0.1)),
            MOST,
            "over-confident",
            "Overconfident: it says 91 %, it is right 83 % (a gap of 6 to 10 points, p ≤ 0.001); a temperature of 1.7 "
            "would fix "
            "most of it.",
        ),
        (
            scores(0.7, 0.8, (-0.12, -0.08), (0.08, 0.12), 0.012, (0.02, 0.04)),
            TemperatureEffect(0.61, 0.1, 0.07, 0.3),
            "under-confident",
            "Underconfident: it says 70 %, it is right 80 % (a gap of 8 to 12 points, p = 0.012); a temperature of "
            "0.61 would fix "
            "part of it. The probabilities of single classes are miscalibrated too (classwise ECE 2 % to 4 %).",
        ),
        (
            scores(0.9, 0.8, (0.08, 0.12), (0.08, 0.12)),
            TemperatureEffect(1.1, 0.1, 0.1, 0.05),
            "over-confident",
            "Overconfident: it says 90 %, it is right 80 % (a gap of 8 to 12 points, p ≤ 0.001); a temperature would "
            "not fix it.",
        ),
        (
            scores(0.9, 0.8, (0.08, 0.12), (0.08, 0.12)),
            TemperatureEffect(1.5, 0.067, 0.08, 0.7),  # the ECE would rise
            "over-confident",
            "Overconfident: it says 90 %, it is right 80 % (a gap of 8 to 12 points, p ≤ 0.001); a temperature would "
            "not fix it.",
        ),
        (
            scores(0.9, 0.0, (0.88, 0.91), (0.88, 0.91)),
            TemperatureEffect(1e4, 0.9, 0.2, 0.8),
            "over-confident",
            "Overconfident: it says 90 %, it is right 0.0 % (a gap of 88 to 91 points, p ≤ 0.001); a temperature "
            "would not fix it. "
            "That is worse than guessing: do the labels belong to these rows?",
        ),
        (
            scores(0.9, 1.0, (-0.12, -0.08), (0.08, 0.12)),
            TemperatureEffect(1e-4, 0.1, 0.0, 1.0),
            "under-confident",
            "Underconfident: it says 90 %, it is right 100.0 % (a gap of 8 to 12 points, p ≤ 0.001); there were no "
            "errors, so no "
            "temperature can be fitted.",
        ),
        (
            scores(0.9, 0.8, (0.08, 0.12), (0.08, 0.12)),
            TemperatureEffect(1.02, 0.1, 0.02, 0.7),
            "over-confident",
            "Overconfident: it says 90 %, it is right 80 % (a gap of 8 to 12 points, p ≤ 0.001); a temperature of "
            "1.02 would fix "
            "most of it.",
        ),
        (
            scores(0.9, 0.8, (0.08, 0.12), (0.08, 0.12)),
            TemperatureEffect(0.9999, 0.1, 0.02, 0.7),
            "over-confident",
            "Overconfident: it says 90 %, it is right 80 % (a gap of 8 to 12 points, p ≤ 0.001); a temperature would "
            "not fix it.",
        ),
        (
            scores(0.8, 0.8, (-0.01, 0.01), (0.04, 0.06), 0.02),
            None,
            "mixed",
            "Miscalibrated (p = 0.020): on average it says 80 % and is right 80 %, but it is overconfident at some "
            "confidences and "
            "underconfident at others (ECE 4 % to 6 %).",
        ),
        (
            scores(0.8, 0.77, (-0.01, 0.07), (0.0, 0.09), 0.04),
            MOST,
            "miscalibrated",
            "Miscalibrated (p = 0.040), but it takes more examples to say in which way: it says 80 % and is right 77 "
            "%, and its "
            "calibration error (ECE) is at most 9 %.",
        ),
        (
            scores(0.804, 0.8, (0.003, 0.005), (0.003, 0.006)),
            MOST,
            "nearly calibrated",
            "Nearly calibrated: it says 80 % and is right 80 %. It is slightly overconfident (p ≤ 0.001), but its calibration "
            "error (ECE) is at most 0.6 %.",
        ),
        (
            scores(0.804, 0.8, (-0.003, 0.005), (0.0, 0.006), 0.3),
            MOST,
            "calibrated",
            "Calibrated: it says 80 % and is right 80 % (p = 0.300); its calibration error (ECE) is at most 0.6 %.",
        ),
        (
            scores(0.8, 0.79, (-0.01, 0.02), (0.0, 0.03), 0.051, (0.01, 0.03)),
            MOST,
            "calibrated",
            "No sign of miscalibration: it says 80 % and is right 79 % (p = 0.051); its calibration error (ECE) is at "
            "most 3 %. "
            "But the probabilities of single classes are miscalibrated (classwise ECE 1 % to 3 %).",
        ),
        (
            scores(0.8, 0.7, (-0.05, 0.25), (0.0, 0.3), 0.4),
            MOST,
            "unclear",
            "Too few examples to tell: it says 80 % and is right 70 %. That is no sign of miscalibration (p = 0.400), but its "
            "calibration error (ECE) may be up to 30 %.",
        ),
        (
            scores(0.8, 1.0, (math.nan, math.nan), (math.nan, math.nan), math.nan),
            None,
            "unclear",
            "Too few examples to tell: it says 80 % and is right 100.0 %, and its calibration error (ECE) may be anything.",
        ),
    ],
)
def test_every_kind_of_verdict(found: Scores, effect: TemperatureEffect | None, kind: str, text: str) -> None:
    said = verdict(found, effect)
    assert (said.kind, said.text) == (kind, text)


@pytest.mark.parametrize(("temperature", "expected"), [(0.5, 2.0), (1.0, 1.0), (2.0, 0.5)])
def test_the_temperature_that_mends_is_found_and_its_effect_measured_on_other_examples(
    temperature: float, expected: float
) -> None:
    probs, targets = classifier(4000, temperature, seed=0)
    found = temperature_effect(probs, targets)
    assert found is not None
    assert found.value == pytest.approx(expected, rel=0.1)
    if temperature != 1:
        assert found.ece_after < 0.4 * found.ece_before
        assert found.share > 0.8


def test_what_temperature_scaling_does_is_not_judged_on_the_examples_it_was_fitted_on() -> None:
    """Each half of the examples is scaled by the temperature of the other half."""
    probs, targets = classifier(60, 1.0, seed=1)
    found = temperature_effect(probs, targets, seed=3)
    order = torch.randperm(60, generator=generator_for(torch.device("cpu"), 3, "halves"))
    halves = torch.arange(60) % 2 == 0
    after = torch.empty_like(probs)
    for here, there in ((halves, ~halves), (~halves, halves)):
        scaling = TemperatureScaling().fit(probs[order[here]], targets[order[here]])
        after[order[there]] = scaling.transform(probs[order[there]])
    assert found is not None
    assert found.ece_after == pytest.approx(ece(after, targets), rel=1e-9)
    assert found.ece_after != pytest.approx(ece(TemperatureScaling().fit(probs, targets).transform(probs), targets), rel=1e-3)


def test_logits_are_used_where_probabilities_have_lost_them() -> None:
    logits = torch.tensor([[30.0, 0.0], [0.0, 30.0]]).repeat(50, 1)
    targets = torch.tensor([0, 1, 0, 0]).repeat(25)
    found = temperature_effect(logits.softmax(-1), targets, logits=logits)
    assert found is not None
    assert found.value == pytest.approx(30 / math.log(3), rel=0.02)  # right three times in four: a log-odds of log 3


def test_logits_of_examples_that_do_not_count_are_left_out_with_them() -> None:
    logits = 5 * torch.randn(400, 3, generator=torch.Generator().manual_seed(0))
    targets = torch.distributions.Categorical(logits=logits / 2.5).sample()
    weights = (torch.arange(400) % 3 > 0).double()
    found = temperature_effect(logits.softmax(-1), targets, weights=weights, logits=logits)
    kept = temperature_effect(logits.softmax(-1)[weights > 0], targets[weights > 0], logits=logits[weights > 0])
    assert found == kept
    with pytest.raises(InvalidProbabilitiesError, match="400, but got 399"):
        temperature_effect(logits.softmax(-1), targets, logits=logits[1:])


def test_too_few_examples_to_try() -> None:
    assert temperature_effect(*classifier(19, 1.0, seed=0)) is None


def apart(**clear: tuple[float, float, float]) -> dict[str, Difference]:
    nothing = (0.0, -0.1, 0.1)
    return {name: Difference(*clear.get(name, nothing)) for name in ("nll", "brier", "ece", "accuracy")}


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (apart(), "No clear difference between a and b in NLL, Brier score, ECE and accuracy."),
        (
            apart(nll=(-0.12, -0.15, -0.1), accuracy=(0.02, 0.01, 0.03)),
            "a is better than b in NLL (by 0.12, 0.1 to 0.15) and accuracy (by 0.02, 0.01 to 0.03); "
            "no clear difference in Brier score and ECE.",
        ),
        (
            apart(nll=(-0.12, -0.15, -0.1), ece=(0.02, 0.01, 0.03)),
            "a is better than b in NLL (by 0.12, 0.1 to 0.15); b is better in ECE (by 0.02, 0.01 to 0.03); "
            "no clear difference in Brier score and accuracy.",
        ),
        (
            apart(accuracy=(-0.02, -0.03, -0.01)),
            "b is better than a in accuracy (by 0.02, 0.01 to 0.03); no clear difference in NLL, Brier score and ECE.",
        ),
    ],
)
def test_a_comparison_in_a_sentence(found: dict[str, Difference], text: str) -> None:
    assert compared("a", "b", found) == text


def test_a_classifier_that_claims_a_constant_is_judged_rightly() -> None:
    r: Tensor = torch.full((2000,), 0.9, dtype=torch.float64)
    for right, kind in ((0.7, "over-confident"), (0.99, "under-confident")):
        probs, targets = says(r, torch.full_like(r, right), seed=3)
        assert verdict(evaluate(probs, targets), temperature_effect(probs, targets)).kind == kind


@pytest.mark.slow
def test_one_confidence_is_never_mixed() -> None:
    """Gaps of both signs need two confidences; intervals of two kinds may disagree on a single one."""
    for wrong in range(1, 40):
        probs = torch.tensor([[0.7, 0.3]]).expand(60, 2)
        found = evaluate(probs, (torch.arange(60) < wrong).long(), replicates=200)
        assert verdict(found, None).kind != "mixed"


def test_an_infinite_loss_decides() -> None:
    said = compared("a", "b", apart(nll=(math.inf, math.inf, math.inf)))
    assert said.startswith("b is better than a in NLL (infinite for the other); no clear difference in")
