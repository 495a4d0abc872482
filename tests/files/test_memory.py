"""A file of any length is predicted in the same memory."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from benchmarks.timing import peak_memory
from tests.files.made import rows, table_model, write_csv


@pytest.mark.slow
def test_a_file_four_times_as_long_takes_hardly_more_memory(tmp_path: Path) -> None:
    table_model().save(tmp_path / "model")
    body, peaks = rows(1000), []
    for name, times in (("short", 100), ("long", 400)):
        source, out = write_csv(tmp_path / f"{name}.csv", body * times), tmp_path / f"{name}.out.csv"
        setup = f"from calibayes.files import load, predict_file\nmodel = load({str(tmp_path / 'model')!r})"
        peaks.append(peak_memory(setup, f"predict_file(model, {str(source)!r}, {str(out)!r}, samples=1)"))
    assert peaks[1] < peaks[0] + 80e6  # it is 30 MB, from blocks read ahead; all rows at once would take 160 MB more
    short, long = (pd.read_csv(tmp_path / f"{name}.out.csv") for name in ("short", "long"))
    assert (len(short), len(long)) == (100_000, 400_000)
    for start in (0, 100_000, 200_000, 300_000):
        assert long[start : start + 100_000].reset_index(drop=True).equals(short)
