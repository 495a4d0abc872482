"""Coverage and size of sets by counting, and intervals that hold."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from calibayes.acting import clopper_pearson, set_coverage
from calibayes.acting.exact_bounds import error_free_rows, lower_bound, upper_bound
from calibayes.errors import InvalidArgumentError, InvalidTargetsError


def test_clopper_and_pearson_equal_scipy() -> None:
    for successes, trials, level in ((0, 10, 0.9), (3, 10, 0.95), (10, 10, 0.99), (450, 500, 0.8)):
        theirs = stats.binomtest(successes, trials).proportion_ci(level, "exact")
        assert clopper_pearson(successes, trials, level) == pytest.approx((theirs.low, theirs.high), abs=1e-10)
    assert clopper_pearson(0, 0) == (0.0, 1.0)
    with pytest.raises(InvalidArgumentError, match="between 0 and 3 successes"):
        clopper_pearson(4, 3)
    with pytest.raises(InvalidArgumentError, match="`level` to lie between 0 and 1"):
        clopper_pearson(1, 3, 95)


@pytest.mark.parametrize(("accuracy", "certainty"), [(0.95, 0.9), (0.99, 0.9), (0.9, 0.99), (0.5, 0.5)])
def test_the_number_of_error_free_rows_is_the_smallest(accuracy: float, certainty: float) -> None:
    rows = error_free_rows(accuracy, certainty)
    assert lower_bound(rows, rows, certainty) >= accuracy - 1e-9
    assert rows == 1 or upper_bound(0, rows - 1, certainty) > 1 - accuracy


def test_everything_is_counted() -> None:
    generator = torch.Generator().manual_seed(0)
    sets, labels = torch.rand(500, 4, generator=generator) < 0.4, torch.randint(3, (500,), generator=generator)
    measured = set_coverage(sets, labels, level=0.9)
    hits = np.array([bool(sets[row, label]) for row, label in enumerate(labels.tolist())])
    sizes = sets.sum(-1).numpy()
    assert measured.coverage == hits.mean()
    assert measured.coverage_interval == clopper_pearson(int(hits.sum()), 500, 0.9)
    assert measured.mean_size == sizes.mean()
    expected = stats.t.interval(0.9, 499, sizes.mean(), stats.sem(sizes))
    assert measured.mean_size_interval == pytest.approx(expected)
    assert measured.size_counts == tuple(int((sizes == k).sum()) for k in range(5))
    assert measured.singletons == (sizes == 1).mean()
    assert measured.class_coverage[:3] == pytest.approx([hits[labels.numpy() == k].mean() for k in range(3)])
    assert np.isnan(measured.class_coverage[3])
    assert measured.class_intervals[3] == (0.0, 1.0)


def test_what_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="booleans"):
        set_coverage(torch.ones(3, 2), torch.zeros(3, dtype=torch.long))
    with pytest.raises(InvalidTargetsError):
        set_coverage(torch.ones(3, 2, dtype=torch.bool), torch.zeros(4, dtype=torch.long))
