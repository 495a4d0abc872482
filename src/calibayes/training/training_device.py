"""The device to train on, and batches there."""

from __future__ import annotations

import torch

from calibayes.data.input_structure import to_device
from calibayes.data.sources import Batch
from calibayes.device_precision import widest_float
from calibayes.distributed import ALONE, Processes
from calibayes.distributed.processes import local_gpu
from calibayes.errors import InvalidArgumentError

__all__ = ["chosen_device", "on_device"]


def chosen_device(device: str | torch.device | None, processes: Processes = ALONE) -> torch.device:
    """The device asked for, or the fastest there is; each of several processes has a GPU of its own."""
    if device is not None:
        try:
            return torch.empty(0, device=device).device
        except (RuntimeError, AssertionError, TypeError) as error:
            raise InvalidArgumentError(
                f"Expected `device` to be available on this machine, but got {device!r}: {error}"
            ) from error
    if torch.cuda.is_available():
        return torch.device("cuda", torch.cuda.current_device() if processes.size == 1 else local_gpu())
    return torch.device("mps" if torch.backends.mps.is_available() and processes.size == 1 else "cpu")


def on_device(batch: Batch, device: torch.device) -> Batch:
    """The same batch on a device."""
    weights = None if batch.weights is None else batch.weights.to(device, widest_float(device))
    return Batch(to_device(batch.inputs, device), batch.targets.to(device), batch.total, weights)
