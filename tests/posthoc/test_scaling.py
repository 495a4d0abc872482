"""What every post-hoc method promises: the same kind out as in, probabilities always, named errors."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from tests.posthoc.scalings import FOR_MANY_CLASSES, FOR_TWO_CLASSES
from torch import Tensor

from calibayes import Predictive
from calibayes.errors import CalibayesError, InvalidArgumentError, InvalidProbabilitiesError, InvalidTargetsError
from calibayes.posthoc import (
    IsotonicScaling,
    NotFittedError,
    PlattScaling,
    PosthocWarning,
    QuadraticScaling,
    Scaling,
    StructuredMatrixScaling,
    TemperatureScaling,
    VectorScaling,
)

EVERY = [*FOR_MANY_CLASSES, *FOR_TWO_CLASSES]


def drawn(n: int = 60, classes: int = 2, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(n, classes, generator=generator).double()
    return logits, torch.multinomial((logits / 2).softmax(-1), 1, generator=generator)[:, 0]


def fitted(scaling: type[Scaling], classes: int = 2) -> Scaling:
    logits, targets = drawn(classes=classes)
    return scaling().fit(logits.softmax(-1), targets)


@pytest.mark.parametrize("scaling", EVERY)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("shape", ["[n, 2]", "[n, 1]", "[n]"])
def test_torch_in_torch_out(scaling: type[Scaling], dtype: torch.dtype, shape: str) -> None:
    logits, targets = drawn()
    probs = logits.softmax(-1).to(dtype)
    values = {"[n, 2]": probs, "[n, 1]": probs[:, 1:], "[n]": probs[:, 1]}[shape].clone().requires_grad_()
    out = scaling().fit(values, targets).transform(values)
    assert isinstance(out, Tensor)
    assert (out.dtype, out.device, out.shape, out.requires_grad) == (dtype, values.device, values.shape, False)
    whole = scaling().fit(probs, targets).transform(probs)
    one = {"[n, 2]": whole, "[n, 1]": whole[:, 1:], "[n]": whole[:, 1]}[shape]
    # 1 - p rounds, and halves are coarse: the fit moves a little.
    torch.testing.assert_close(out, one, atol={torch.float64: 1e-6, torch.float32: 1e-5}.get(dtype, 0.05), rtol=0)


@pytest.mark.parametrize("scaling", EVERY)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.longdouble, ">f8"])
def test_numpy_in_numpy_out(scaling: type[Scaling], dtype: Any) -> None:
    logits, targets = drawn()
    probs = logits.softmax(-1).numpy().astype(dtype)
    probs.flags.writeable = False
    model = scaling().fit(probs, targets.numpy().astype(np.uint8), weights=np.ones(60))
    for values in (probs, probs[:, 1], probs[:, 1:]):
        out = model.transform(values)
        assert isinstance(out, np.ndarray)
        assert (out.dtype, out.shape) == (values.dtype, values.shape)
    same = (
        scaling().fit(torch.from_numpy(probs.astype(np.float64)), targets).transform(torch.from_numpy(probs.astype(np.float64)))
    )
    atol = 1e-3 if dtype == np.float16 else 1e-6
    np.testing.assert_allclose(model.transform(probs).astype(np.float64), same.numpy(), atol=atol)


@pytest.mark.parametrize("scaling", EVERY)
def test_inputs_stay_as_they_were(scaling: type[Scaling]) -> None:
    logits, targets = drawn()
    probs = logits.softmax(-1)
    before = probs.clone(), logits.clone()
    model = scaling().fit(probs, targets)
    model.transform(probs)
    model.fit(logits, targets, logits=True).transform(logits, logits=True)
    assert torch.equal(probs, before[0])
    assert torch.equal(logits, before[1])


@pytest.mark.parametrize("scaling", EVERY)
def test_a_predictive_is_scaled_by_its_averaged_probabilities(scaling: type[Scaling]) -> None:
    logits, targets = drawn()
    probs = logits.softmax(-1)
    predictive = Predictive(probs, torch.zeros(60))
    out = scaling().fit(predictive, targets).transform(predictive)
    assert torch.equal(out, scaling().fit(probs, targets).transform(probs))
    with pytest.raises(InvalidArgumentError, match="leave out `logits=True`"):
        fitted(scaling).transform(predictive, logits=True)


@pytest.mark.parametrize("scaling", EVERY)
def test_logits_and_probabilities_agree(scaling: type[Scaling]) -> None:
    logits, targets = drawn()
    by_logits = scaling().fit(logits, targets, logits=True)
    by_probs = scaling().fit(logits.softmax(-1), targets)
    for model in (by_logits, by_probs):
        torch.testing.assert_close(
            model.transform(logits, logits=True), by_probs.transform(logits.softmax(-1)), atol=1e-6, rtol=0
        )
    odds = logits[:, 1] - logits[:, 0]
    torch.testing.assert_close(
        by_logits.transform(odds, logits=True), by_logits.transform(logits, logits=True)[:, 1], atol=1e-9, rtol=0
    )


@pytest.mark.parametrize("scaling", FOR_MANY_CLASSES)
def test_logits_say_more_than_probabilities_that_underflowed(scaling: type[Scaling]) -> None:
    """Logits 300 times too large: as float32 probabilities nearly all of them are 0 or 1."""
    logits, targets = drawn(2000, 3)
    by_logits = scaling().fit(300 * logits, targets, logits=True).transform(300 * logits, logits=True)
    truth = (logits / 2).softmax(-1)
    assert (by_logits - truth).abs().mean() < 0.02
    probs = (300 * logits.float()).softmax(-1)
    by_probs = scaling().fit(probs, targets).transform(probs)
    assert by_probs.isfinite().all()
    assert (by_probs - truth).abs().mean() > 0.08


@pytest.mark.parametrize("scaling", EVERY)
def test_blocks_do_not_show(scaling: type[Scaling], monkeypatch: pytest.MonkeyPatch) -> None:
    logits, targets = drawn(501)
    probs, weights = logits.softmax(-1), torch.rand(501)
    whole = scaling().fit(probs, targets, weights=weights).transform(probs)
    monkeypatch.setattr("calibayes.posthoc.log_scores._BLOCK", 64)
    in_blocks = scaling().fit(probs, targets, weights=weights).transform(probs)
    torch.testing.assert_close(in_blocks, whole, atol=1e-6, rtol=0)


@pytest.mark.parametrize("scaling", EVERY)
def test_unfitted(scaling: type[Scaling]) -> None:
    with pytest.raises(NotFittedError, match=f"This {scaling.__name__} has not been fitted. Call `fit` on held-out"):
        scaling().transform(torch.tensor([[0.5, 0.5]]))
    assert repr(scaling()) == f"{scaling.__name__}(not fitted)"
    assert issubclass(NotFittedError, CalibayesError)


def test_unfitted_parameters() -> None:
    for unfitted, names in (
        (TemperatureScaling(), ["temperature"]),
        (VectorScaling(), ["scale", "bias"]),
        (PlattScaling(), ["slope", "intercept"]),
        (StructuredMatrixScaling(), ["temperature", "matrix", "bias"]),
        (QuadraticScaling(), ["temperature", "curvature", "slope", "intercept"]),
    ):
        for name in names:
            with pytest.raises(NotFittedError):
                getattr(unfitted, name)


@pytest.mark.parametrize("scaling", EVERY)
def test_a_fit_that_is_refused_leaves_the_last_one(scaling: type[Scaling]) -> None:
    model = fitted(scaling)
    probs = torch.tensor([[0.9, 0.1], [0.2, 0.8]])
    before = model.transform(probs)
    with pytest.raises(InvalidTargetsError):
        model.fit(probs, torch.tensor([0, 2]))
    assert torch.equal(model.transform(probs), before)


@pytest.mark.parametrize("scaling", EVERY)
def test_another_number_of_classes(scaling: type[Scaling]) -> None:
    with pytest.raises(InvalidProbabilitiesError, match=f"{scaling.__name__} was fitted on 2 classes, but `probs` have 3"):
        fitted(scaling).transform(torch.full((4, 3), 1 / 3))
    if scaling in FOR_MANY_CLASSES:
        with pytest.raises(InvalidProbabilitiesError, match="fitted on 3 classes, but `probs` have 2"):
            fitted(scaling, classes=3).transform(torch.tensor([0.5]))


@pytest.mark.parametrize("scaling", FOR_MANY_CLASSES)
def test_the_last_fit_counts(scaling: type[Scaling]) -> None:
    logits, targets = drawn(classes=3)
    again = fitted(scaling).fit(logits, targets, logits=True)
    once = scaling().fit(logits, targets, logits=True)
    assert torch.equal(again.transform(logits, logits=True), once.transform(logits, logits=True))


@pytest.mark.parametrize("scaling", EVERY)
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_gradients_may_be_off(scaling: type[Scaling], mode: Any) -> None:
    logits, targets = drawn()
    expected = fitted(scaling).transform(logits, logits=True)
    with mode():
        out = scaling().fit(logits.softmax(-1), targets).transform(logits, logits=True)
    assert torch.equal(out, expected)


@pytest.mark.parametrize("scaling", EVERY)
def test_bad_inputs_are_named(scaling: type[Scaling]) -> None:
    probs, targets = torch.tensor([[0.9, 0.1], [0.2, 0.8]]), torch.tensor([0, 1])
    model = fitted(scaling)
    not_numbers = torch.tensor([[0.9, 0.1], [float("nan"), 0.8]])
    for bad in (probs + 1, not_numbers, probs[None], probs.long(), torch.tensor(0.5), probs[:0], [[0.5, 0.5]]):
        with pytest.raises(InvalidProbabilitiesError):
            model.transform(bad)  # type: ignore[arg-type]
        with pytest.raises(CalibayesError):
            model.fit(bad, targets)  # type: ignore[arg-type]
    for labels in (targets.float(), torch.tensor([0, 2]), torch.tensor([0]), ["a", "b"]):
        with pytest.raises(InvalidTargetsError):
            model.fit(probs, labels)  # type: ignore[arg-type]
        with pytest.raises(InvalidTargetsError):
            model.fit(probs, labels, logits=True)  # type: ignore[arg-type]
    for weights in (torch.tensor([1.0, -1.0]), torch.zeros(2), torch.ones(3)):
        with pytest.raises(InvalidArgumentError):
            model.fit(probs, targets, weights=weights)
        with pytest.raises(InvalidArgumentError):
            model.fit(probs, targets, weights=weights, logits=True)


@pytest.mark.parametrize("scaling", EVERY)
def test_bad_logits_are_named(scaling: type[Scaling]) -> None:
    model = fitted(scaling)
    with pytest.raises(InvalidArgumentError, match=r"row 1 has -inf for class 0\. A class that is ruled out"):
        model.transform(torch.tensor([[1.0, 2.0], [-torch.inf, 0.0]]), logits=True)
    with pytest.raises(InvalidArgumentError, match="row 0 has nan for class 1"):
        model.transform(torch.tensor([torch.nan]), logits=True)
    with pytest.raises(InvalidArgumentError, match="floating-point"):
        model.transform(torch.tensor([[1, 2]]), logits=True)
    with pytest.raises(InvalidArgumentError, match="at least one example"):
        model.transform(torch.zeros(0, 2), logits=True)
    with pytest.raises(InvalidProbabilitiesError, match="shape"):
        model.transform(torch.zeros(1, 2, 3), logits=True)


@pytest.mark.parametrize("scaling", EVERY)
def test_pickled_models_say_the_same(scaling: type[Scaling]) -> None:
    model = fitted(scaling)
    probs = drawn(seed=1)[0].softmax(-1)
    assert torch.equal(pickle.loads(pickle.dumps(model)).transform(probs), model.transform(probs))


def test_what_is_fitted_is_shown() -> None:
    assert repr(TemperatureScaling().fit(torch.tensor([0.9, 0.9, 0.9]), torch.tensor([1, 1, 0]))).startswith(
        "TemperatureScaling(temperature=3.1699"
    )
    assert repr(fitted(VectorScaling, classes=3)) == "VectorScaling(3 classes, ridge=1e-06)"
    assert repr(fitted(PlattScaling)).startswith("PlattScaling(slope=0.")
    assert repr(fitted(IsotonicScaling)).endswith("thresholds)")


@pytest.mark.parametrize("scaling", EVERY)
def test_the_warning_points_at_the_call(scaling: type[Scaling]) -> None:
    with pytest.warns(PosthocWarning) as caught:
        scaling().fit(torch.tensor([0.9]), torch.tensor([1]))
    assert [found.filename for found in caught] == [__file__]


def test_importing_and_temperature_load_no_scipy() -> None:
    code = (
        "import sys, torch; from calibayes.posthoc import TemperatureScaling;"
        "TemperatureScaling().fit(torch.tensor([0.9, 0.9, 0.9]), torch.tensor([1, 1, 0])).transform(torch.tensor([0.5]));"
        "print(*{'scipy', 'sklearn'} & set(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip() == ""
