"""Shifts of tables: tilted rows, noisy numbers, missing cells."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from calibayes.data.corrupt import SEVERITIES, TABLE_SHIFTS, shift_table, tilt_weights
from calibayes.errors import DataError, InvalidArgumentError

TILTS = (0.25, 0.5, 0.75, 1.0, 1.5)


def table(rows: int = 400) -> Tensor:
    """Three columns, of which the second varies most."""
    return torch.randn(rows, 3, generator=torch.Generator().manual_seed(0)) * torch.tensor([1.0, 5.0, 0.1])


@pytest.mark.parametrize(("severity", "tilt"), list(zip(SEVERITIES, TILTS, strict=True)))
def test_weights_move_a_normal_column_by_the_tilt(severity: int, tilt: float) -> None:
    """Exponential tilting of a normal distribution by t moves its mean by t standard deviations, and keeps its spread."""
    places = torch.linspace(0.0005, 0.9995, 1000, dtype=torch.float64)
    x = torch.special.ndtri(places)[:, None] * 3 + 7
    weights = tilt_weights(x, severity)
    z = (x[:, 0] - x.mean()) / x.std(correction=0)
    assert float(weights.sum()) == pytest.approx(1.0)
    assert float((weights * z).sum()) == pytest.approx(tilt, rel=0.05)
    ratio = weights[900] / weights[100]
    assert math.log(ratio) == pytest.approx(tilt * float(z[900] - z[100]), rel=1e-9)


def test_rows_are_drawn_by_their_weights() -> None:
    x = table(2000)
    direction = torch.tensor([0.0, 0.0, -1.0])
    moved, rows = shift_table(x, "tilted_rows", 4, seed=0, direction=direction)
    assert torch.equal(moved, x[rows])
    expected = (tilt_weights(x, 4, direction=direction) @ x.double())[2]
    assert float(moved[:, 2].mean()) == pytest.approx(float(expected), abs=0.01)
    assert float(moved[:, 2].mean()) < -0.08
    assert float(moved[:, 1].mean() - x[:, 1].mean()) == pytest.approx(0.0, abs=0.6)


def test_the_usual_direction_is_the_one_of_most_variance_upwards() -> None:
    x = table(2000)
    torch.testing.assert_close(
        tilt_weights(x, 3), tilt_weights(x, 3, direction=torch.tensor([0.0, 1.0, 0.0])), atol=2e-4, rtol=0.1
    )
    assert float(tilt_weights(x, 3) @ x[:, 1].double()) > float(x[:, 1].mean()) + 2


@pytest.mark.parametrize(("severity", "share"), list(zip(SEVERITIES, (0.1, 0.2, 0.4, 0.6, 1.0), strict=True)))
def test_noise_is_in_standard_deviations_of_a_column(severity: int, share: float) -> None:
    x = table(4000)
    moved, rows = shift_table(x, "noisy_numbers", severity, seed=0)
    torch.testing.assert_close((moved - x).std(0), share * x.std(0), rtol=0.05, atol=0)
    assert torch.equal(rows, torch.arange(4000))
    scale = torch.tensor([1.0, 0.0, 2.0])
    torch.testing.assert_close(
        (shift_table(x, "noisy_numbers", severity, seed=0, scale=scale).x - x).std(0), share * scale, rtol=0.05, atol=1e-6
    )


@pytest.mark.parametrize(("severity", "share"), list(zip(SEVERITIES, (0.05, 0.1, 0.2, 0.3, 0.5), strict=True)))
def test_a_share_of_the_cells_goes_missing(severity: int, share: float) -> None:
    x = table(4000)
    moved = shift_table(x, "missing_cells", severity, seed=0).x
    assert float(moved.isnan().float().mean()) == pytest.approx(share, abs=0.01)
    assert torch.equal(moved[~moved.isnan()], x[~moved.isnan()])
    fill = torch.tensor([1.0, 2.0, 3.0])
    filled = shift_table(x, "missing_cells", severity, seed=0, fill=fill).x
    assert torch.equal(filled, torch.where(moved.isnan(), fill, x))


def test_cells_that_are_missing_stay_missing_at_higher_severities() -> None:
    x = table()
    gone = [shift_table(x, "missing_cells", severity, seed=0).x.isnan() for severity in SEVERITIES]
    assert all(bool((worse | ~mild).all()) for mild, worse in pairwise(gone))


@pytest.mark.parametrize("name", ["noisy_numbers", "missing_cells"])
def test_a_row_does_not_depend_on_the_others(name: str) -> None:
    x, given = table(), {"scale": torch.ones(3), "fill": 0.0}
    whole = shift_table(x, name, 3, seed=0, **given).x  # type: ignore[arg-type]
    assert torch.equal(shift_table(x[50:60], name, 3, seed=0, **given).x, whole[50:60])  # type: ignore[arg-type]
    assert not torch.equal(shift_table(x, name, 3, seed=1, **given).x, whole)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", TABLE_SHIFTS)
def test_the_same_seed_gives_the_same_table(name: str) -> None:
    x = table()
    first, second = (shift_table(x, name, 2, seed=3, fill=0.0) for _ in range(2))
    assert torch.equal(first.x, second.x)
    assert torch.equal(first.rows, second.rows)
    assert first.x.dtype == x.dtype


def test_errors_name_the_value() -> None:
    x = table(5)
    with pytest.raises(InvalidArgumentError, match=r"but got 'tilted'\. Did you mean 'tilted_rows'"):
        shift_table(x, "tilted", 1, seed=0)
    with pytest.raises(InvalidArgumentError, match="but got 0"):
        shift_table(x, "missing_cells", 0, seed=0)
    with pytest.raises(DataError, match=r"but got \[5\] of torch.float32"):
        shift_table(x[:, 0], "missing_cells", 1, seed=0)
    with pytest.raises(DataError, match=r"but got \[5, 3\] of torch.int64"):
        shift_table(x.long(), "missing_cells", 1, seed=0)
    with pytest.raises(DataError, match=r"row 2, column 1 is nan"):
        shift_table(x.index_put((torch.tensor(2), torch.tensor(1)), torch.tensor(torch.nan)), "noisy_numbers", 1, seed=0)
    with pytest.raises(DataError, match=r"`scale` to have a number for each of 3 columns, but got \[2\]"):
        shift_table(x, "noisy_numbers", 1, seed=0, scale=torch.ones(2))
    with pytest.raises(DataError, match="all at the same place"):
        tilt_weights(torch.ones(4, 2), 1, direction=torch.ones(2))
