"""Every kind of network with every kind of posterior: it predicts as before, trains, and leaves the user's network alone."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from tests.posterior.zoo import CASES, CLASSES, EXAMPLES, Case
from torch import Tensor, nn

import calibayes as cb
from calibayes.posterior import NetworkPosterior
from calibayes.posterior.flat import split_inputs
from calibayes.predictive import samples_for

POSTERIORS: dict[str, Callable[[nn.Module], NetworkPosterior]] = {"point": cb.Point, "mean-field": cb.MeanField}
kinds = pytest.mark.parametrize("kind", POSTERIORS)
cases = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


def plain(net: nn.Module) -> nn.Module:
    """The network without ``torch.compile``'s wrappers, so that running it compiles nothing."""
    while hasattr(net, "_orig_mod"):
        net = net._orig_mod  # type: ignore[assignment]
    for name, child in net.named_children():
        setattr(net, name, plain(child))
    return net


def run(net: nn.Module, inputs: Any) -> Tensor:
    args, kwargs = split_inputs(inputs)
    logits: Tensor = net(*args, **kwargs)
    return logits


def bits(net: nn.Module) -> dict[str, Tensor]:
    tensors = [*net.named_parameters(), *net.named_buffers()]
    return {name: tensor.detach().clone() for name, tensor in tensors}


def assert_same_bits(one: dict[str, Tensor], other: dict[str, Tensor]) -> None:
    assert one.keys() == other.keys()
    for name in one:
        assert torch.equal(one[name], other[name]), name


def train(posterior: NetworkPosterior, case: Case, **settings: Any) -> cb.History:
    return cb.fit(posterior, case.data(), cb.Objective(), **{"epochs": 2, "batch_size": 5, **settings})


@kinds
@cases
def test_mean_weights_give_the_original_logits(kind: str, case: Case) -> None:
    net = case.build().eval()
    posterior = POSTERIORS[kind](net)
    inputs = case.inputs()
    args, kwargs = split_inputs(inputs)
    with torch.no_grad():
        expected = run(plain(net), inputs)
        assert torch.equal(posterior(*args, **kwargs), expected)
        assert torch.equal(run(posterior.network(), inputs), expected)
    predictive = cb.predict(posterior, inputs, samples="mean")
    assert torch.equal(predictive.probs, expected.softmax(-1))


@kinds
@cases
def test_probabilities_sum_to_one(kind: str, case: Case) -> None:
    posterior = POSTERIORS[kind](case.build())
    predictive = cb.predict(posterior, case.inputs(), samples=samples_for(posterior, 3))
    assert predictive.probs.shape == (EXAMPLES, CLASSES)
    assert torch.allclose(predictive.probs.sum(-1), torch.ones((), dtype=predictive.probs.dtype))


@kinds
@cases
def test_training_moves_every_weight_and_leaves_the_network_alone(kind: str, case: Case) -> None:
    net = case.build()
    before, flags = bits(net), {name: p.requires_grad for name, p in net.named_parameters()}
    posterior = POSTERIORS[kind](net)
    start = {name: vector.detach().clone() for name, vector in posterior.named_parameters()}
    history = train(posterior, case, samples=2, sample_chunk=1)
    assert all(math.isfinite(step.total) for step in history.steps)
    for name, vector in posterior.named_parameters():
        assert bool((vector != start[name]).any()), name
        assert vector.grad is not None
        assert bool(vector.grad.isfinite().all())
    assert_same_bits(bits(net), before)
    assert flags == {name: p.requires_grad for name, p in net.named_parameters()}
    assert all(p.grad is None for p in net.parameters())


@cases
def test_data_gradient_reaches_every_bayesian_weight(case: Case) -> None:
    """Without a KL, a weight's gradient comes through the network alone."""
    posterior = cb.MeanField(case.build(), init_std=0.3)
    cb.fit(posterior, case.data(), cb.Objective(lam=0.0, beta=0.0), epochs=1, batch_size=EXAMPLES, sample_chunk=1)
    for group in posterior.groups:
        vectors = [vector for vector in group.parameters() if vector.grad is not None]
        assert len(vectors) == len(list(group.parameters()))
        for vector in vectors:
            for name, gradient in group.layout.views(vector.grad).items():  # type: ignore[arg-type]
                assert bool((gradient != 0).any()), name


@kinds
@cases
def test_trained_network_predicts_as_the_posterior(kind: str, case: Case) -> None:
    posterior = POSTERIORS[kind](case.build())
    train(posterior, case)
    inputs = case.inputs()
    with torch.no_grad():
        logits = run(posterior.network(), inputs)
    # Up to a last digit: weights that lie elsewhere in memory may be multiplied in another order.
    torch.testing.assert_close(logits.softmax(-1), cb.predict(posterior, inputs, samples="mean").probs, rtol=1e-6, atol=1e-7)


class CopiesItself(nn.Module):
    """As some do that hold what cannot be copied: its copy has dicts of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.ones(4, 3))

    def __deepcopy__(self, memo: dict[int, Any]) -> CopiesItself:
        built = CopiesItself()
        built.w = copy.deepcopy(self.w, memo)
        return built

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.w


def test_a_network_that_copies_itself_runs_in_copies_of_its_posterior() -> None:
    posterior = cb.Point(CopiesItself())
    x = torch.randn(2, 4)
    for copied in (copy.deepcopy(posterior), pickle.loads(pickle.dumps(posterior))):
        assert torch.equal(copied(x), posterior(x))


@kinds
@cases
def test_a_copy_trains_as_the_original(kind: str, case: Case) -> None:
    posterior = POSTERIORS[kind](case.build())
    data = case.data()
    cb.fit(posterior, data, cb.Objective(), epochs=1, batch_size=5, sample_chunk=1)
    twin = copy.deepcopy(posterior)
    for each in (posterior, twin):
        cb.fit(each, data, cb.Objective(), epochs=1, batch_size=5, sample_chunk=1)
    assert_same_bits(posterior.state_dict(), twin.state_dict())


@kinds
@cases
def test_state_dict_round_trip(kind: str, case: Case) -> None:
    net = case.build()
    posterior, other = POSTERIORS[kind](net), POSTERIORS[kind](case.build())
    train(posterior, case)
    other.load_state_dict(posterior.state_dict())
    inputs = case.inputs()
    one, two = (cb.predict(each, inputs, samples=samples_for(each, 2)).probs for each in (posterior, other))
    assert torch.equal(one, two)


@kinds
@cases
def test_another_type(kind: str, case: Case) -> None:
    """In double precision the posterior gives the same predictions, up to single precision's rounding."""
    posterior = POSTERIORS[kind](case.build()).eval()
    inputs = case.inputs()
    wide = split_inputs(_doubled(inputs))
    with torch.no_grad():
        expected = posterior(*split_inputs(inputs)[0], **split_inputs(inputs)[1])
        result = posterior.to(torch.float64)(*wide[0], **wide[1])
    assert result.dtype == torch.float64
    assert torch.allclose(result, expected.double(), atol=1e-4)
    assert all(vector.dtype == torch.float64 for vector in posterior.parameters())


def _doubled(inputs: Any) -> Any:
    if isinstance(inputs, dict):
        return {key: _doubled(value) for key, value in inputs.items()}
    if isinstance(inputs, tuple):
        return tuple(_doubled(value) for value in inputs)
    return inputs.double() if inputs.is_floating_point() else inputs
