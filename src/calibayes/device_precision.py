"""The floating-point precision of devices."""

from __future__ import annotations

import torch

__all__ = ["widest_float"]

_WITHOUT_FLOAT64 = {"mps"}


def widest_float(device: torch.device) -> torch.dtype:
    """The floating-point type with the most digits that a device has: float64, or float32.

    Examples:
        >>> widest_float(torch.device("cpu"))
        torch.float64
    """
    return torch.float32 if device.type in _WITHOUT_FLOAT64 else torch.float64
