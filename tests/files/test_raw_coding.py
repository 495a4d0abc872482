"""Rows as raw numbers and category codes, for networks that encode them and for trees."""

from __future__ import annotations

import numpy as np
import torch

from calibayes.checked_fields import Fields
from calibayes.files.networks import NetworkPlan
from calibayes.files.table_coding import TableCoding
from calibayes.files.table_columns import CategoryColumn, DateColumn, NumberColumn
from calibayes.tables import frame_block
from calibayes.tables.dates import DATE_PARTS

COLUMNS = (
    NumberColumn("x", mean=2.0, std=2.0, missing=True),
    DateColumn("day", tuple([0.0] * len(DATE_PARTS)), tuple([1.0] * len(DATE_PARTS)), missing=False),
    CategoryColumn("colour", ("blue", "red"), unknown=True, missing=True),
)
ROWS = frame_block(
    {
        "x": ["4", None, "1000002"],
        "day": ["2024-01-02", "2024-01-03", None],
        "colour": ["red", "green", None],
    }
)


def test_numbers_are_not_clipped_and_missing_cells_are_nan() -> None:
    coding = TableCoding(COLUMNS, raw=True)
    coded = coding.encode(ROWS).numpy()
    assert coded.shape == (3, coding.width) == (3, 2 + len(DATE_PARTS))
    assert coded[[0, 2], 0].tolist() == [1.0, 500_000.0]
    assert np.isnan(coded[1, 0])
    assert np.isnan(coded[2, 1:-1]).all()
    assert coded[:2, -1].tolist() == [1.0, 2.0]  # red; not known
    assert np.isnan(coded[2, -1])


def test_it_says_which_columns_are_what() -> None:
    coding = TableCoding(COLUMNS, raw=True)
    assert coding.numbers == list(range(1 + len(DATE_PARTS)))
    assert coding.categories == [(1 + len(DATE_PARTS), 3)]


def test_files_keep_it() -> None:
    for coding in (TableCoding(COLUMNS, raw=True), TableCoding(COLUMNS)):
        assert TableCoding.of(Fields(coding.to_dict(), "the coding")) == coding
    assert "raw" not in TableCoding(COLUMNS).to_dict()


def test_networks_for_it_are_built_by_name() -> None:
    columns = {"numbers": [0, 1], "category_columns": [2], "categories": [4], "bins": 5, "frequent": 2, "classes": 3}
    plans = [
        NetworkPlan("table-network", {**columns, "hidden": [8], "heads": 2}),
        NetworkPlan("table-linear", columns),
        NetworkPlan(
            "boosted-trees",
            {"features": 3, "classes": 3, "trees": 6, "nodes": 3, "depth": 1, "sets": 0, "categories": 0},
        ),
    ]
    rows = torch.tensor([[0.5, float("nan"), 2.0], [1.0, 1.0, float("nan")]])
    for plan in plans:
        again = NetworkPlan.of(Fields(plan.to_dict(), "the network"))
        assert again == plan
        assert again().eval()(rows).shape == (2, 3)
