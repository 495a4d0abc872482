"""NumPy arrays as tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

__all__ = ["from_numpy"]


def from_numpy(array: npt.NDArray[Any]) -> Tensor:
    """Return an array of numbers as a tensor, sharing its memory if possible."""
    # torch shares memory only with native, writable arrays of positive strides and of at most eight bytes a number.
    native = array.dtype.newbyteorder("=")
    if native.kind == "f" and native.itemsize > 8:
        native = np.dtype(np.float64)
    shareable = array.flags.writeable and all(stride >= 0 for stride in array.strides)
    return torch.from_numpy(array.astype(native, order="C", copy=not shareable))
