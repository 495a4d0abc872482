"""(1) A training step, and (3) a prediction, of every library of Bayesian networks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch

from benchmarks.peers.contest import Entry, Row, contest
from benchmarks.peers.interface import BATCH, Peer, Run, trainable
from benchmarks.peers.networks import Case
from benchmarks.prediction import plain_passes
from benchmarks.training_step import plain_step

__all__ = ["prediction_rows", "step_rows"]


def step_rows(case: Case, peers: Sequence[Peer]) -> list[Row]:
    """Steps over the plain one of the same network."""
    torch.manual_seed(0)
    net, x, classes = case.make()
    y = torch.randint(classes, (len(x),))
    contenders = {peer.name: partial(_ready, partial(peer.step, net, x, y), trainable(net)) for peer in peers}
    return contest("plain PyTorch (the limit)", plain_step(net, x, y), contenders, repeats=case.repeats)


def prediction_rows(case: Case, peers: Sequence[Peer], *, inputs: int, samples: int, repeats: int) -> list[Row]:
    """Predictions over as many plain forward passes as there are samples."""
    torch.manual_seed(0)
    net, x, _ = case.make()
    net.eval()
    x = x.repeat(-(-inputs // len(x)), *[1] * (x.dim() - 1))[:inputs]
    predictions = {peer.name: partial(peer.predict, net, x, samples) for peer in peers if peer.predict}
    contenders = {name: partial(_ready, predict, trainable(net)) for name, predict in predictions.items()}
    limit = f"{samples} plain forward passes (the limit)"
    return contest(limit, plain_passes(net, x, samples, BATCH), contenders, repeats=repeats)


def _ready(run: Callable[[], Run], weights: int) -> Entry:
    made = run()
    share = made.bayesian / weights
    return Entry(made.call, f"{share:4.0%} of the weights Bayesian", {"bayesian": share})
