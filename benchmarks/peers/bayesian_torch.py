"""bayesian-torch: `dnn_to_bnn` converts a network."""

from __future__ import annotations

import copy
import math
from functools import partial
from importlib import import_module

from torch import Tensor, nn

from benchmarks.peers.interface import INIT_STD, PRIOR_STD, Peer, Run
from benchmarks.peers.layers import layered_predict, layered_step

__all__ = ["PEERS"]


def _converted(net: nn.Module, kind: str) -> nn.Module:
    module = import_module("bayesian_torch.models.dnn_to_bnn")
    net = copy.deepcopy(net)
    settings = {
        "prior_mu": 0.0,
        "prior_sigma": PRIOR_STD,
        "posterior_mu_init": 0.0,
        "posterior_rho_init": math.log(math.expm1(INIT_STD)),
        "type": kind,
        "moped_enable": False,
        "moped_delta": 0.5,
    }
    module.dnn_to_bnn(net, settings)
    return net


def _step(kind: str, net: nn.Module, x: Tensor, y: Tensor) -> Run:
    kl_loss = import_module("bayesian_torch.models.dnn_to_bnn").get_kl_loss
    return layered_step(net, _converted(net, kind), x, y, lambda bayesian: kl_loss(bayesian) / len(x))


def _predict(kind: str, net: nn.Module, x: Tensor, samples: int) -> Run:
    return layered_predict(net, _converted(net, kind), x, samples)


def _peer(kind: str, note: str) -> Peer:
    return Peer(f"bayesian-torch {kind}", "bayesian-torch", partial(_step, kind), partial(_predict, kind), note)


PEERS = (
    _peer("Reparameterization", "converted by its dnn_to_bnn, which knows layers by the names of their classes"),
    _peer("Flipout", "the same; other weights for each example of a batch"),
)
