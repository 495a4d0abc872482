"""Checks that losses, gradients and weights are finite, that weights can be trained, and that processes agree on them."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from calibayes.distributed import Processes
from calibayes.errors import DriftError, InvalidArgumentError, NonFiniteLossError
from calibayes.posterior.abstract_posterior import Posterior
from calibayes.training.micro_batches import TrainingPosition

__all__ = ["check_alike", "check_finite", "check_full_precision", "check_weights", "checksum", "clip_gradient"]


def check_full_precision(posterior: Posterior, instead: str) -> None:
    """Raise `InvalidArgumentError` if trained weights are in half precision; ``instead`` is the advice. Frozen ones may be."""
    for group in (group for member in posterior.members for group in member.groups):
        kind = group.mean().dtype
        if kind in (torch.float16, torch.bfloat16):
            raise InvalidArgumentError(
                f"Expected weights in full precision, but {group.layout.names[0][0]!r} is {kind}: steps of the size of a "
                f"learning rate are rounded away. {instead}"
            )


def check_finite(terms: Mapping[str, float], place: TrainingPosition, clipping: str) -> None:
    """Raise `NonFiniteLossError` for the first term that is infinite or NaN; ``clipping`` names the setting for clipping."""
    epoch, step = place.epoch + 1, place.step + 1
    for name, value in terms.items():
        if not math.isfinite(value):
            message = (
                f"The {name} term became {value} in epoch {epoch}, step {step}. This step was not taken. Try a smaller "
                f"learning rate, {clipping}, or look for NaN in the inputs."
            )
            raise NonFiniteLossError(message, term=name, epoch=epoch, step=step)


def clip_gradient(parameters: Iterable[Tensor], most: float, place: TrainingPosition, *, check: bool = True) -> None:
    """Scale gradients to a norm of at most ``most``; with ``check``, raise `NonFiniteLossError` if it is infinite or NaN."""
    norm = float(torch.nn.utils.clip_grad_norm_(parameters, most))
    if check and not math.isfinite(norm):
        epoch, step = place.epoch + 1, place.step + 1
        message = f"The gradient's norm became {norm} in epoch {epoch}, step {step}. This step was not taken."
        raise NonFiniteLossError(message, term="gradient", epoch=epoch, step=step)


def check_weights(posterior: Posterior, epoch: int, step: int) -> None:
    """Raise `NonFiniteLossError` for weights that a bad gradient broke, before they are validated or replace a checkpoint."""
    for name, parameter in posterior.named_parameters():
        if not bool(parameter.isfinite().all()):
            message = (
                f"{name!r} is not finite after step {step} (epoch {epoch}), though the loss was: a gradient overflowed or is "
                "NaN. Try `clip_norm` or a smaller learning rate."
            )
            raise NonFiniteLossError(message, term="gradient", epoch=epoch, step=step)


def check_alike(posterior: Posterior, processes: Processes, epoch: int) -> None:
    """Raise `DriftError` if the weights of processes differ, say because an optimiser draws its own noise."""
    if processes.size > 1 and (odd := processes.differ(checksum([*posterior.parameters(), *posterior.buffers()]))):
        raise DriftError(
            f"Processes {odd} have other weights than process 0 after epoch {epoch}: something in the network or in the "
            "optimiser draws random numbers or takes statistics separately. Train with `group=None`, or replace it."
        )


def checksum(tensors: Iterable[Tensor]) -> int:
    """A checksum of the bytes of tensors, one after the other."""
    total = 0
    for tensor in tensors:
        total = zlib.crc32(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes(), total)
    return total
