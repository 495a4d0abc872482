"""Certified thresholds: how often they are wrong, and how far they lie from the best possible, by simulation."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
import torch
from scipy import stats
from tests.metrics.simulated import classifier

from calibayes.acting import ClassThresholds, Threshold, certify_class_thresholds, certify_threshold
from calibayes.acting.exact_bounds import error_free_rows
from calibayes.acting.risk_tests import binomial_p_value, first_tests, tolerated_errors
from calibayes.errors import InvalidArgumentError, ModelFileError

Floats = npt.NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Floats]


def calibrated(generator: np.random.Generator, n: int) -> Floats:
    return 1 - 0.5 * generator.beta(1, 4, n)


def nearly_sure(generator: np.random.Generator, n: int) -> Floats:
    return 1 - 0.5 * generator.beta(0.3, 6, n)


def uniform(generator: np.random.Generator, n: int) -> Floats:
    return generator.random(n)


def as_said(confidence: Floats) -> Floats:
    return 1 - confidence


def overconfident(confidence: Floats) -> Floats:
    return np.minimum(1, 2 * (1 - confidence) + 0.005)


def just_too_high(confidence: Floats) -> Floats:
    return np.full_like(confidence, 0.0501)


def too_high_below(confidence: Floats) -> Floats:
    """The least favourable: as bad as allowed above, and a little worse below."""
    return np.where(confidence > 0.4, 0.05, 0.0505)


def up_and_down(confidence: Floats) -> Floats:
    """The accuracy falls below the target and rises again, against the assumption."""
    return np.where((10 * confidence).astype(int) % 2 == 1, 0.055, 0.046)


class Simulation:
    """Thresholds certified on many samples, judged by what is known of the whole distribution."""

    def __init__(self, draw: Draw, error: Callable[[Floats], Floats], rows: int, runs: int, accuracy: float, seed: int) -> None:
        generator = np.random.default_rng(seed)
        everyone = np.sort(draw(generator, 200_000))[::-1]
        self.risk = np.cumsum(error(everyone)) / np.arange(1, len(everyone) + 1)
        allowed = np.nonzero(self.risk[100:] <= 1 - accuracy)[0]
        self.best = (allowed.max() + 101) / len(everyone) if len(allowed) else 0.0
        self.coverages, self.violations, self.none = [], 0, 0
        for _ in range(runs):
            confidence = draw(generator, rows)
            correct = generator.random(rows) >= error(confidence)
            value = certify_threshold(confidence, correct, accuracy, 0.9).value
            if value is None:
                self.none += 1
                self.coverages.append(0.0)
                continue
            answered = int(np.searchsorted(-everyone, -value))
            self.coverages.append(answered / len(everyone))
            self.violations += bool(self.risk[answered - 1] > 1 - accuracy + 2e-4) if self.best else 1
        self.runs = runs

    @property
    def too_many(self) -> int:
        """A number of violations that a rate of 10 % would exceed one time in a thousand."""
        return int(stats.binom.ppf(0.999, self.runs, 0.1))


@pytest.mark.parametrize(
    ("draw", "error", "rows", "accuracy", "points"),
    [
        (calibrated, as_said, 5000, 0.95, 0.08),
        (calibrated, overconfident, 5000, 0.9, 0.06),
        pytest.param(calibrated, as_said, 20_000, 0.95, 0.05, marks=pytest.mark.slow),
        (nearly_sure, as_said, 1000, 0.95, 0.01),
        (nearly_sure, as_said, 5000, 0.99, 0.07),
    ],
)
def test_coverage_is_within_a_few_points_of_the_best_and_violations_are_rare(
    draw: Draw, error: Callable[[Floats], Floats], rows: int, accuracy: float, points: float
) -> None:
    simulation = Simulation(draw, error, rows, runs=40, accuracy=accuracy, seed=0)
    assert simulation.best > 0
    assert np.mean(simulation.coverages) > simulation.best - points
    assert simulation.violations <= simulation.too_many
    assert simulation.none == 0


@pytest.mark.parametrize(
    ("error", "rows"),
    [(just_too_high, 60), (just_too_high, 700), (too_high_below, 200), (too_high_below, 3000), (up_and_down, 700)],
)
def test_violations_in_the_least_favourable_cases(error: Callable[[Floats], Floats], rows: int) -> None:
    simulation = Simulation(uniform, error, rows, runs=200, accuracy=0.95, seed=1)
    assert simulation.violations <= simulation.too_many


@pytest.mark.slow
@pytest.mark.parametrize("rows", [60, 200, 1000, 4000])
@pytest.mark.parametrize("error", [just_too_high, too_high_below, up_and_down, as_said])
def test_violations_in_many_runs(error: Callable[[Floats], Floats], rows: int) -> None:
    simulation = Simulation(uniform, error, rows, runs=3000, accuracy=0.95, seed=2)
    assert simulation.violations <= simulation.too_many


def corrected(confidence: Floats, correct: npt.NDArray[np.bool_], looks: int) -> float:
    """The coverage certified by Bonferroni's correction for the number of thresholds looked at."""
    n = len(correct)
    errors = np.cumsum(~correct[np.argsort(-confidence)])
    counts = np.linspace(45, n, looks).round().astype(int)
    passed = counts[stats.binom.cdf(errors[counts - 1], counts, 0.05) <= 0.1 / looks]
    return float(passed.max(initial=0)) / n


def test_the_walk_certifies_more_than_a_correction_for_the_number_of_thresholds() -> None:
    generator = np.random.default_rng(3)
    ours, theirs = [], []
    for _ in range(40):
        confidence = calibrated(generator, 1500)
        correct = generator.random(1500) >= as_said(confidence)
        ours.append(certify_threshold(confidence, correct).coverage)
        theirs.append([corrected(confidence, correct, looks) for looks in (5, 10, 20)])
    assert np.mean(ours) > max(np.mean(theirs, 0)) + 0.02


def test_one_test_by_hand() -> None:
    """With all confidences the same there is one test, of all rows."""
    for rows, errors in ((45, 0), (44, 0), (77, 1), (77, 2), (200, 5), (200, 6)):
        correct = torch.arange(rows) >= errors
        threshold = certify_threshold(torch.full((rows,), 0.8), correct, 0.95, 0.9)
        assert threshold.certified == (stats.binom.cdf(errors, rows, 0.05) <= 0.1)
        assert threshold.certified == (tolerated_errors(rows, 0.05, 0.1) >= errors)
        assert threshold.answered == (rows if threshold.certified else 0)
    assert binomial_p_value(3, 50, 0.05) == pytest.approx(stats.binom.cdf(3, 50, 0.05))


def test_ties_are_answered_together_and_the_threshold_itself_is_not() -> None:
    confidence = torch.tensor([0.9] * 300 + [0.6] * 300)
    threshold = certify_threshold(confidence, torch.tensor([True] * 300 + [True, False] * 150))
    assert threshold.value == pytest.approx(0.6)
    assert threshold.answers(torch.tensor([0.6, 0.61])).tolist() == [False, True]
    assert int(threshold.answers(confidence).sum()) == threshold.answered == 300
    assert threshold.errors == 0


@pytest.mark.parametrize("calibrated_in", [np.float32, np.float64])
@pytest.mark.parametrize("used_in", [np.float32, np.float64])
def test_confidences_in_another_type_lie_on_the_same_side(calibrated_in: type, used_in: type) -> None:
    """The float32 of 0.6 lies above 0.6, and 0.7 above the float32 of 0.7; neither may be answered with those above."""
    for tied in (0.6, 0.7):
        confidence = np.array([0.9] * 300 + [tied] * 300)
        correct = np.array([True] * 300 + [True, False] * 150)
        threshold = certify_threshold(confidence.astype(calibrated_in), correct)
        assert threshold.answers(confidence.astype(used_in)).tolist() == [True] * 300 + [False] * 300
        probs = np.stack((confidence, 1 - confidence), -1)
        by_class = certify_class_thresholds(probs.astype(calibrated_in), (~correct).astype(int))
        assert by_class.answers(probs.astype(used_in)).tolist() == [True] * 300 + [False] * 300


def test_none_is_an_answer_that_says_what_it_would_take() -> None:
    few = certify_threshold(torch.ones(30), torch.ones(30))
    assert few.value is None
    assert few.coverage == 0
    assert "only 30 rows" in few.statement
    assert "at least 45 error-free rows" in few.statement
    assert not few.answers(torch.ones(3)).any()
    bad = certify_threshold(torch.rand(500), torch.arange(500) % 2)
    assert "too many of the most confident rows are wrong. Ties aside, the tests start at the most confident" in bad.statement
    sixty = certify_threshold(torch.linspace(1, 0, 300), torch.arange(300) < 60)  # right above, wrong below
    assert sixty.value is None
    assert sixty.rows_needed == 45
    assert sixty.statement == (
        "No threshold can be certified for an accuracy of 95 % with certainty 90 %: too many of the most confident rows are "
        "wrong. Ties aside, the tests start at the most confident 77 of 300 rows, a number fixed in advance, of which at most "
        "1 may be wrong. More calibration rows (`--set-aside` in `train`) or a lower accuracy or certainty may help."
    )
    assert "can show" not in Threshold(None, 0.95, 0.9, 0, 0, 0).statement


@pytest.mark.parametrize(("rows", "accuracy"), [(45, 0.95), (60, 0.95), (300, 0.95), (1500, 0.95), (5000, 0.99), (40, 0.8)])
def test_the_errors_that_the_message_allows_are_those_that_certify(rows: int, accuracy: float) -> None:
    """As many wrong rows as it says at the top of a start certify a threshold, and one more in every start certifies none."""
    confidence = np.linspace(1, 0.1, rows)
    starts = first_tests(rows, lambda part: error_free_rows(accuracy, 1 - part), 1 - accuracy, 0.1)

    def certified(errors: list[int]) -> Threshold:
        """With the last rows of each start wrong, and all below the last start."""
        correct = np.arange(rows) < starts[-1][0]
        for (count, _), before, wrong in zip(starts, [0, *errors], errors, strict=False):
            correct[count - (wrong - before) : count] = False
        return certify_threshold(confidence, correct, accuracy)

    allowed = [errors for _, errors in starts]
    none = certified([errors + 1 for errors in allowed])
    assert none.value is None
    for count, errors in starts:
        assert f"{count:,}" in none.statement
        assert f"{errors:,}" in none.statement
    for place in range(len(starts)):
        assert certified([errors + (index != place) for index, errors in enumerate(allowed)]).certified


def test_the_accuracy_that_few_rows_can_show_is_certified_and_no_higher_one() -> None:
    few = certify_threshold(torch.ones(30), torch.ones(30))
    assert "; 30 can show at most 92.6 %. More calibration rows" in few.statement
    assert certify_threshold(torch.ones(30), torch.ones(30), 0.926).certified
    assert not certify_threshold(torch.ones(30), torch.ones(30), 0.927).certified


def test_one_row_or_thousands_are_counted_as_people_count() -> None:
    assert "there is only 1 row. It" in certify_threshold(torch.ones(1), torch.ones(1)).statement
    one = certify_threshold(torch.ones(100), torch.arange(100) > 0)
    assert one.statement.endswith("of which 1 was wrong.")
    assert "at least 2,302 error-free rows" in certify_threshold(torch.ones(9), torch.ones(9), accuracy=0.999).statement


def test_confidences_above_one_by_rounding_are_one() -> None:
    confidence = torch.full((60,), 1 + 1e-6)
    threshold = certify_threshold(confidence, torch.ones(60))
    assert threshold.answers(confidence).all()


def test_rows_in_another_order_give_the_same() -> None:
    probs, labels = classifier(2000, 1.0, seed=4)
    order = torch.randperm(2000)
    first = Threshold.fit(probs, labels, accuracy=0.8)
    assert first.certified
    assert Threshold.fit(probs[order], labels[order], accuracy=0.8) == first
    assert Threshold.fit(probs.numpy(), labels.numpy(), accuracy=0.8) == first
    assert Threshold.from_dict(json.loads(json.dumps(first.to_dict()))) == first
    assert first.coverage_interval().low < first.coverage < first.coverage_interval().high
    answered = first.answers(probs.amax(-1))
    assert int((probs.argmax(-1) != labels)[answered].sum()) == first.errors


def test_a_lower_target_or_certainty_answers_more() -> None:
    probs, labels = classifier(4000, 1.0, seed=5)
    coverages = [Threshold.fit(probs, labels, accuracy).coverage for accuracy in (0.95, 0.9, 0.8, 0.7)]
    assert coverages == sorted(coverages)
    assert coverages[0] < coverages[-1]
    certainties = [Threshold.fit(probs, labels, 0.8, certainty).coverage for certainty in (0.999, 0.9, 0.5)]
    assert certainties == sorted(certainties)


def test_classes_share_the_certainty() -> None:
    """In each run every class must hold, with decisions that are as precise as their confidence says."""
    violations, answered, runs = 0, [], 30
    everyone = classifier(100_000, 1.0, seed=99, classes=3)[0]
    confidence, decision = everyone.max(-1)
    ordered = confidence.sort(descending=True).values  # the classes are alike
    best = float((ordered.cumsum(0) / torch.arange(1, len(ordered) + 1) >= 0.8).double().mean())
    for run in range(runs):
        probs, labels = classifier(6000, 1.0, seed=100 + run, classes=3)
        found = certify_class_thresholds(probs, labels, precision=0.8, certainty=0.9)
        answers = found.answers(everyone)
        answered.append(float(answers.double().mean()))
        true = [float(confidence[answers & (decision == k)].mean()) for k in range(3)]
        violations += any(value < 0.8 - 1e-3 for value in true if not math.isnan(value))
    assert violations <= stats.binom.ppf(0.999, runs, 0.1)
    assert np.mean(answered) > best - 0.1
    assert found.thresholds[0].certainty == pytest.approx(1 - 0.1 / 3)
    first, second, *_ = found.statement.splitlines()
    assert first.endswith(f"all {len(found.thresholds)} hold together with certainty {100 * found.certainty:.4g} %.")
    assert second.startswith("Class 0: Decisions of a confidence above")
    assert ClassThresholds.from_dict(json.loads(json.dumps(found.to_dict()))) == found


def test_what_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"`confidence` to lie between 0 and 1, but number 1 is 1.5"):
        certify_threshold(torch.tensor([0.5, 1.5]), torch.tensor([1, 1]))
    with pytest.raises(InvalidArgumentError, match="zeros and ones, but number 0 is 2"):
        certify_threshold(torch.tensor([0.5, 0.5]), torch.tensor([2, 1]))
    with pytest.raises(InvalidArgumentError, match="shape"):
        certify_threshold(torch.tensor([0.5, 0.5]), torch.tensor([1]))
    with pytest.raises(InvalidArgumentError, match="`accuracy`"):
        certify_threshold(torch.tensor([0.5]), torch.tensor([1]), accuracy=1.0)
    with pytest.raises(ModelFileError):
        Threshold.from_dict({"kind": "class-thresholds"})
