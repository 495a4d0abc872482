"""The example in plain PyTorch and the library, two implementations of the paper, end with the same weights."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import vector_to_parameters

import calibayes as cb


@pytest.fixture(scope="module")
def example() -> ModuleType:
    path = Path(__file__).parents[1] / "examples" / "ca_bnn_in_one_file.py"
    spec = importlib.util.spec_from_file_location("ca_bnn_in_one_file", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def data(example: ModuleType) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    x, y, x_test, y_test = example.load_data()
    return x.double(), y, x_test.double(), y_test


@pytest.mark.parametrize(("samples", "epochs"), [(1, 6), (3, 2)])
def test_the_library_ends_with_the_same_weights_and_probabilities(
    example: ModuleType,
    data: tuple[Tensor, Tensor, Tensor, Tensor],
    samples: int,
    epochs: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x, y, x_test, y_test = data
    monkeypatch.setattr(example, "SAMPLES", samples)
    start = example.initial_mean().double()
    mu, rho = example.train(x, y, start, epochs)
    probs = example.predict(x_test, mu, rho)

    net = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10)).double()
    vector_to_parameters(start, net.parameters())
    posterior = cb.MeanField(net, prior_std=example.PRIOR_STD, init_std=example.INIT_STD)
    objective = cb.Objective(lam=example.LAMBDA, beta=example.BETA)
    settings = {"epochs": epochs, "batch_size": example.BATCH_SIZE, "samples": samples, "seed": example.SEED}
    cb.fit(posterior, (x, y), objective, **settings)
    predictive = cb.predict(posterior, x_test, samples=example.PREDICTION_SAMPLES, seed=example.SEED)

    assert (mu - start).abs().max() > 0.01  # it has learned something
    torch.testing.assert_close(posterior.mu, mu, rtol=0, atol=1e-6)
    torch.testing.assert_close(posterior.rho, rho, rtol=0, atol=1e-6)
    torch.testing.assert_close(predictive.probs, probs, rtol=0, atol=1e-6)
    assert example.expected_calibration_error(probs, y_test) == pytest.approx(cb.metrics.ece(probs, y_test), abs=1e-12)


def test_the_initial_weights_are_as_wide_as_those_of_pytorchs_layers(example: ModuleType) -> None:
    ours, theirs = example.initial_mean()[: 784 * 128], nn.Linear(784, 128).weight.detach()
    assert float(ours.std()) == pytest.approx(float(theirs.std()), rel=0.02)


def test_the_example_needs_nothing_from_the_library(example: ModuleType) -> None:
    lines = Path(str(example.__file__)).read_text().splitlines()
    assert [line for line in lines if line.startswith(("import calibayes", "from calibayes"))] == []
