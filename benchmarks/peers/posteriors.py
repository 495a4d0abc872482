"""posteriors: variational inference on any network's parameters, by functional transforms."""

from __future__ import annotations

import copy
import math
from importlib import import_module
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

from benchmarks.peers.interface import EXAMPLES, INIT_STD, PRIOR_STD, Peer, Run, trainable
from benchmarks.peers.layers import mean_probs

__all__ = ["PEERS"]


def _built(net: nn.Module) -> tuple[Any, Any]:
    """The transform, and the state that it starts with."""
    posteriors, torchopt = import_module("posteriors"), import_module("torchopt")

    def log_posterior(parameters: Any, batch: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        x, y = batch
        logits = functional_call(net, parameters, (x,))
        prior = posteriors.diag_normal_log_prob(parameters, sd_diag=PRIOR_STD, normalize=False)
        return prior / EXAMPLES - F.cross_entropy(logits, y), logits

    optimizer = torchopt.adam(lr=1e-4)
    transform = posteriors.vi.diag.build(log_posterior, optimizer, temperature=1 / EXAMPLES, init_log_sds=math.log(INIT_STD))
    return transform, transform.init({name: p for name, p in net.named_parameters() if p.requires_grad})


def _step(net: nn.Module, x: Tensor, y: Tensor) -> Run:
    net = copy.deepcopy(net).train()
    transform, state = _built(net)

    def step() -> None:
        nonlocal state
        state, _ = transform.update(state, (x, y))

    return Run(step, trainable(net))


def _predict(net: nn.Module, x: Tensor, samples: int) -> Run:
    net = copy.deepcopy(net).eval()
    _, state = _built(net)
    sample = import_module("posteriors").vi.diag.sample

    def draw() -> Any:
        parameters = sample(state)
        return lambda batch: functional_call(net, parameters, (batch,))

    return Run(lambda: mean_probs(draw, x, samples), trainable(net))


PEERS = (
    Peer("posteriors VI", "posteriors", _step, _predict, "its vi.diag with torchopt's Adam; the KL estimated from the sample"),
)
