"""Training with the paper's objective gives the same bits as it always has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from tests.training.toy import data, net

import calibayes as cb

FILE = Path(__file__).parent / "golden" / "short_form.safetensors"
POINT, MEAN_FIELD = cb.Point, cb.MeanField
CASES: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {
    "point": (POINT, {}, {}),
    "point, no term": (POINT, {"lam": 0.0}, {}),
    "point, held out": (POINT, {"lam": 20.0}, {"calibration_data": data(40, 5)}),
    "mean field": (MEAN_FIELD, {}, {}),
    "three samples": (MEAN_FIELD, {"lam": 20.0, "beta": 0.5}, {"samples": 3}),
    "three samples, looped": (MEAN_FIELD, {"lam": 20.0}, {"samples": 3, "sample_chunk": 1}),
    "two chunks": (MEAN_FIELD, {"lam": 20.0}, {"samples": 3, "sample_chunk": 2}),
    "weights": (MEAN_FIELD, {"lam": 20.0}, {"train": (*data(), torch.linspace(0, 2, 90)), "samples": 3}),
    "micro-batches": (MEAN_FIELD, {"lam": 20.0}, {"samples": 3, "micro_batch_size": 7}),
    "micro-batches, weights": (POINT, {}, {"train": (*data(), torch.linspace(0, 2, 90)), "micro_batch_size": 10}),
    "held out, micro-batches": (
        MEAN_FIELD,
        {"lam": 20.0},
        {"samples": 3, "calibration_data": data(40, 5), "micro_batch_size": 7},
    ),
    "mean scale": (MEAN_FIELD, {"lam": 1.0, "lam_scale": "mean", "calibration": cb.MMCE()}, {"samples": 3}),
    "warm-up": (MEAN_FIELD, {"lam": cb.schedules.Linear(end=10.0, steps=5), "calibration": cb.DECE()}, {"clip_norm": 0.5}),
}


def platform() -> dict[str, str]:
    """True where bits are the same: other versions and processors add in another order."""
    return {"torch": torch.__version__, "processor": torch.backends.cpu.get_cpu_capability()}


def trained(name: str) -> dict[str, torch.Tensor]:
    """Every parameter and every term of every step."""
    kind, objective, settings = CASES[name]
    posterior = kind(net())
    fixed = {"train": data(), "epochs": 2, "batch_size": 32, "seed": 4}
    history = cb.fit(posterior, objective=cb.Objective(**objective), **{**fixed, **settings})
    steps = [[step.total, step.cross_entropy, step.calibration, step.kl, step.examples] for step in history.steps]
    found = {str(number): parameter.detach() for number, parameter in enumerate(posterior.parameters())}
    return {**found, "steps": torch.tensor(steps, dtype=torch.float64)}


@pytest.mark.parametrize("name", CASES)
def test_the_short_form_trains_to_the_same_bits(name: str) -> None:
    with safe_open(FILE, framework="pt") as file:
        here = file.metadata() == platform()
        golden = {key.split("/")[1]: file.get_tensor(key) for key in file.keys() if key.split("/")[0] == name}  # noqa: SIM118
    found = trained(name)
    assert golden.keys() == found.keys()
    for key, value in golden.items():
        if here:
            assert torch.equal(value, found[key]), key
        else:
            torch.testing.assert_close(found[key], value, rtol=1e-3, atol=1e-4)
