"""Clip gradients to a norm."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor

from calibayes.errors import NonFiniteLossError
from calibayes.training.training_position import TrainingPosition

__all__ = ["clip_gradient"]


def clip_gradient(parameters: Iterable[Tensor], most: float, place: TrainingPosition, *, check: bool = True) -> None:
    """Scale the gradient of parameters so that its norm is at most ``most``; raise if it is infinite or NaN.

    Args:
        parameters: whose gradients.
        most: the norm.
        place: where training is, for the message.
        check: not where a loss scaler skips such steps by itself.
    """
    norm = float(torch.nn.utils.clip_grad_norm_(parameters, most))
    if check and not math.isfinite(norm):
        raise NonFiniteLossError(
            f"The gradient's norm became {norm} in epoch {place.epoch + 1}, step {place.step + 1}. This step was not taken.",
            term="gradient",
            epoch=place.epoch + 1,
            step=place.step + 1,
        )
