"""Models and training runs that version 0.1 wrote are read by this one, and give the same bits."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

import calibayes as cb

FOLDER = Path(__file__).parent / "saved_by_0_1"


@pytest.fixture(scope="module")
def expected() -> dict[str, Tensor]:
    # Copies: sums of floats may depend on where a tensor begins in memory.
    return {name: value.clone() for name, value in load_file(FOLDER / "expected.safetensors").items()}


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 3))


def parameters(posterior: cb.posterior.Posterior) -> Tensor:
    return torch.cat([parameter.detach().reshape(-1) for parameter in posterior.parameters()])


@pytest.mark.parametrize("kind", ["point", "mean-field"])
def test_models_predict_what_they_predicted(kind: str, expected: dict[str, Tensor]) -> None:
    posterior = cb.load(FOLDER / f"{kind}.safetensors", network())
    assert posterior.kind == kind
    assert torch.equal(parameters(posterior), expected[f"{kind}.parameters"])
    assert torch.equal(cb.predict(posterior, expected["x"][:8], samples=5, seed=4).probs, expected[kind])


@pytest.mark.parametrize("kind", ["point", "mean-field"])
def test_training_gives_the_bits_that_it_gave(kind: str, expected: dict[str, Tensor]) -> None:
    priors = {"3.*": 0.2, "*": 0.1}
    wide = cb.MeanField(network(), prior_std=priors, init_std=0.05, prior_mean="initial")
    posterior = cb.Point(network()) if kind == "point" else wide
    data = (expected["x"], expected["y"])
    cb.fit(posterior, data, cb.Objective(lam=5.0, beta=0.1), epochs=3, batch_size=16, seed=2, device="cpu")
    assert torch.equal(parameters(posterior), expected[f"{kind}.parameters"])


def test_an_unfinished_run_goes_on_to_the_same_bits(tmp_path: Path, expected: dict[str, Tensor]) -> None:
    shutil.copytree(FOLDER / "run", tmp_path / "run")
    posterior = cb.MeanField(network(), prior_std=0.1, init_std=0.05)
    x, y = expected["x"], expected["y"]
    history = cb.fit(
        posterior,
        (x, y),
        cb.Objective(lam=5.0, beta=0.1),
        epochs=4,
        batch_size=16,
        seed=2,
        checkpoint=tmp_path / "run",
        device="cpu",
        validation=(x[:20], y[:20]),
    )
    assert len(history.epochs) == 4
    assert len(history.seconds) == 4
    assert torch.equal(parameters(posterior), expected["run.parameters"])
