"""calibayes itself."""

from __future__ import annotations

import copy

from torch import Tensor, nn

import calibayes as cb
from benchmarks.peers.interface import BATCH, INIT_STD, PRIOR_STD, Peer, Run
from benchmarks.training_step import our_step

__all__ = ["PEERS"]


def _posterior(net: nn.Module) -> cb.MeanField:
    return cb.MeanField(copy.deepcopy(net), prior_std=PRIOR_STD, init_std=INIT_STD)


def _bnn(net: nn.Module, x: Tensor, y: Tensor, lam: float = 0.0) -> Run:
    posterior = _posterior(net)
    return Run(our_step(posterior, x, y, 1, lam), posterior.num_bayesian)


def _ca_bnn(net: nn.Module, x: Tensor, y: Tensor) -> Run:
    return _bnn(net, x, y, lam=10.0)


def _predict(net: nn.Module, x: Tensor, samples: int) -> Run:
    posterior = _posterior(net)
    return Run(lambda: cb.predict(posterior, x, samples=samples, batch_size=BATCH), posterior.num_bayesian)


PEERS = (
    Peer("calibayes BNN", "calibayes", _bnn, _predict, "every weight but those of normalisation layers; the closed-form KL"),
    Peer("calibayes CA-BNN", "calibayes", _ca_bnn, None, "the same, with WMMCE; its prediction is the BNN's"),
)
