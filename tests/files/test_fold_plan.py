"""The plan of folds: rows that are copies of one another stay together, and if they may not be, the user is told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.files.test_training import QUICK, frame, written

from calibayes.files import train


@pytest.mark.parametrize("times", [2, 3])
def test_no_copy_is_predicted_by_a_member_that_has_seen_another(times: int, tmp_path: Path) -> None:
    made = frame(150)
    found = train(written(tmp_path, pd.concat([made] * times)), **QUICK)
    row = np.tile(np.arange(150), times)
    for train_rows, held_out in found.plan.folds:
        assert not set(row[train_rows]) & set(row[held_out])
    assert found.plan.notes == (f"{150 * (times - 1)} rows like another one: kept in one fold with it.",)


def test_equal_rows_of_few_patterns_are_spread_and_mentioned(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    made = pd.DataFrame({"a": rng.choice(["x", "y"], 200), "b": rng.choice(["u", "v", "w"], 200)})
    made["label"] = np.where((made["a"] == "x") ^ (rng.random(200) < 0.2), "yes", "no")
    (note,) = train(written(tmp_path, made), **QUICK).plan.notes
    assert note.startswith("194 rows with the same inputs as another one, which may be in another fold.")
