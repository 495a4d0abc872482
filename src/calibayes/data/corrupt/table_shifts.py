"""Tables whose rows come from elsewhere: other kinds of rows are common, numbers are noisy, cells are missing."""

from __future__ import annotations

import hashlib
import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from calibayes.checks import integer
from calibayes.data.corrupt.severity import check_severity, known_name
from calibayes.errors import DataError
from calibayes.randomness import derived_seed, generator_for

__all__ = ["TABLE_SHIFTS", "ShiftedTable", "shift_table", "tilt_weights"]

TABLE_SHIFTS = ("tilted_rows", "noisy_numbers", "missing_cells")
"""The names of the shifts of tables."""

_TILTS = (0.25, 0.5, 0.75, 1.0, 1.5)
_NOISES = (0.1, 0.2, 0.4, 0.6, 1.0)  # of a column's standard deviation
_MISSING = (0.05, 0.1, 0.2, 0.3, 0.5)  # of the cells


class ShiftedTable(NamedTuple):
    """A shifted table, and the row of the original that each of its rows is from: labels are ``y[rows]``."""

    x: Tensor
    rows: Tensor


def shift_table(
    x: Tensor,
    name: str,
    severity: int,
    *,
    seed: int,
    direction: Tensor | None = None,
    scale: Tensor | None = None,
    fill: Tensor | float = math.nan,
) -> ShiftedTable:
    r"""Shift a table of numbers, to see how a classifier does on rows unlike those that it has learnt.

    - ``"tilted_rows"``: covariate shift. Rows are drawn with replacement, with the weights of `tilt_weights`; the rows
      themselves stay as they are, so the classes given a row do too.
    - ``"noisy_numbers"``: normal noise of 0.1, 0.2, 0.4, 0.6 or 1 standard deviations of each column is added.
    - ``"missing_cells"``: 5, 10, 20, 30 or 50 % of the cells are replaced by ``fill``.

    Noise and missing cells of a row depend on the seed, the name and the row itself, not on other rows; those of a severity
    are part of those of higher ones. Which rows are drawn depends on the whole table.

    Args:
        x: ``[n, columns]`` of a floating-point type.
        name: one of ``TABLE_SHIFTS``.
        severity: from 1, the mildest, to 5.
        seed: of the draws.
        direction: of ``"tilted_rows"``; see `tilt_weights`.
        scale: of ``"noisy_numbers"``: the standard deviation of each column; by default those of ``x``.
        fill: of ``"missing_cells"``: what missing cells become, a number or one for each column.

    Examples:
        >>> x, y = torch.randn(500, 3), torch.arange(500)
        >>> table, rows = shift_table(x, "tilted_rows", 5, seed=0, direction=torch.tensor([1.0, 0.0, 0.0]))
        >>> bool(table[:, 0].mean() > 1), torch.equal(table, x[rows])
        (True, True)
        >>> shift_table(x, "missing_cells", 3, seed=0).x.isnan().float().mean().item() < 0.3
        True
    """
    known_name(name, TABLE_SHIFTS, "a shift of tables")
    place = check_severity(severity) - 1
    integer("seed", seed)
    _check_table(x)
    if name == "tilted_rows":
        weights = tilt_weights(x, severity, direction=direction)
        generator = generator_for(torch.device("cpu"), seed, "corrupt", name)
        rows = torch.multinomial(weights.cpu(), len(x), replacement=True, generator=generator).to(x.device)
        return ShiftedTable(x[rows], rows)
    rows = torch.arange(len(x), device=x.device)
    generators = [np.random.default_rng(_row_seed(row, name, seed)) for row in x.detach().cpu()]
    if name == "noisy_numbers":
        stds = x.std(0, correction=0) if scale is None else _per_column("scale", scale, x)
        noise = np.stack([each.standard_normal(x.shape[1]) for each in generators])
        return ShiftedTable(x + _NOISES[place] * stds * torch.from_numpy(noise).to(x), rows)
    draws = np.stack([each.random(x.shape[1]) for each in generators])
    missing = torch.from_numpy(draws < _MISSING[place]).to(x.device)
    filled = _per_column("fill", fill, x) if isinstance(fill, Tensor) else x.new_tensor(fill)
    return ShiftedTable(torch.where(missing, filled, x), rows)


def tilt_weights(x: Tensor, severity: int, *, direction: Tensor | None = None) -> Tensor:
    r"""The weight of each row after exponential tilting, $w_i \propto e^{t z_i}$, which sums to one.

    $z$ is the position of the rows along a direction, with mean 0 and standard deviation 1, and $t$ is 0.25, 0.5, 0.75, 1 or
    1.5. Were $z$ normal, its mean would move by $t$ standard deviations. As the ``weights`` of the metrics, they give scores
    under shift without drawing rows.

    Args:
        x: ``[n, columns]`` of a floating-point type.
        severity: from 1, the mildest, to 5.
        direction: a number for each column; by default the direction in which the table varies most, its first principal
            component, with the sign that makes its largest entry positive.

    Examples:
        >>> weights = tilt_weights(torch.tensor([[-1.0], [0.0], [1.0]]), 4)
        >>> bool((weights.diff() > 0).all()), round(float(weights.sum()), 6)
        (True, 1.0)
    """
    tilt = _TILTS[check_severity(severity) - 1]
    _check_table(x)
    values = x.detach().double()
    centred = values - values.mean(0)
    if direction is None:
        direction = torch.linalg.svd(centred, full_matrices=False).Vh[0]
        direction = direction * direction[direction.abs().argmax()].sign()
    along = centred @ _per_column("direction", direction, x).double()
    spread = along.std(correction=0)
    if not spread > 0:
        raise DataError("Expected the rows of `x` to differ along `direction`, but they are all at the same place.")
    return torch.softmax(tilt * (along - along.mean()) / spread, 0)


def _row_seed(row: Tensor, name: str, seed: int) -> int:
    content = hashlib.blake2b(row.double().numpy().tobytes(), digest_size=16).hexdigest()
    return derived_seed(seed, "corrupt", name, content)


def _check_table(x: Tensor) -> None:
    if not isinstance(x, Tensor) or x.dim() != 2 or not x.is_floating_point() or not x.numel():
        got = f"{list(x.shape)} of {x.dtype}" if isinstance(x, Tensor) else type(x).__name__
        raise DataError(f"Expected `x` to be a tensor [n, columns] of a floating-point type, but got {got}.")
    if not bool(x.isfinite().all()):
        row, column = (int(each) for each in (~x.isfinite()).nonzero()[0])
        raise DataError(f"Expected `x` to be finite, but row {row}, column {column} is {float(x[row, column])}.")


def _per_column(name: str, values: Tensor, x: Tensor) -> Tensor:
    if values.shape != x.shape[1:]:
        raise DataError(f"Expected `{name}` to have a number for each of {x.shape[1]} columns, but got {list(values.shape)}.")
    return values.to(x)
