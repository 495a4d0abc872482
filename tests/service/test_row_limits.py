"""Short bodies that would take up much time or memory are refused, or cost little."""

from __future__ import annotations

import json
import time

import pytest

from calibayes.errors import DataError
from calibayes.tables import TableOptions

pytest.importorskip("fastapi")
pytestmark = pytest.mark.serve

from calibayes.service.json_rows import json_rows, rows_as_block  # noqa: E402
from calibayes.service.request_errors import RequestError  # noqa: E402
from calibayes.service.row_limits import RowLimits  # noqa: E402
from calibayes.service.uploads import uploaded_rows  # noqa: E402

LIMITS = RowLimits(10_000, frozenset({"x"}))
SPARE = [f"n{place}" for place in range(999)]
WIDE = [f"n{place}" for place in range(200_000)]


def test_a_name_that_occurs_twice_among_many_is_found_at_once() -> None:
    body = '{"rows": [{' + ",".join(f'"{name}":1' for name in [*WIDE, "twice", "twice"]) + "}]}"
    begin = time.process_time()
    with pytest.raises(DataError, match="'twice' occurs more than once"):
        json_rows(body.encode(), TableOptions(), LIMITS)
    assert time.process_time() - begin < 10


def test_cells_that_rows_leave_out_of_unused_columns_take_no_memory() -> None:
    rows = [dict.fromkeys(["x", *SPARE], 1), *[{"x": 2}] * 9_999]
    block = rows_as_block([json_rows(json.dumps({"rows": rows}).encode(), TableOptions(), LIMITS)], TableOptions())
    assert block.table.column("x").to_pylist() == ["1", *["2"] * 9_999]
    assert block.table.column_names == ["x", *SPARE]
    assert len({column.chunk(0).buffers()[1].address for column in block.table.columns}) == 2  # all unused ones share theirs


def test_a_bad_cell_in_an_unused_column_is_named() -> None:
    with pytest.raises(DataError, match=r"Row 2, column 'y': the value is a list"):
        json_rows(b'{"rows": [{"x": 1, "y": 2}, {"y": [3]}]}', TableOptions(), LIMITS)


@pytest.mark.parametrize("ending", [".json", ".csv", ".jsonl"])
def test_far_more_columns_than_the_model_needs_are_refused(ending: str) -> None:
    for names, most in ((["x", *SPARE, "one more"], None), (["x", *WIDE], "200,001 columns, but at most 1,001 are taken")):
        row = json.dumps(dict.fromkeys(names, 1))
        data = f"{','.join(names)}\n{','.join('1' * len(names))}\n" if ending == ".csv" else row
        if most is None:
            assert columns_of(data, ending) == names
            continue
        begin = time.process_time()
        with pytest.raises(RequestError, match=most) as refused:
            columns_of(data, ending)
        assert refused.value.status == 413
        assert time.process_time() - begin < 10


def columns_of(data: str, ending: str) -> list[str]:
    if ending == ".json":
        return list(json_rows(f'{{"rows": [{data}]}}'.encode(), TableOptions(), LIMITS).names)
    with uploaded_rows(data.encode(), ending, TableOptions(), LIMITS) as block:
        return list(block.table.column_names)


@pytest.mark.parametrize(("ending", "line"), [(".csv", "1\n"), (".jsonl", '{"x": 1}\n')])
def test_reading_stops_at_the_limit_on_rows(ending: str, line: str) -> None:
    data = ("x\n" if ending == ".csv" else "") + line * 30_000
    broken = data + ("1,2\n" if ending == ".csv" else "{\n")  # never reached where rows are read one at a time
    with (
        pytest.raises(RequestError, match="at most 10,000 are taken") as refused,
        uploaded_rows((broken if ending == ".jsonl" else data).encode(), ending, TableOptions(), LIMITS),
    ):
        pass
    assert refused.value.status == 413
