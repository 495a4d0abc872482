"""What the page on acting says of thresholds from few rows, by simulation."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from tests.acting.test_thresholds import Simulation, as_said, calibrated


def test_the_page_says_what_few_rows_certify() -> None:
    """The numbers on the page are those of a thousand runs, to one point."""
    page = " ".join((Path(__file__).parents[2] / "docs" / "acting.md").read_text().split())
    found = re.search(
        r"the best threshold answers (\d+) %, 300 rows certify (\d+) % on average, and in (\d+) % of the runs nothing; "
        r"1,000 rows certify (\d+) %, and in (\d+) % of the runs nothing",
        page,
    )
    assert found is not None
    best, few, few_none, more, more_none = (int(each) / 100 for each in found.groups())
    for rows, coverage, none in ((300, few, few_none), (1000, more, more_none)):
        simulation = Simulation(calibrated, as_said, rows, runs=1000, accuracy=0.95, seed=6)
        assert simulation.best == pytest.approx(best, abs=0.01)
        assert np.mean(simulation.coverages) == pytest.approx(coverage, abs=0.01)
        assert simulation.none / simulation.runs == pytest.approx(none, abs=0.01)
        assert simulation.violations <= simulation.too_many
