"""The shared style of the pictures, and an import that does not load matplotlib."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from scipy.optimize import isotonic_regression

from calibayes.displays.style import LINES, is_small, spread


def test_curves_can_be_distinguished_without_colour() -> None:
    assert len({str(line.linestyle) for line in LINES}) == len({line.marker for line in LINES}) == len(LINES)
    grey = [float(np.dot(to_rgb(line.color), (0.299, 0.587, 0.114))) for line in LINES]
    assert all(abs(one - other) > 0.1 for one, other in pairwise(grey[:4]))


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=8), st.floats(0.1, 50))
def test_spread_moves_as_little_as_possible(places: list[float], apart: float) -> None:
    places = sorted(places)
    moved = np.array(spread(places, apart))
    assert (np.diff(moved) >= apart - 1e-9).all()
    steps = apart * np.arange(len(places))
    assert moved == pytest.approx(isotonic_regression(np.array(places) - steps).x + steps)


def test_axes_that_fit_a_column_of_text_are_small() -> None:
    assert is_small(Figure(figsize=(2.2, 2)).add_subplot())
    assert not is_small(Figure(figsize=(4.6, 3.4)).add_subplot())


def test_importing_the_module_does_not_import_matplotlib() -> None:
    code = "import sys, calibayes.displays; sys.exit(bool({'matplotlib', 'pandas', 'sklearn', 'scipy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": ":".join(sys.path)}, check=False).returncode == 0
