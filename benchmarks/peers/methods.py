"""(5) to (8) Ensembles, a Laplace approximation of the last layer, SWAG and natural gradients, each beside the limit."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from benchmarks.peers import calibayes_methods as ours
from benchmarks.peers import ivon, laplace
from benchmarks.peers import torch_uncertainty_methods as torch_uncertainty
from benchmarks.peers.contest import Entry, Row, contest, tell_rows
from benchmarks.peers.epochs import member_epoch
from benchmarks.peers.interface import BATCH, MEMBERS, SWAG_EPOCHS, Data, Method, Peer, Run
from benchmarks.peers.networks import FULL, MLP_NAME, QUICK, RESNET_NAME, Case
from benchmarks.peers.step import step_rows
from benchmarks.prediction import SAMPLES, plain_passes
from benchmarks.report import Report
from benchmarks.training_step import BATCH as TRAINING_BATCH

__all__ = ["METHODS", "NATURAL_GRADIENT", "epoch_rows", "fit_rows", "predict_rows", "section"]

ENSEMBLES: tuple[Method, ...] = (*ours.ENSEMBLES, *torch_uncertainty.ENSEMBLES)
LAPLACE: tuple[Method, ...] = (*ours.LAPLACE, *laplace.LAPLACE)
SWAG_EACH_EPOCH = (ours.SWAG_EACH_EPOCH, torch_uncertainty.SWAG_EACH_EPOCH)
SWAG_EACH_STEP = (ours.SWAG_EACH_STEP, torch_uncertainty.SWAG_EACH_STEP)
METHODS: tuple[Method, ...] = (*ENSEMBLES, *LAPLACE, *SWAG_EACH_EPOCH)
NATURAL_GRADIENT: tuple[Peer, ...] = (*ours.NATURAL_GRADIENT, *ivon.NATURAL_GRADIENT)


@dataclass(frozen=True)
class Sizes:
    """How much is measured, and how often.

    Attributes:
        cases: the networks.
        steps: of an epoch.
        epochs: repeats of an epoch.
        fitted: for each network, the examples that a Laplace approximation is fitted to, the inputs of a prediction, and
            the repeats.
    """

    cases: Mapping[str, Case]
    steps: int
    epochs: int
    fitted: Mapping[str, tuple[int, int, int]]


_FULL = Sizes(FULL, 32, 11, {MLP_NAME: (2048, 256, 7), RESNET_NAME: (512, 256, 5)})
_QUICK = Sizes(QUICK, 2, 2, {MLP_NAME: (256, 20, 2), RESNET_NAME: (256, 20, 2)})


def section(report: Report, *, quick: bool = False) -> None:
    """Measure and tell."""
    sizes = _QUICK if quick else _FULL
    mlp, examples, repeats = sizes.cases[MLP_NAME], sizes.steps * TRAINING_BATCH, sizes.epochs
    report.tell(f"\n(5) ensembles of {MEMBERS} members, {MLP_NAME}")
    rows = epoch_rows(mlp, ENSEMBLES, examples=examples, members=MEMBERS, repeats=repeats)
    tell_rows(report, f"ensemble: an epoch of {examples:,} examples, all members", rows, "calibayes Ensemble")
    inputs = 20 if quick else 2000
    rows = predict_rows(mlp, ENSEMBLES, examples=examples, inputs=inputs, samples=MEMBERS, passes=MEMBERS, repeats=repeats)
    tell_rows(report, f"ensemble: predict {inputs:,} inputs", rows, "calibayes Ensemble")
    report.tell("\n(6) Laplace approximation of the last layer")
    for name, (fitted, inputs, often) in sizes.fitted.items():
        case = sizes.cases[name]
        rows = fit_rows(case, LAPLACE, examples=fitted, repeats=often)
        tell_rows(report, f"Laplace: fit to {fitted:,}, {name}", rows, "calibayes LastLayerLaplace")
        for samples, how in ((None, "closed form"), (SAMPLES, f"{SAMPLES} samples")):
            rows = predict_rows(case, LAPLACE, examples=fitted, inputs=inputs, samples=samples, passes=1, repeats=often)
            tell_rows(report, f"Laplace: predict {inputs:,}, {how}, {name}", rows, "calibayes LastLayerLaplace")
    report.tell("\n(7) SWAG")
    for when, methods in (("epoch", SWAG_EACH_EPOCH), ("step", SWAG_EACH_STEP)):
        rows = epoch_rows(mlp, methods, examples=examples, epochs=SWAG_EPOCHS, repeats=repeats)
        tell_rows(report, f"SWAG: {SWAG_EPOCHS} epochs of {examples:,}, collected each {when}", rows, "calibayes SWAG")
    for name, (fitted, inputs, often) in sizes.fitted.items():
        case = sizes.cases[name]
        rows = predict_rows(
            case, SWAG_EACH_EPOCH, examples=fitted, inputs=inputs, samples=SAMPLES, passes=SAMPLES, repeats=often
        )
        tell_rows(report, f"SWAG: predict {inputs:,}, {SAMPLES} samples, {name}", rows, "calibayes SWAG")
    report.tell("\n(8) natural-gradient step, one sample of the weights")
    for name in sizes.fitted:
        rows = step_rows(sizes.cases[name], NATURAL_GRADIENT)
        tell_rows(report, f"natural gradient: {name}", rows, "calibayes NaturalGradient")


def epoch_rows(
    case: Case, methods: Sequence[Method], *, examples: int, repeats: int, members: int = 1, epochs: int = 1
) -> list[Row]:
    """Training over that of as many plain networks for as many epochs, one after the other."""
    net, data = _made(case, examples)
    nets = [member_epoch(copy.deepcopy(net), data) for _ in range(members)]

    def plain() -> None:
        for epoch in epochs * nets:
            epoch()

    limit = "plain PyTorch (the limit)" if members == 1 else f"{members} plain networks in turn (the limit)"
    return contest(limit, plain, _contenders(methods, lambda method: method.fit(net, data)), repeats=repeats)


def fit_rows(case: Case, methods: Sequence[Method], *, examples: int, repeats: int) -> list[Row]:
    """Fits over a forward pass of the data."""
    net, data = _made(case, examples)
    bound = plain_passes(net.eval(), data[0], 1, BATCH)
    contenders = _contenders(methods, lambda method: method.fit(net, data))
    return contest("a plain forward pass (the limit)", bound, contenders, repeats=repeats)


def predict_rows(
    case: Case, methods: Sequence[Method], *, examples: int, inputs: int, samples: int | None, passes: int, repeats: int
) -> list[Row]:
    """Predictions over so many plain forward passes of the inputs."""
    net, data = _made(case, examples)
    x = _repeated(data[0], inputs)

    def ready(method: Method) -> Run:
        assert method.predict is not None
        return method.predict(net, data, x, samples)

    limit = "a plain forward pass (the limit)" if passes == 1 else f"{passes} plain forward passes (the limit)"
    contenders = _contenders([method for method in methods if method.predict], ready)
    return contest(limit, plain_passes(net.eval(), x, passes, BATCH), contenders, repeats=repeats)


def _contenders(methods: Sequence[Method], ready: Callable[[Method], Run]) -> dict[str, Callable[[], Entry]]:
    def entry(method: Method) -> Entry:
        run = ready(method)
        return Entry(run.call, f"{run.bayesian:11,} weights", {"weights": run.bayesian})

    return {method.name: partial(entry, method) for method in methods}


def _made(case: Case, examples: int) -> tuple[nn.Module, Data]:
    torch.manual_seed(0)
    net, x, classes = case.make()
    return net, (_repeated(x, examples), torch.randint(classes, (examples,)))


def _repeated(x: Tensor, count: int) -> Tensor:
    """So many inputs, by repeating those that are there."""
    return x.repeat(-(-count // len(x)), *[1] * (x.dim() - 1))[:count]
