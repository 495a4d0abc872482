"""(c) Ensemble prediction with S samples, over S plain forward passes of the same network."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

import calibayes as cb
from benchmarks.timing import Timing, interleaved
from benchmarks.training_step import NETWORKS

__all__ = ["SAMPLES", "measure", "plain_passes"]

SAMPLES = 20
_EXAMPLES = {"MLP 64-256-256-10": 10_240, "20 Newsgroups CNN (256 tokens)": 256, "ResNet-20 (32×32)": 256}
_BATCH = 256


def measure(name: str) -> dict[str, Timing]:
    """S = 20 for each network."""
    torch.manual_seed(0)
    net, x, _ = NETWORKS[name][0]()
    net.eval()
    x = x.repeat(_EXAMPLES[name] // len(x), *[1] * (x.dim() - 1))
    posterior = cb.MeanField(net)

    runs = {
        "plain forward passes": plain_passes(net, x, SAMPLES, _BATCH),
        "predict": lambda: cb.predict(posterior, x, samples=SAMPLES, batch_size=_BATCH),
    }
    return interleaved(runs, repeats=11)


def plain_passes(net: nn.Module, x: Tensor, samples: int, batch: int) -> Callable[[], object]:
    """As many forward passes of all inputs."""

    def passes() -> None:
        with torch.inference_mode():
            for _ in range(samples):
                for part in x.split(batch):
                    net(part)

    return passes
