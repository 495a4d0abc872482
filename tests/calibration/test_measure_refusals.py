"""Settings and inputs of the calibration measures that cannot be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from tests.calibration.measured import MEASURES, batch
from torch import Tensor

from calibayes.calibration import DECE, MMCE, SBECE, WMMCE
from calibayes.errors import InvalidArgumentError, InvalidProbabilitiesError, InvalidTargetsError


@pytest.mark.parametrize("name", ["kernel_width", "tau_r", "tau_c"])
@pytest.mark.parametrize("value", [0, -0.4, float("nan"), float("inf"), None, "0.4"])
@pytest.mark.parametrize("measure", [WMMCE, MMCE])
def test_settings_must_be_positive(measure: Callable[..., Any], name: str, value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=f"`{name}` to be a positive finite number, but got"):
        measure(**{name: value})


@pytest.mark.parametrize(
    ("measure", "setting", "message"),
    [
        (WMMCE, {"mode": "smooth"}, "`mode` to be 'soft' or 'hard', but got 'smooth'"),
        (MMCE, {"normalization": "none"}, "`normalization` to be 'paper' or 'reference', but got 'none'"),
        (DECE, {"bins": 0}, "`bins` to be a positive integer, but got 0"),
        (DECE, {"bins": 2.5}, r"`bins` to be a positive integer, but got 2\.5"),
        (DECE, {"bins": True}, "`bins` to be a positive integer, but got True"),
        (SBECE, {"bins": 0}, "`bins` to be a positive integer, but got 0"),
        (SBECE, {"temperature": -1.0}, r"`temperature` to be a positive finite number, but got -1\.0"),
        (SBECE, {"norm": 0.5}, r"`norm` to be a finite number of at least 1, but got 0\.5"),
        (DECE, {"temperature": 0.0}, r"`temperature` to be a positive finite number, but got 0\.0"),
    ],
)
def test_bad_settings(measure: Callable[..., Any], setting: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        measure(**setting)


@pytest.mark.parametrize("measure", MEASURES)
def test_inputs_are_checked_unless_told_not_to(measure: Callable[..., Tensor]) -> None:
    probs, targets = batch(5, 3)
    doubled = probs.clone()
    doubled[3] *= 2
    with pytest.raises(InvalidProbabilitiesError, match=r"row 3 is .*, which sums to 2"):
        measure(doubled, targets)
    with pytest.raises(InvalidTargetsError, match="label 4 is 3"):
        measure(probs, torch.tensor([0, 1, 2, 0, 3]))
    assert bool(measure(doubled, targets, check=False).isfinite())
