"""Any terms in `fit`: however a batch is cut into chunks and micro-batches, the gradient is that of the whole."""

from __future__ import annotations

import io
import pickle
from functools import partial
from typing import Any

import pytest
import torch
from rich.console import Console
from tests.objective.own_terms import Spread
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import calibayes as cb
from calibayes.errors import DataError, InvalidArgumentError, NonFiniteLossError
from calibayes.randomness import generator_for
from calibayes.terminal import ProgressDisplay
from calibayes.training.history import StepTerms
from calibayes.training.training_progress import TrainingProgress

SMOOTH = cb.WMMCE(tau_r=0.1, tau_c=0.1)
TERMS = (
    cb.Calibration(SMOOTH, lam=5.0),
    cb.Calibration(SMOOTH, lam=5.0, of="predictive", name="ensemble"),
    cb.Calibration(SMOOTH, lam=3.0, on="held_out", of="predictive", name="held_ensemble"),
    cb.Calibration(cb.MMCE(tau_r=0.1, tau_c=0.1), lam=3.0, on="held_out", name="held"),
    cb.ConfidenceMinimization(weight=0.5),
    cb.ConfidenceMinimization(weight=0.3, of="predictive", name="ensemble_confidence"),
    Spread(),
    Spread(of="predictive", name="ensemble_spread"),
    Spread(on="out_of_domain", of="predictive", name="outside_spread"),
)


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 4)).double()


def data(n: int = 40) -> tuple[Tensor, Tensor]:
    x = torch.randn(n, 6, dtype=torch.float64)
    return x, (x[:, :4] + 0.7 * torch.randn(n, 4, dtype=torch.float64)).argmax(-1)


def sgd(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=1.0)


@pytest.mark.parametrize("samples", [1, 3])
def test_one_step_follows_the_equation(samples: int) -> None:
    """The whole loss with every kind of term, by plain autograd; extra batches are as large as their data, so all of it."""
    net, (x, y), (held, labels), (outside, _) = mlp(), data(), data(), data()
    posterior = cb.MeanField(net, prior_std=0.2, init_std=0.3)
    mu, rho = (v.detach().clone().requires_grad_() for v in (posterior.mu, posterior.rho))
    shapes = {name: p.shape for name, p in net.named_parameters()}

    def logits(inputs: Tensor) -> Tensor:
        found = []
        for r in range(samples):
            noise = torch.randn(mu.shape, generator=generator_for(torch.device("cpu"), 7, "noise", 0, 0, r), dtype=mu.dtype)
            parts = (mu + rho.exp() * noise).split([s.numel() for s in shapes.values()])
            values = {name: part.view(shape) for (name, shape), part in zip(shapes.items(), parts, strict=True)}
            found.append(torch.func.functional_call(net, values, (inputs,)))
        return torch.stack(found)

    seen: dict[str, Any] = {
        "batch": (logits(x), y),
        "held_out": (logits(held), labels),
        "out_of_domain": (logits(outside), None),
    }
    loss = cb.Focal()(seen["batch"][0], y).mean()
    expected = {"focal": float(loss.detach())}
    for term in TERMS:
        here, targets = seen[term.on]
        here = here.softmax(-1).mean(0).log() if term.of == "predictive" else here
        value = term.value(*term.scores(here, targets)).mean()
        expected[term.name] = float(value.detach())
        loss = loss + term.weight(0, 40) * value
    prior = torch.distributions.Normal(torch.zeros_like(mu), torch.full_like(mu, 0.2))
    kl = torch.distributions.kl_divergence(torch.distributions.Normal(mu, rho.exp()), prior).sum()
    expected["kl"] = float(kl.detach())
    total = loss + 0.3 / 40 * kl
    gradients = torch.autograd.grad(total, [mu, rho])
    objective = cb.Objective(beta=0.3, loss=cb.Focal(), terms=TERMS)
    for chunk, micro in ((samples, None), (1, None), (2, None), (samples, 7), (2, 7), (1, 40)):
        trained = cb.MeanField(net, prior_std=0.2, init_std=0.3)
        history = cb.fit(
            trained,
            (x, y),
            objective,
            optimizer=sgd,
            epochs=1,
            batch_size=40,
            samples=samples,
            sample_chunk=chunk,
            micro_batch_size=micro,
            calibration_data=(held, labels),
            out_of_domain=(outside,),
            seed=7,
        )
        assert history.steps[0].values == pytest.approx(expected, rel=1e-9)
        assert list(history.steps[0].values) == list(expected) == list(history.terms)
        assert history.steps[0].total == pytest.approx(float(total.detach()), rel=1e-9)
        torch.testing.assert_close(trained.mu.detach(), (mu - gradients[0]).detach(), rtol=1e-8, atol=1e-10)
        torch.testing.assert_close(trained.rho.detach(), (rho - gradients[1]).detach(), rtol=1e-8, atol=1e-10)


def test_weights_of_examples_count_alike_however_the_batch_is_cut() -> None:
    (x, y), held = data(), data()
    net, weights = mlp(), torch.linspace(0.1, 2, 40)
    terms = tuple(term for term in TERMS if term.on != "out_of_domain")
    found = []
    for settings in ({}, {"micro_batch_size": 9}, {"sample_chunk": 1}, {"sample_chunk": 2, "micro_batch_size": 9}):
        posterior = cb.MeanField(net, init_std=0.3)
        objective = cb.Objective(terms=terms)
        given: dict[str, Any] = {"samples": 3, "sample_chunk": 3, **settings}
        cb.fit(
            posterior,
            (x, y, weights),
            objective,
            optimizer=sgd,
            epochs=2,
            batch_size=20,
            calibration_data=(*held, weights.flip(0)),
            **given,
        )
        found.append(torch.cat([posterior.mu.detach(), posterior.rho.detach()]))
    for other in found[1:]:
        torch.testing.assert_close(found[0], other, rtol=1e-7, atol=1e-9)


def test_averaged_probabilities_that_underflow_have_a_finite_gradient() -> None:
    net = nn.Linear(6, 4).double()
    nn.init.normal_(net.weight, std=2000.0)
    for chunk in (1, 2):
        posterior = cb.MeanField(net, init_std=1.0)
        terms = (cb.ConfidenceMinimization(of="predictive"), cb.Calibration(of="predictive"))
        cb.fit(
            posterior,
            data(),
            cb.Objective(beta=0.0, terms=terms),
            optimizer=sgd,
            epochs=1,
            samples=4,
            sample_chunk=chunk,
            out_of_domain=data()[0],
        )
        assert bool(posterior.mu.isfinite().all())


@pytest.mark.parametrize("form", ["tuple", "tensor", "array", "dataset", "labelled dataset", "loader"])
def test_out_of_domain_inputs_come_in_many_forms(form: str) -> None:
    train, (x, y) = data(), data(30)
    given: Any = {
        "tuple": (x,),
        "tensor": x,
        "array": x.numpy(),
        "dataset": TensorDataset(x),
        "labelled dataset": TensorDataset(x, y),
        "loader": DataLoader(TensorDataset(x, y), batch_size=3),
    }[form]
    net, found = mlp(), []
    for inputs in ((x,), given):
        posterior = cb.Point(net)
        objective = cb.Objective(terms=(cb.ConfidenceMinimization(),))
        cb.fit(posterior, train, objective, epochs=2, batch_size=20, out_of_domain=inputs)
        found.append(torch.cat([p.detach().reshape(-1) for p in posterior.parameters()]))
    assert torch.equal(*found)


def test_confidence_falls_on_out_of_domain_inputs() -> None:
    train, outside = data(200), data(200)[0] + 5
    confidence = {}
    for weight in (0.0, 1.0):
        posterior = cb.Point(mlp())
        objective = cb.Objective(terms=(cb.ConfidenceMinimization(weight=weight),))
        cb.fit(
            posterior,
            train,
            objective,
            optimizer=lambda p: torch.optim.Adam(p, lr=0.02),
            epochs=20,
            batch_size=50,
            out_of_domain=outside,
        )
        confidence[weight] = float(cb.predict(posterior, outside).confidence.mean())
    assert confidence[1.0] < 0.4 < 0.6 < confidence[0.0]


HELD_OUT = cb.Objective(terms=(cb.Calibration(on="held_out"),))
OUTSIDE = cb.Objective(terms=(cb.ConfidenceMinimization(),))


@pytest.mark.parametrize(
    ("objective", "given", "error", "message"),
    [
        (HELD_OUT, {}, InvalidArgumentError, "'calibration' is taken on held-out data, .* pass `calibration_data`"),
        (OUTSIDE, {}, InvalidArgumentError, "'confidence' is taken on out-of-domain inputs, .* pass `out_of_domain`"),
        (cb.Objective(), {"out_of_domain": data()[0]}, InvalidArgumentError, "`out_of_domain` was given, but no term"),
        (
            cb.Objective(terms=(cb.Calibration(),)),
            {"calibration_data": data()},
            InvalidArgumentError,
            "`calibration_data` was given, but no term .* with on='held_out'",
        ),
        (OUTSIDE, {"out_of_domain": data()}, DataError, r"inputs without labels, \(x,\) .* but got a tuple of 2"),
        (OUTSIDE, {"out_of_domain": 3}, DataError, "inputs without labels, .* but got a int"),
    ],
)
def test_terms_and_data_must_fit(objective: cb.Objective, given: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        cb.fit(cb.Point(mlp()), data(), objective, **given)


class HandlesKL(torch.optim.SGD):
    handles_kl = True


def test_an_optimiser_that_handles_the_kl_gets_the_gradient_of_the_data_alone() -> None:
    net, train, found = mlp(), data(), []
    for kind, beta in ((HandlesKL, 0.5), (torch.optim.SGD, 0.0), (torch.optim.SGD, 0.5)):
        posterior = cb.MeanField(net)
        history = cb.fit(posterior, train, cb.Objective(beta=beta), optimizer=partial(kind, lr=0.1), epochs=1, batch_size=40)
        found.append((posterior.rho.detach(), history.steps[0]))
    assert torch.equal(found[0][0], found[1][0])
    assert not torch.equal(found[0][0], found[2][0])
    assert found[0][1] == found[2][1]
    assert found[0][1].kl > 0


def test_a_term_that_is_not_finite_is_named() -> None:
    class Bad(Spread):
        def value(self, *scores: Tensor, weights: Tensor | None = None) -> Tensor:
            return super().value(*scores, weights=weights) * torch.inf

    with pytest.raises(NonFiniteLossError, match="The spread term became") as caught:
        cb.fit(cb.Point(mlp()), data(), cb.Objective(terms=(Bad(),)), epochs=1)
    assert caught.value.term == "spread"


def test_what_a_step_logged() -> None:
    step = StepTerms(0.7, {"focal": 0.5, "kl": 12.0}, 32)
    assert (step.focal, step.kl, step.total, step.examples) == (0.5, 12.0, 0.7, 32)
    assert step == pickle.loads(pickle.dumps(step)) != StepTerms(0.7, {"focal": 0.4, "kl": 12.0}, 32)
    assert list(step) == [0.7, 0.5, 12.0, 32]
    assert torch.tensor([step, step]).shape == (2, 4)
    with pytest.raises(AttributeError, match="StepTerms has no 'cross_entropy'; the terms are focal, kl"):
        step.cross_entropy  # noqa: B018


def test_a_history_keeps_the_names_of_its_terms() -> None:
    objective = cb.Objective(loss=cb.Focal(), terms=(Spread(), cb.Calibration()))
    history = cb.fit(cb.Point(mlp()), data(), objective, epochs=2, batch_size=20)
    assert cb.History.from_state(history.state()) == history
    assert list(history.to_frame()) == ["total", "focal", "spread", "calibration", "kl", "lr"]
    assert cb.History.from_state(cb.History().state()) == cb.History()


def test_a_history_of_version_0_1_is_read() -> None:
    state: dict[str, Any] = {"epochs": [], "stopped": "finished", "best_epoch": None, "seconds": []}
    steps = torch.tensor([[1.0, 0.8, 0.2, 30.0, 16.0]], dtype=torch.float64)
    history = cb.History.from_state({**state, "steps": steps})
    assert history.steps == [StepTerms(1.0, {"cross_entropy": 0.8, "calibration": 0.2, "kl": 30.0}, 16)]


def test_the_progress_display_shows_every_term() -> None:
    shown = io.StringIO()
    with ProgressDisplay(Console(file=shown, force_terminal=True, width=100)) as display:
        TrainingProgress(display, 10, 2).update(1, 3, StepTerms(0.7, {"focal": 0.5, "spread": 0.25, "kl": 1234.5}, 32))
    assert "loss 0.7000  focal 0.5000  spread 0.2500  kl 1234" in shown.getvalue()


@pytest.mark.parametrize("change", ["weight", "loss", "name"])
def test_a_checkpoint_knows_its_terms(change: str, tmp_path: Any) -> None:
    def run(epochs: int, loss: Any = None, weight: float = 0.5, name: str = "confidence") -> Tensor:
        posterior = cb.Point(net)
        terms = (cb.ConfidenceMinimization(lambda step: weight, name=name), Spread())
        objective = cb.Objective(loss=loss or cb.Focal(), terms=terms)
        cb.fit(posterior, train, objective, epochs=epochs, batch_size=20, out_of_domain=train[0], checkpoint=tmp_path)
        return torch.cat([p.detach().reshape(-1) for p in posterior.parameters()])

    net, train = mlp(), data()
    run(1)
    other: Any = {"weight": {"weight": 0.6}, "loss": {"loss": cb.Focal(gamma=3.0)}, "name": {"name": "mine"}}[change]
    with pytest.raises(cb.errors.CheckpointError, match=r"belongs to another run: `(loss|terms)"):
        run(2, **other)
    resumed = run(3)
    for file in tmp_path.iterdir():
        file.unlink()
    assert torch.equal(resumed, run(3))
