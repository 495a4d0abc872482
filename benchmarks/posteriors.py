"""What each kind of posterior, optimiser and averaging costs over the plain way to the same, with the goals beside it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn

import calibayes as cb
from benchmarks.peers.contest import Entry, contest, tell_rows
from benchmarks.prediction import SAMPLES, plain_passes
from benchmarks.report import Report
from benchmarks.training_step import BATCH, NETWORKS, adam, our_step

__all__ = ["GOALS", "section"]

GOALS = {"natural gradient": 1.1, "ensemble": 0.6, "last layer": 1.15, "EMA": 1.03, "Laplace": 1.5}
_MEMBERS, _STEPS = 8, 32
_INPUTS = 256
_PASS = 256  # examples of a batch without gradients
_MLP, _, _RESNET = NETWORKS
_EXAMPLES = {_MLP: 10_240, _RESNET: 512}


def section(report: Report) -> None:
    """Measure and tell."""
    report.tell(f"\n(1) step of a MeanField, batch {BATCH}, one sample: NaturalGradient over fused Adam")
    for network in (_MLP, _RESNET):
        _tell(report, "natural gradient", network, "fused Adam", _mean_field_step(network), _natural_step)
    report.tell(
        f"\n(2) epoch of an Ensemble of {_MEMBERS} Points at once ({_STEPS} steps), over epochs of {_MEMBERS} Points in turn"
    )
    _tell(report, "ensemble", _MLP, "members in turn", _members_epoch(_MLP), _ensemble_epoch)
    report.tell(f"\n(3) predict with S = {SAMPLES} and a MeanField of the last layer, over one plain forward pass")
    _tell(report, "last layer", _RESNET, "plain forward pass", _plain_pass(_RESNET, _INPUTS), _last_layer_predict)
    report.tell(f"\n(4) step of a Point, batch {BATCH}: with EMA over without")
    for network in (_MLP, _RESNET):
        _tell(report, "EMA", network, "without", _point_step(network), partial(_point_step, average=True))
    report.tell("\n(5) fit of a Laplace approximation of the last layer, over one forward pass of the data")
    for network in (_MLP, _RESNET):
        _tell(report, "Laplace", network, "forward pass", _plain_pass(network, _EXAMPLES[network]), _laplace_fit)


def _tell(
    report: Report, name: str, network: str, base: str, bound: Callable[[], object], ours: Callable[[str], Callable[[], object]]
) -> None:
    """Time and print one row beside what it is compared with; a method that this version lacks is an error in its row."""
    contenders: Mapping[str, Callable[[], Entry]] = {name: lambda: Entry(ours(network), f"(goal {GOALS[name]})")}
    repeats = max(21, NETWORKS[network][1]) if name in ("natural gradient", "EMA") else 21 if network == _MLP else 11
    tell_rows(report, f"{name}: {network}", contest(base, bound, contenders, repeats=repeats), base="first")


def _made(network: str) -> tuple[nn.Module, Tensor, Tensor]:
    torch.manual_seed(0)
    net, x, classes = NETWORKS[network][0]()
    return net, x, torch.randint(classes, (len(x),))


def _many(network: str, examples: int) -> tuple[nn.Module, Tensor, Tensor]:
    """A network with more than one batch of data."""
    net, x, y = _made(network)
    times = examples // len(x)
    return net, x.repeat(times, *[1] * (x.dim() - 1)), y.repeat(times)


def _mean_field_step(network: str, optimizer: Any = None) -> Callable[[], object]:
    net, x, y = _made(network)
    return our_step(cb.MeanField(net), x, y, 1, 0.0, optimizer=optimizer)


def _natural_step(network: str) -> Callable[[], object]:
    return _mean_field_step(network, import_module("calibayes").NaturalGradient(lr=1e-4))


def _point_step(network: str, *, average: bool = False) -> Callable[[], object]:
    """With an average, which is taken after each step as `calibayes.fit` does."""
    net, x, y = _made(network)
    point = cb.Point(net)
    if not average:
        return our_step(point, x, y, 1, 0.0)
    kept = import_module("calibayes.training.weight_averaging").WeightAverage(import_module("calibayes").EMA(0.99), point, dict)
    return our_step(point, x, y, 1, 0.0, after_step=lambda: kept.update("step", 1))


def _epoch(posterior: cb.Posterior, data: tuple[Tensor, Tensor], *, together: bool = False) -> None:
    objective = cb.Objective(lam=0.0, beta=0.0)
    cb.fit(posterior, data, objective, optimizer=adam, epochs=1, batch_size=BATCH, progress=False, together=together)


def _members_epoch(network: str) -> Callable[[], object]:
    net, x, y = _many(network, _STEPS * BATCH)
    points = [cb.Point(copy.deepcopy(net)) for _ in range(_MEMBERS)]

    def epochs() -> None:
        for point in points:
            _epoch(point, (x, y))

    return epochs


def _ensemble_epoch(network: str) -> Callable[[], object]:
    net, x, y = _many(network, _STEPS * BATCH)
    ensemble = cb.Ensemble([cb.Point(copy.deepcopy(net)) for _ in range(_MEMBERS)])
    return lambda: _epoch(ensemble, (x, y), together=True)


def _plain_pass(network: str, examples: int) -> Callable[[], object]:
    net, x, _ = _many(network, examples)
    return plain_passes(net.eval(), x, 1, _PASS)


def _last_layer_predict(network: str) -> Callable[[], object]:
    net, x, _ = _many(network, _INPUTS)
    last = [name for name, part in net.named_modules() if isinstance(part, nn.Linear)][-1]
    posterior = cb.MeanField(net.eval(), where=f"{last}.*")
    return lambda: cb.predict(posterior, x, samples=SAMPLES, batch_size=_PASS)


def _laplace_fit(network: str) -> Callable[[], object]:
    net, x, y = _many(network, _EXAMPLES[network])
    point = cb.Point(net).eval()
    fit = import_module("calibayes").LastLayerLaplace.from_point
    return lambda: fit(point, (x, y), prior_precision=1.0)
