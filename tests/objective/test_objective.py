"""The loss is the paper's, term by term: mean cross-entropy + λ/|B|·AECE + β/|D|·KL."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from calibayes.calibration import DECE, MMCE, WMMCE, Measure
from calibayes.errors import CalibayesError, InvalidArgumentError, InvalidTargetsError
from calibayes.objective import SCHEMES, Objective, cross_entropy
from calibayes.schedules import Linear

KL = torch.tensor(123.0, dtype=torch.float64)


def batch(n: int = 24, classes: int = 4, *leading: int) -> tuple[Tensor, Tensor]:
    return torch.randn(*leading, n, classes, dtype=torch.float64) * 2, torch.randint(classes, (n,))


def mean_surprise(logits: Tensor, targets: Tensor) -> float:
    rows = zip(logits.tolist(), targets.tolist(), strict=True)
    return math.fsum(math.log(math.fsum(map(math.exp, row))) - row[target] for row, target in rows) / len(targets)


def gradient(loss: Tensor, logits: Tensor) -> Tensor:
    (grad,) = torch.autograd.grad(loss, logits)
    return grad


@pytest.mark.parametrize("measure", [WMMCE(), WMMCE(mode="hard"), MMCE(), DECE()])
@pytest.mark.parametrize("lam_scale", ["paper", "mean"])
def test_total_is_the_weighted_sum(lam_scale: Any, measure: Any) -> None:
    logits, targets = batch()
    terms = Objective(lam=7.0, beta=0.3, calibration=measure, lam_scale=lam_scale)(logits, targets, KL, dataset_size=500)
    aece = float(measure(logits.softmax(-1), targets))
    surprise = mean_surprise(logits, targets)
    weight = 7.0 / 24 if lam_scale == "paper" else 7.0
    assert float(terms.cross_entropy) == pytest.approx(surprise, rel=1e-12)
    assert float(terms.calibration) == pytest.approx(aece, rel=1e-12)
    assert float(terms.kl) == 123.0
    assert float(terms.total) == pytest.approx(surprise + weight * aece + 0.3 / 500 * 123.0, rel=1e-12)


def test_gradient_is_that_of_the_sum() -> None:
    logits, targets = batch()
    logits.requires_grad_()
    total = Objective(lam=7.0)(logits, targets, KL, dataset_size=500).total
    apart = gradient(torch.nn.functional.cross_entropy(logits, targets), logits) + 7.0 / 24 * gradient(
        WMMCE()(logits.softmax(-1), targets), logits
    )
    torch.testing.assert_close(gradient(total, logits), apart, rtol=1e-12, atol=1e-15)


def test_the_papers_sum_over_a_batch_divided_by_its_size() -> None:
    # Algorithm 1 descends Σ_B CE + λ·AECE + β·(|B|/|D|)·KL.
    logits, targets = batch(32)
    total = Objective(lam=7.0, beta=0.3)(logits, targets, KL, dataset_size=500).total
    summed = torch.nn.functional.cross_entropy(logits, targets, reduction="sum")
    papers = summed + 7.0 * WMMCE()(logits.softmax(-1), targets) + 0.3 * 32 / 500 * KL
    assert float(total) == pytest.approx(float(papers) / 32, rel=1e-12)


def test_gradient_of_the_kl() -> None:
    logits, targets = batch()
    kl = torch.tensor(5.0, dtype=torch.float64, requires_grad=True)
    Objective(beta=0.3)(logits, targets, kl, dataset_size=500).total.backward()
    assert kl.grad is not None
    assert float(kl.grad) == 0.3 / 500


@pytest.mark.parametrize("measure", [WMMCE(), MMCE(mode="hard"), DECE()])
def test_samples_of_the_weights_are_averaged_after_the_measure(measure: Any) -> None:
    logits, targets = batch(24, 4, 5)
    objective = Objective(lam=7.0, calibration=measure)
    together = objective(logits, targets, KL, dataset_size=500)
    alone = [objective(sample, targets, KL, dataset_size=500) for sample in logits]
    for name in ("total", "cross_entropy", "calibration"):
        expected = math.fsum(float(getattr(terms, name)) for terms in alone) / 5
        assert float(getattr(together, name)) == pytest.approx(expected, rel=1e-12)
    # The measure of the averaged predictive is another number.
    of_the_average = float(measure(logits.softmax(-1).mean(0), targets))
    assert abs(of_the_average - float(together.calibration)) > 0.01


def test_gradients_of_samples_are_their_own_shares() -> None:
    logits, targets = batch(24, 4, 3)
    objective = Objective(lam=7.0)
    logits.requires_grad_()
    together = gradient(objective(logits, targets, KL, dataset_size=500).total, logits)
    for r in range(3):
        sample = logits[r].detach().requires_grad_()
        alone = gradient(objective(sample, targets, KL, dataset_size=500).total, sample)
        torch.testing.assert_close(together[r], alone / 3, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("lam_scale", ["paper", "mean"])
@pytest.mark.parametrize("lam", [0, 0.0, lambda step: 0.0])
@pytest.mark.parametrize("leading", [(), (3,)])
def test_lambda_zero_is_no_calibration_term_to_the_bit(leading: tuple[int, ...], lam: Any, lam_scale: Any) -> None:
    logits, targets = batch(24, 4, *leading)
    logits = logits.float().requires_grad_()
    terms = Objective(lam=lam, beta=0.3, lam_scale=lam_scale)(logits, targets, KL, dataset_size=500)
    plain = torch.nn.functional.cross_entropy(logits.reshape(-1, 4), targets.repeat(math.prod(leading)))
    assert torch.equal(terms.total, plain + 0.3 / 500 * KL)
    assert torch.equal(gradient(terms.total, logits), gradient(plain, logits))
    assert float(terms.calibration) == 0


def test_schedules_follow_the_step() -> None:
    logits, targets = batch()
    objective = Objective(lam=Linear(end=10.0, steps=10), beta=lambda step: 0.1 * step)
    for step in (0, 3, 10, 50):
        scheduled = objective(logits, targets, KL, dataset_size=500, step=step)
        fixed = Objective(lam=min(step, 10), beta=0.1 * step)(logits, targets, KL, dataset_size=500)
        assert float(scheduled.total) == pytest.approx(float(fixed.total), rel=1e-14)
        assert objective.calibration_weight(step, 24) == min(step, 10) / 24
        assert objective.kl_weight(step, 500) == 0.1 * step / 500


def test_held_out_data_take_the_calibration_term() -> None:
    logits, targets = batch(24, 4)
    other, labels = batch(60, 4)
    logits.requires_grad_()
    other.requires_grad_()
    terms = Objective(lam=7.0)(logits, targets, KL, dataset_size=500, held_out=(other, labels))
    aece = WMMCE()(other.softmax(-1), labels)
    plain = torch.nn.functional.cross_entropy(logits, targets)
    # λ stays over the size of the training batch: a larger held-out batch does not weaken the term.
    expected = (plain + 7.0 / 24 * aece + 0.1 / 500 * KL).item()
    assert terms.total.item() == pytest.approx(expected, rel=1e-12)
    by_data, by_held_out = torch.autograd.grad(terms.total, [logits, other])
    assert torch.equal(by_data, gradient(plain, logits))
    torch.testing.assert_close(by_held_out, 7.0 / 24 * gradient(aece, other), rtol=1e-12, atol=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_logits_lose_nothing_more(dtype: torch.dtype) -> None:
    logits, targets = batch(24, 4, 2)
    logits = logits.mul(4).to(dtype).requires_grad_()
    terms = Objective(lam=7.0)(logits, targets, KL.float(), dataset_size=500)
    wide = Objective(lam=7.0)(logits.float(), targets, KL.float(), dataset_size=500)
    assert terms.total.dtype == torch.float32
    assert torch.equal(terms.total, wide.total)
    assert bool(gradient(terms.total, logits).isfinite().all())


def test_cross_entropy_does_not_overflow_in_half_precision() -> None:
    logits = torch.tensor([[60_000.0, -60_000.0]], dtype=torch.float16)
    assert cross_entropy(logits, torch.tensor([1])).item() == pytest.approx(120_000, rel=1e-3)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32])
def test_labels_of_any_integer_type(dtype: torch.dtype) -> None:
    logits, targets = batch()
    objective = Objective()
    result = objective(logits, targets.to(dtype), KL, dataset_size=500).total
    assert torch.equal(result, objective(logits, targets, KL, dataset_size=500).total)


def test_labels_are_never_truncated() -> None:
    logits, targets = batch()
    with pytest.raises(InvalidTargetsError, match=r"integer type, but got torch\.float32"):
        Objective()(logits, targets + 0.7, KL, dataset_size=500)


@pytest.mark.parametrize("name", ["lam", "beta"])
@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf, "10", None, True])
def test_bad_weights(name: str, value: Any) -> None:
    turning_bad: dict[str, Any] = {name: lambda _: value}
    with pytest.raises(InvalidArgumentError, match=f"`{name}` to be a non-negative finite number, but got {value!r}"):
        Objective(**{name: value})
    with pytest.raises(InvalidArgumentError, match=f"`{name}` .* but got {value!r} at step 0"):
        Objective(**turning_bad)


def test_a_schedule_that_turns_bad_is_named_at_its_step() -> None:
    logits, targets = batch()
    objective = Objective(lam=lambda step: 1.0 - step)
    with pytest.raises(InvalidArgumentError, match=r"`lam` .* but got -1\.0 at step 2"):
        objective(logits, targets, KL, dataset_size=500, step=2)


@pytest.mark.parametrize("measure", [None, "wmmce", WMMCE, 3.0])
def test_bad_measures(measure: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"`calibration` to be a measure such as WMMCE\(\), but got"):
        Objective(calibration=measure)


@pytest.mark.parametrize("scale", ["sum", None, 1.0])
def test_bad_scale(scale: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=f"`lam_scale` to be 'paper' or 'mean', but got {scale!r}"):
        Objective(lam_scale=scale)


@pytest.mark.parametrize("size", [0, -5])
def test_bad_dataset_size(size: int) -> None:
    logits, targets = batch()
    with pytest.raises(InvalidArgumentError, match=f"`dataset_size` to be a positive finite number, but got {size}"):
        Objective()(logits, targets, KL, dataset_size=size)


class Overconfidence:
    """A measure of one's own: how far mean confidence is above mean correctness."""

    def scores(self, probs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        return probs.amax(-1), (probs.argmax(-1) == targets).to(probs)

    def value(self, r: Tensor, c: Tensor, weights: Tensor | None = None) -> Tensor:
        return (r - c).mean(-1).relu()


def test_a_measure_of_ones_own() -> None:
    measure: Measure = Overconfidence()
    logits, targets = batch()
    terms = Objective(lam=24.0, beta=0.0, calibration=measure)(logits, targets, KL, dataset_size=500)
    probs = logits.softmax(-1)
    gap = float((probs.amax(-1) - (probs.argmax(-1) == targets).double()).mean())
    assert gap > 0
    assert float(terms.total) == pytest.approx(mean_surprise(logits, targets) + gap, rel=1e-12)


def test_the_four_schemes() -> None:
    assert SCHEMES == ("fnn", "bnn", "ca-fnn", "ca-bnn")


@pytest.mark.parametrize("lam_scale", ["paper", "mean"])
def test_the_term_alone_is_what_the_objective_adds(lam_scale: Any) -> None:
    logits, targets = torch.randn(2, 30, 4, requires_grad=True), torch.arange(30) % 4
    objective = Objective(lam=Linear(end=20.0, steps=10), beta=0.0, lam_scale=lam_scale)
    terms = objective(logits, targets, torch.zeros(()), dataset_size=1, step=5)
    term = objective.term(logits, targets, step=5)
    assert term.item() == pytest.approx((terms.total - terms.cross_entropy).item(), rel=1e-5)
    (result,) = torch.autograd.grad(term, logits, retain_graph=True)
    (expected,) = torch.autograd.grad(terms.total - terms.cross_entropy, logits)
    assert torch.allclose(result, expected, atol=1e-7)
    assert float(result.abs().max()) > 0
    assert Objective(lam=0.0).term(logits, targets).item() == 0


@pytest.mark.parametrize(
    ("logits", "targets", "message"),
    [
        (
            torch.zeros(5, 1),
            torch.zeros(5, dtype=torch.int64),
            r"two classes, but got \[5, 1\]\. A binary classifier",
        ),
        (torch.zeros(5), torch.zeros(5, dtype=torch.int64), r"two classes, but got \[5\]"),
        (torch.zeros(0, 3), torch.zeros(0, dtype=torch.int64), r"at least one example .*, but got \[0, 3\]\.$"),
        (torch.zeros(5, 3, dtype=torch.int64), torch.zeros(5, dtype=torch.int64), r"floating-point type, but got torch.int64"),
        (torch.zeros(5, 3), torch.zeros(5, 1, dtype=torch.int64), r"for `logits` .*, but got \[5, 1\]\. A column"),
        (torch.zeros(5, 3), torch.zeros(5, 3, dtype=torch.int64), r"but got \[5, 3\]\. One-hot labels: pass"),
        (torch.zeros(2, 5, 3), torch.zeros(4, dtype=torch.int64), r"shape \[2, 5\] or \[5\] .*, but got \[4\]"),
        (torch.zeros(5, 3), torch.tensor([0, 1, 3, 0, 0]), r"must lie in 0 … 2 for 3 classes, but label 2 is 3"),
        (torch.zeros(5, 3), torch.tensor([0, 1, 2, -100, 0]), r"label 3 is -100"),
    ],
)
def test_logits_and_labels_that_do_not_fit_are_named(logits: Tensor, targets: Tensor, message: str) -> None:
    objective, fitting = Objective(), (torch.zeros(5, 3), torch.zeros(5, dtype=torch.int64))
    with pytest.raises(CalibayesError, match=message):
        objective.term(logits, targets)
    with pytest.raises(CalibayesError, match=message):
        objective(logits, targets, KL, dataset_size=10)
    with pytest.raises(CalibayesError, match=message):
        objective(*fitting, KL, dataset_size=10, held_out=(logits, targets))
