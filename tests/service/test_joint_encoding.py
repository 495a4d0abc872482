"""Requests that arrive together are encoded together, and get what each would get alone."""

from __future__ import annotations

import asyncio
import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import torch
from tests.files.made import write_csv

from calibayes.errors import CalibayesError
from calibayes.files import Model, train
from calibayes.tables import TableOptions

pytest.importorskip("fastapi")
pytestmark = pytest.mark.serve


@cache
def model() -> Model:
    rows = [[str(place % 7), "red" if place % 3 else "blue", "high" if place % 7 > 3 else "low"] for place in range(60)]
    with TemporaryDirectory() as folder:
        path = write_csv(Path(folder) / "t.csv", rows, ("size", "colour", "level"))
        return train(path, target="level", scheme="logistic-regression", folds=2).model


def answers(bodies: list[Any], *, together: bool) -> tuple[list[Any], int]:
    """What each request gets (inputs and notes, or the message of its error), and how often rows were encoded."""
    from starlette.datastructures import Headers

    from calibayes.service.request_inputs import RequestReader

    reader, encode, runs = RequestReader(model(), TableOptions(), 100), model().encode, 0

    class Counting:
        def __getattr__(self, name: str) -> Any:
            return getattr(model(), name)

        def encode(self, block: Any) -> torch.Tensor:
            nonlocal runs
            runs += 1
            return encode(block)

    reader._model = Counting()  # type: ignore[assignment]

    async def one(body: Any) -> Any:
        try:
            found = await reader.read(Headers({"content-type": "application/json"}), json.dumps({"rows": body}).encode())
        except CalibayesError as error:
            return str(error)
        return str(found.inputs.tolist()), found.notes  # as text: NaN is not equal to itself

    async def every() -> list[Any]:
        if together:
            return await asyncio.gather(*map(one, bodies))
        return [await one(body) for body in bodies]

    try:
        return asyncio.run(every()), runs
    finally:
        reader.close()


def row(size: Any, colour: Any = "red", **others: Any) -> list[dict[str, Any]]:
    return [{"size": size, "colour": colour, **others}]


def test_forty_requests_are_encoded_at_once() -> None:
    bodies = [row(place % 9, "blue" if place % 2 else "red") * (1 + place % 3) for place in range(40)]
    (found, runs), (expected, _) = answers(bodies, together=True), answers(bodies, together=False)
    assert found == expected
    assert runs == 1


def test_wrong_rows_other_columns_and_missing_cells_are_those_of_one_request() -> None:
    bodies = [row(1), row("large"), row(2), row(3, unused="x"), row(None), [{"colour": "red"}], row(4), row(1e200), row(5)]
    found, _ = answers(bodies, together=True)
    assert found == answers(bodies, together=False)[0]
    assert [place for place, each in enumerate(found) if isinstance(each, str)] == [1, 5, 7]
    assert "Row 1, column 'size'" in found[1]
    assert [place for place, each in enumerate(found) if not isinstance(each, str) and each[1]] == [3, 4]


def test_notes_on_cells_are_those_of_one_request_and_rows_are_encoded_at_once() -> None:
    bodies = [row(1), row(2, "green"), row(3), row(None), row(4, "red") + row(5, "green")]
    (found, runs), (expected, _) = answers(bodies, together=True), answers(bodies, together=False)
    assert found == expected
    assert runs == 1
    assert [len(notes) for _, notes in found] == [0, 1, 0, 1, 0]
    assert "column 'colour' are not among the frequent categories of the training data, like 'green'" in found[1][1][0]


def test_many_rows_are_encoded_in_several_turns() -> None:
    bodies = [row(place % 9) * 100 for place in range(8)]
    found, runs = answers(bodies, together=True)
    assert found == answers(bodies, together=False)[0]
    assert runs == 4  # 200 rows each: 300 would be too many at once


def test_a_request_that_was_given_up_does_not_stop_the_others() -> None:
    from calibayes.service.joint_encoding import EncodedRows, JointEncoder
    from calibayes.service.json_rows import JsonRows

    seen: list[int] = []

    def encode(requests: Any) -> list[EncodedRows]:
        seen.append(len(requests))
        return [EncodedRows(torch.zeros(each.rows, 1), []) for each in requests]

    async def run() -> EncodedRows:
        encoder, rows = JointEncoder(encode), JsonRows(("x",), {"x": ["1"]}, 1)
        given_up, other = asyncio.create_task(encoder.encode(rows)), asyncio.create_task(encoder.encode(rows))
        await asyncio.sleep(0)
        given_up.cancel()
        return await other

    assert len(asyncio.run(run()).inputs) == 1
    assert sum(seen) in (1, 2)
