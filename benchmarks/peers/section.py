"""The whole table: training step, calibration term, prediction, metrics and other methods, each row beside the limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from benchmarks.peers import bayesian_torch, blitz, calibayes, ivon, methods, posteriors, torch_uncertainty, torchbnn
from benchmarks.peers.contest import tell_rows
from benchmarks.peers.interface import Method, Peer
from benchmarks.peers.networks import FULL, MLP_NAME, QUICK, QUICK_BATCH, RESNET_NAME, Case
from benchmarks.peers.scores import METRICS, metric_rows
from benchmarks.peers.step import prediction_rows, step_rows
from benchmarks.peers.term import BOUND, SECONDS, term_rows
from benchmarks.prediction import SAMPLES
from benchmarks.report import Report
from benchmarks.training_step import BATCH

__all__ = ["COMMAND", "PEERS", "section", "tell_versions"]

COMMAND = "make bench-peers"  # in an environment of its own

PEERS: tuple[Peer, ...] = (
    *calibayes.PEERS,
    *bayesian_torch.PEERS,
    *torch_uncertainty.PEERS,
    *blitz.PEERS,
    *torchbnn.PEERS,
    *posteriors.PEERS,
    *ivon.PEERS,
)
_OTHERS = ("netcal", "torchmetrics", "relplot")


@dataclass(frozen=True)
class Sizes:
    """How much is measured, and how often.

    Attributes:
        cases: the networks.
        batch: examples of a training step.
        terms: repeats for each number of examples of a calibration term.
        inputs: inputs of a prediction and repeats, for each network.
        metrics: predictions that metrics are taken of, and repeats.
    """

    cases: Mapping[str, Case]
    batch: int
    terms: Mapping[int, int]
    inputs: Mapping[str, tuple[int, int]]
    metrics: tuple[int, int]


# The time of a prediction is proportional to the inputs: a ResNet gets as many as minutes allow.
_FULL = Sizes(
    cases=FULL,
    batch=BATCH,
    terms={128: 61, 1024: 41, 10_000: 3, 100_000: 7},
    inputs={MLP_NAME: (2000, 21), RESNET_NAME: (250, 5)},
    metrics=(1_000_000, 21),
)
_QUICK = Sizes(
    cases=QUICK,
    batch=QUICK_BATCH,
    terms={64: 2},
    inputs={MLP_NAME: (20, 2), RESNET_NAME: (20, 2)},
    metrics=(1000, 2),
)


def section(report: Report, *, quick: bool = False, peers: Sequence[Peer] = PEERS) -> None:
    """Measure and tell."""
    sizes = _QUICK if quick else _FULL
    tell_versions(report, (*peers, *methods.METHODS))
    if quick:
        report.tell("--quick: tiny networks, so that these times say nothing")
    report.tell(f"\n(1) training step, batch {sizes.batch}, one sample of the weights, each library's own KL")
    report.tell("    (PyTorch's fused Adam, but for posteriors and ivon: see the notes)")
    for name, case in sizes.cases.items():
        tell_rows(report, f"step: {name}", step_rows(case, peers), "calibayes BNN")
    bounds = f"{BOUND / 1e9:.0f} GB and {SECONDS:.0f} s at most"
    report.tell(f"\n(2) calibration term of logits of ten classes, forward and backward, with its peak memory; {bounds}")
    report.tell("    (netcal's MMCEPenalty is the WMMCE of hard scores)")
    for n, repeats in sizes.terms.items():
        tell_rows(report, f"term: n = {n:,}", term_rows(n, repeats=repeats), "calibayes WMMCE, hard scores")
    report.tell(f"\n(3) prediction by {SAMPLES} samples of the weights")
    for name, (inputs, repeats) in sizes.inputs.items():
        rows = prediction_rows(sizes.cases[name], peers, inputs=inputs, samples=SAMPLES, repeats=repeats)
        tell_rows(report, f"predict: {name}, {inputs:,} inputs", rows, "calibayes BNN")
    predictions, repeats = sizes.metrics
    report.tell(f"\n(4) metrics of {predictions:,} predictions of ten classes")
    for name in METRICS:
        tell_rows(report, f"metric: {name}", metric_rows(name, predictions, repeats=repeats), "calibayes")
    methods.section(report, quick=quick)
    report.tell("\nNotes")
    report.tell("  layers put in: for those of exactly PyTorch's classes; attention and layers of one's own stay as they are")
    noted: tuple[Peer | Method, ...] = (*peers, *methods.METHODS, *methods.NATURAL_GRADIENT)
    for peer in noted:
        report.tell_wrapped(peer.note, f"  {peer.name}: ", "    ")


def tell_versions(report: Report, peers: Sequence[Peer | Method]) -> None:
    """Print and record which versions are compared."""
    versions = {package: _version(package) for package in (*dict.fromkeys(peer.package for peer in peers), *_OTHERS)}
    report.tell_wrapped(", ".join(f"{package} {number}" for package, number in versions.items()))
    report.record["versions"] = versions


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "absent"
