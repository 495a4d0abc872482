"""Terms: what each computes, what the objective makes of them, and what is refused."""

from __future__ import annotations

import copy
import math
import pickle
from dataclasses import replace
from typing import Any

import pytest
import torch
from tests.objective.own_terms import Spread
from torch import Tensor, nn

import calibayes as cb
from calibayes.errors import InvalidArgumentError
from calibayes.objective import checked_objective
from calibayes.schedules import Linear

KL = torch.tensor(7.0, dtype=torch.float64)


def batch(*shape: int) -> tuple[Tensor, Tensor]:
    return torch.randn(*shape, 4, dtype=torch.float64) * 2, torch.randint(4, shape[-1:])


def test_confidence_minimization_is_the_cross_entropy_to_the_uniform() -> None:
    logits, _ = batch(3, 10)
    term = cb.ConfidenceMinimization(weight=0.5)
    result = term.value(*term.scores(logits, None))
    rows = logits.softmax(-1).tolist()
    expected = [math.fsum(-math.fsum(map(math.log, row)) / 4 for row in sample) / 10 for sample in rows]
    assert result.tolist() == pytest.approx(expected)
    assert term.weight(0, 100) == 0.5
    assert cb.ConfidenceMinimization(Linear(end=1.0, steps=10)).weight(5, 100) == 0.5
    # It is lowest where all classes are equally likely, and finite where one has all.
    assert float(term.value(*term.scores(torch.zeros(5, 4), None))) == pytest.approx(math.log(4))
    sure = torch.tensor([[1e4, 0.0, 0.0, 0.0]], requires_grad=True)
    term.value(*term.scores(sure, None)).backward()
    assert sure.grad is not None
    assert bool(sure.grad.isfinite().all())


def test_the_total_is_the_weighted_sum_of_all() -> None:
    (logits, targets), (held, labels), (outside, _) = batch(3, 20), batch(3, 15), batch(3, 8)
    terms = (
        cb.Calibration(cb.MMCE(), lam=5.0),
        cb.Calibration(cb.DECE(), lam=2.0, scale="mean", on="held_out", name="held"),
        cb.ConfidenceMinimization(weight=0.5),
        Spread(),
    )
    objective = cb.Objective(beta=0.3, loss=cb.Focal(), terms=terms)
    result = objective(logits, targets, KL, dataset_size=50, step=1, held_out=(held, labels), out_of_domain=outside)
    apart = {
        "focal": cb.Focal()(logits, targets).mean(),
        "calibration": cb.MMCE()(logits.softmax(-1), targets).mean(),
        "held": cb.DECE()(held.softmax(-1), labels).mean(),
        "confidence": -outside.log_softmax(-1).mean(),
        "spread": Spread().value(*Spread().scores(logits, targets)).mean(),
        "kl": KL,
    }
    assert list(result.values) == list(apart)
    for name, value in apart.items():
        assert float(result.values[name]) == pytest.approx(float(value), rel=1e-12)
        assert getattr(result, name) is result.values[name]
    weights = {"focal": 1.0, "calibration": 5 / 20, "held": 2.0, "confidence": 0.5, "spread": 1.0, "kl": 0.3 / 50}
    total = sum(weights[name] * float(value) for name, value in apart.items())
    assert float(result.total) == pytest.approx(total, rel=1e-12)
    assert [float(value) for value in result] == [float(result.total), *map(float, result.values.values())]
    alone = objective.term(logits, targets, step=1, held_out=(held, labels), out_of_domain=outside)
    assert float(alone) == pytest.approx(total - float(apart["focal"]) - 0.3 / 50 * 7, rel=1e-9)
    with pytest.raises(AttributeError, match="Terms has no 'aece'; the terms are focal, calibration, held"):
        result.aece  # noqa: B018


@pytest.mark.parametrize("term", [cb.Calibration(of="predictive"), Spread(of="predictive")])
def test_a_term_of_the_predictive_is_taken_on_averaged_probabilities(term: Any) -> None:
    logits, targets = batch(5, 20)
    logits.requires_grad_()
    result = cb.Objective(terms=(term,))(logits, targets, KL, dataset_size=50).values[term.name]
    average = logits.softmax(-1).mean(0)
    expected = term.value(*term.scores(average.log(), targets))
    torch.testing.assert_close(result, expected, rtol=1e-10, atol=0)
    (one,), (other,) = (torch.autograd.grad(value, logits, retain_graph=True) for value in (result, expected))
    torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-12)
    each = cb.Objective(terms=(replace(term, of="samples"),))(logits, targets, KL, dataset_size=50).values[term.name]
    assert each.item() != pytest.approx(result.item(), rel=0.05)


def test_the_short_form_is_the_long_one() -> None:
    short = cb.Objective(3.0, 0.2, cb.MMCE(), "mean")
    long = cb.Objective(beta=0.2, terms=[cb.Calibration(cb.MMCE(), lam=3.0, scale="mean")])
    assert short == long
    assert hash(short) == hash(long)
    assert short.terms == long.terms
    assert (short.lam, short.beta, short.calibration, short.lam_scale) == (3.0, 0.2, cb.MMCE(), "mean")
    assert (long.lam, long.calibration, long.lam_scale) == (None, None, None)
    for each in (short, long):
        for built in (copy.deepcopy(each), pickle.loads(pickle.dumps(each)), replace(each, beta=0.2)):
            assert built == each
            assert repr(built) == repr(each)
    assert replace(short, lam=4.0).terms == (cb.Calibration(cb.MMCE(), lam=4.0, scale="mean"),)
    assert replace(short, lam_scale="paper").lam == 3.0
    result = []
    for objective in (short, long):
        torch.manual_seed(0)
        posterior = cb.MeanField(nn.Linear(4, 3))
        data = torch.randn(40, 4), torch.arange(40) % 3
        history = cb.fit(posterior, data, objective, epochs=2, batch_size=20, samples=2)
        result.append((posterior.mu.detach(), posterior.rho.detach(), history))
    assert torch.equal(result[0][0], result[1][0])
    assert torch.equal(result[0][1], result[1][1])
    assert result[0][2] == result[1][2]


class Mine(cb.Objective):  # type: ignore[misc]
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise AssertionError("is never called")


@pytest.mark.parametrize("objective", [Mine(), cb.Objective, cb.WMMCE(), None, 0.5])
def test_what_is_not_exactly_an_objective_is_refused(objective: Any) -> None:
    message = f"Expected `objective` to be an Objective, but got {type(objective).__name__}.*pass `loss=` or `terms=`"
    with pytest.raises(InvalidArgumentError, match=message):
        checked_objective(objective)
    with pytest.raises(InvalidArgumentError, match=message):
        cb.fit(cb.Point(nn.Linear(4, 3)), (torch.randn(8, 4), torch.arange(8) % 3), objective)


class NoMeasure(nn.Module):
    def forward(self, probs: Tensor, targets: Tensor) -> Tensor:
        return probs.mean()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lam": 10.0, "terms": ()}, "`lam` and `terms` cannot be given together"),
        ({"lam_scale": "paper", "terms": ()}, "`lam_scale` and `terms` cannot be given together"),
        ({"calibration": cb.WMMCE(), "terms": (cb.Calibration(),)}, "`calibration` and `terms` cannot be given together"),
        (
            {"terms": (cb.Calibration(), cb.Calibration())},
            "Calibration cannot have the name 'calibration': the loss or another",
        ),
        ({"terms": (Spread(name="cross_entropy"),)}, "Spread cannot have the name 'cross_entropy': the loss or another"),
        *(
            ({"terms": (Spread(name=name),)}, f"cannot have the name '{name}': training logs something else")
            for name in ("total", "kl", "examples", "epoch", "lr", "values")
        ),
        ({"terms": (Spread(name="val_nll"),)}, "cannot have the name 'val_nll': it must be a Python identifier"),
        ({"terms": (Spread(name="a term"),)}, "cannot have the name 'a term': it must be a Python identifier"),
        ({"terms": (cb.Calibration,)}, r"but got the class Calibration: pass Calibration\(\)"),
        ({"terms": (cb.WMMCE(),)}, r"but got WMMCE\(.*Wrap a measure: Calibration\(measure\)"),
        ({"terms": (len,)}, r"but got <built-in function len>\. Subclass calibayes\.objective\.Term"),
        ({"terms": cb.Calibration()}, r"itself: pass terms=\(…,\)"),
        ({"terms": 3}, r"a tuple of terms such as \(Calibration\(\),\), but got 3"),
        ({"terms": (Spread(on="train"),)}, r"`Spread.on` to be 'batch' or 'held_out' or 'out_of_domain', but got 'train'"),  # type: ignore[arg-type]
        ({"calibration": cb.WMMCE}, r"but got <class .*Pass an object, not the class: WMMCE\(\)"),
        ({"calibration": lambda probs, targets: probs.mean()}, "A measure has the methods scores.* subclass"),
        ({"calibration": NoMeasure()}, r"but got NoMeasure\(\)\. A measure has the methods scores"),
    ],
)
def test_refusals(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        cb.Objective(**settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"measure": cb.WMMCE}, r"`measure` to be a measure .*Pass an object, not the class"),
        ({"lam": -1.0}, "`lam` to be a non-negative finite number, but got -1"),
        ({"scale": "sum"}, "`scale` to be 'paper' or 'mean', but got 'sum'"),
        ({"on": "out_of_domain"}, "`on` to be 'batch' or 'held_out', but got 'out_of_domain'"),
        ({"of": "mean"}, "`of` to be 'samples' or 'predictive', but got 'mean'"),
    ],
)
def test_bad_settings_of_the_calibration_term(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        cb.Calibration(**settings)


def test_bad_settings_of_confidence_minimization() -> None:
    with pytest.raises(InvalidArgumentError, match="`weight` to be a non-negative finite number, but got -2"):
        cb.ConfidenceMinimization(weight=-2.0)
    assert cb.ConfidenceMinimization(0.5) == cb.ConfidenceMinimization(weight=0.5) != cb.ConfidenceMinimization()


def test_terms_and_data_must_fit() -> None:
    logits, targets = batch(10)
    outside = cb.Objective(terms=(cb.ConfidenceMinimization(),))
    with pytest.raises(InvalidArgumentError, match=r"'confidence' is taken on out-of-domain inputs.* pass `out_of_domain`"):
        outside(logits, targets, KL, dataset_size=10)
    with pytest.raises(InvalidArgumentError, match="`out_of_domain` was given, but no term"):
        cb.Objective()(logits, targets, KL, dataset_size=10, out_of_domain=logits)
    with pytest.raises(InvalidArgumentError, match="`held_out` was given, but no term"):
        outside(logits, targets, KL, dataset_size=10, out_of_domain=logits, held_out=(logits, targets))


class OddScores(Spread):
    def scores(self, logits: Tensor, targets: Tensor | None) -> tuple[Tensor, ...]:
        return (logits.mean(),)


def test_scores_must_have_one_number_per_example() -> None:
    logits, targets = batch(10)
    with pytest.raises(InvalidArgumentError, match=r"every score of the term 'spread' .* shape \[10\], but one has \[\]"):
        cb.Objective(terms=(OddScores(),))(logits, targets, KL, dataset_size=10)
