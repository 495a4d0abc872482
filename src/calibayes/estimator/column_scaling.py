"""Scale columns of any size for a network."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from sklearn.preprocessing import StandardScaler

__all__ = ["fitted_scaler", "network_inputs"]

Floats = npt.NDArray[np.float64]

_FARTHEST = 1e6  # standard deviations; activations still fit into float32
_LARGEST = 2.0**300  # beyond, and below its inverse, squares do not fit into float64


def fitted_scaler(x: Floats, counts: Floats) -> StandardScaler:
    """The means and standard deviations of columns, including those whose squares overflow or underflow.

    Examples:
        >>> scaler = fitted_scaler(np.array([[1e200, 1e-200], [3e200, 3e-200]]), np.ones(2))
        >>> [f"{value:.0e}" for value in (*scaler.mean_, *scaler.scale_)]
        ['2e+200', '2e-200', '1e+200', '1e-200']
    """
    size = np.abs(x).max(axis=0)
    odd = (size > _LARGEST) | ((size > 0) & (size < 1 / _LARGEST))
    powers = np.where(odd, np.frexp(size)[1], 0)
    scaler = StandardScaler().fit(np.ldexp(x, -powers), sample_weight=counts)
    with np.errstate(over="ignore", under="ignore"):  # variances may be infinite or zero; they are not used
        scaler.mean_, scaler.scale_ = np.ldexp(scaler.mean_, powers), np.ldexp(scaler.scale_, powers)
        scaler.var_ = np.ldexp(scaler.var_, 2 * powers)
    return scaler


def network_inputs(x: Floats, scaler: StandardScaler | None) -> npt.NDArray[np.float32]:
    """The columns as inputs of the network."""
    if scaler is None:
        return np.ascontiguousarray(x, dtype=np.float32)
    with np.errstate(over="ignore"):  # infinite values are clipped below
        values = scaler.transform(x)
    return np.ascontiguousarray(np.clip(values, -_FARTHEST, _FARTHEST), dtype=np.float32)
