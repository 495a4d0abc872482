"""Checks on weights after an epoch: they are finite, and alike in all processes."""

from __future__ import annotations

import zlib

import torch

from calibayes.distributed import Processes
from calibayes.errors import DriftError, NonFiniteLossError
from calibayes.posterior.abstract_posterior import Posterior

__all__ = ["check_alike", "check_weights"]


def check_alike(posterior: Posterior, processes: Processes, epoch: int) -> None:
    """Raise if processes have drifted apart, which what is random or statistical in a network or optimiser can do."""
    if processes.size == 1:
        return
    total = 0
    for value in (*posterior.parameters(), *posterior.buffers()):
        total = zlib.crc32(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes(), total)
    if odd := processes.differ(total):
        raise DriftError(
            f"Processes {odd} have other weights than process 0 after epoch {epoch}: something in the network or "
            "in the optimiser draws random numbers or takes statistics of its own. Train with `group=None`, or replace it."
        )


def check_weights(posterior: Posterior, epoch: int, step: int) -> None:
    """A gradient that is not finite shows in the weights only; they must not be validated, nor replace a checkpoint."""
    for name, parameter in posterior.named_parameters():
        if not bool(parameter.isfinite().all()):
            raise NonFiniteLossError(
                f"{name!r} is not finite after step {step} (epoch {epoch}), though the loss was: a gradient "
                "overflowed or is NaN. Try `clip_norm` or a smaller learning rate.",
                term="gradient",
                epoch=epoch,
                step=step,
            )
