"""Whatever is passed in, probabilities come out: extremes, zeros, ties, one example, one class."""

from __future__ import annotations

import warnings

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.posthoc.scalings import FOR_MANY_CLASSES, FOR_TWO_CLASSES
from torch import Tensor

from calibayes.posthoc import PosthocWarning, Scaling


@st.composite
def predictions(draw: st.DrawFn) -> tuple[Tensor, Tensor, Tensor, bool]:
    """Probabilities or logits of every shape, with zeros, ties and extremes, labels and weights."""
    n, classes = draw(st.integers(1, 6)), draw(st.integers(2, 4))
    logits = draw(st.booleans())
    dtype = draw(st.sampled_from([torch.float64, torch.float32, torch.float16]))
    numbers = st.sampled_from([0.0, 1.0, -1.0, 1e-30, 50.0, -200.0, 6e4, -6e4]) | st.floats(-10, 10)
    if dtype != torch.float16:
        numbers |= st.sampled_from([3e38, -3e38])
    if dtype == torch.float64:
        numbers |= st.sampled_from([1.7e308, -1.7e308])
    flat = draw(st.lists(numbers, min_size=n * classes, max_size=n * classes))
    values = torch.tensor(flat, dtype=torch.float64).reshape(n, classes).to(dtype)
    if not logits:
        values = values.double().softmax(-1).to(dtype)
    targets = torch.tensor(draw(st.lists(st.integers(0, classes - 1), min_size=n, max_size=n)))
    weights = torch.tensor(draw(st.lists(st.sampled_from([0.0, 1.0, 1e-9, 1e9]), min_size=n, max_size=n)), dtype=torch.float64)
    weights[draw(st.integers(0, n - 1))] = 1.0
    if classes == 2 and draw(st.booleans()):
        values = values[:, 1]
    return values, targets, weights, logits


@pytest.mark.parametrize("scaling", [*FOR_MANY_CLASSES, *FOR_TWO_CLASSES])
@settings(max_examples=60)
@given(drawn=predictions())
def test_there_is_never_a_nan(scaling: type[Scaling], drawn: tuple[Tensor, Tensor, Tensor, bool]) -> None:
    values, targets, weights, logits = drawn
    if values.dim() == 2 and values.shape[1] > 2 and scaling in FOR_TWO_CLASSES:
        values, targets = values[:, :1].sigmoid() if logits else values[:, 0], (targets > 0).long()
        logits = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PosthocWarning)
        out = scaling().fit(values, targets, weights=weights, logits=logits).transform(values, logits=logits)
    assert out.shape == values.shape
    assert bool(((out >= 0) & (out <= 1)).all())
    if out.dim() == 2 and out.shape[1] > 1:
        tolerance = 5e-3 if out.dtype == torch.float16 else 1e-5
        torch.testing.assert_close(out.double().sum(-1), torch.ones(len(out)).double(), atol=tolerance, rtol=0)
