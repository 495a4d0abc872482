"""Images and texts in requests, without a server: what is taken, and what is refused."""

from __future__ import annotations

import asyncio
import io
import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from PIL import Image
from tests.files.made import write_csv

from calibayes.errors import DataError
from calibayes.files import Model, predict_file, train
from calibayes.files.read_rows import read_rows
from calibayes.service.request_errors import RequestError
from calibayes.tables import TableOptions

if TYPE_CHECKING:
    from calibayes.service.joint_encoding import EncodedRows

pytest.importorskip("fastapi")
pytestmark = pytest.mark.serve


def picture(value: int) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(np.full((20, 30), value, dtype=np.uint8)).save(stream, "PNG")
    return stream.getvalue()


@cache
def image_model() -> Model:
    with TemporaryDirectory() as folder:
        for place, name in enumerate(("dark", "bright")):
            (Path(folder) / name).mkdir()
            for number in range(12):
                (Path(folder) / name / f"{number}.png").write_bytes(picture(120 * place + number))
        return train(Path(folder), scheme="fnn", epochs=1, folds=2).model


@cache
def text_model() -> Model:
    rows = [[f"{word} {word} water", word] for word in ("sea", "sky") for _ in range(20)]
    with TemporaryDirectory() as folder:
        path = write_csv(Path(folder) / "t.csv", rows, ("body", "topic"))
        return train(path, target="topic", text=["body"], scheme="fnn", epochs=1, folds=2).model


@cache
def category_model() -> Model:
    rows = [[str(number), colour, size, kind] for number in range(20) for colour, size, kind in ("rsa", "btc")]
    with TemporaryDirectory() as folder:
        path = write_csv(Path(folder) / "t.csv", rows, ("number", "colour", "size", "kind"))
        return train(path, target="kind", scheme="logistic-regression", folds=2).model


def encoded(model: Model, kind: str, body: bytes) -> EncodedRows:
    from starlette.datastructures import Headers

    from calibayes.service.request_inputs import RequestReader

    reader = RequestReader(model, TableOptions(), 100)
    try:
        return asyncio.run(reader.read(Headers({"content-type": kind}), body))
    finally:
        reader.close()


def inputs(model: Model, kind: str, body: bytes) -> torch.Tensor:
    return encoded(model, kind, body).inputs


@pytest.mark.parametrize("copies", [1, 30])  # few rows are read in another way than many
@pytest.mark.parametrize(
    "rows", ["1,red,s\n", "1,red,s\n2, green ,huge\n3,,s\n", "1,r,s\n2,b,t\n", "1,r,\n2, ,huge\n", "1,r,s\n2,red,t\n"]
)
def test_unseen_categories_are_noted_as_in_a_file(rows: str, copies: int, tmp_path: Path) -> None:
    text = "number,colour,size\n" + rows * copies
    (tmp_path / "new.csv").write_text(text)
    said: list[str] = []
    predict_file(category_model(), tmp_path / "new.csv", tmp_path / "out.csv", say=said.append)
    notes = encoded(category_model(), "text/csv", text.encode()).notes
    assert notes == said
    assert any("column 'colour' are not among the frequent categories" in note for note in notes) == ("red,s" in rows)


def test_an_image_is_taken_as_the_body_or_in_a_form(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(picture(77))
    expected = image_model().encode(read_rows(tmp_path / "a.png")[0])
    assert torch.equal(inputs(image_model(), "image/png", picture(77)), expected)
    form = b'--m\r\nContent-Disposition: form-data; name="file"; filename="x.png"\r\n\r\n' + picture(77) + b"\r\n--m--\r\n"
    assert torch.equal(inputs(image_model(), "multipart/form-data; boundary=m", form), expected)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/json", json.dumps({"rows": [{"file": "/etc/passwd"}]}).encode()),
        ("text/csv", b"file\n/etc/passwd\n"),
        ("text/plain", b"/etc/passwd"),
    ],
)
def test_a_path_is_never_read(kind: str, body: bytes) -> None:
    with pytest.raises(RequestError, match=r"classifies images: upload a PNG or JPEG") as refused:
        inputs(image_model(), kind, body)
    assert refused.value.status == 415


def test_what_is_not_an_image_is_named_without_the_temporary_folder() -> None:
    with pytest.raises(DataError, match=r"^'upload.png': this is not a complete PNG or JPEG image") as refused:
        inputs(image_model(), "image/png", b"no image at all")
    assert gettempdir() not in str(refused.value)
    with pytest.raises(DataError, match=r"^'upload.png': this is not a complete PNG or JPEG image"):
        inputs(image_model(), "image/png", picture(5)[:50])


def test_texts() -> None:
    body = json.dumps({"rows": [{"body": "sea water"}, {"body": None}]}).encode()
    found = inputs(text_model(), "application/json", body)
    assert found.shape[0] == 2
    assert int((found[0] > 0).sum()) > int((found[1] > 0).sum()) == 0


def test_a_worker_starts_with_any_kind_of_model() -> None:
    from calibayes.service.http_app import _blank
    from calibayes.service.row_predictor import RowPredictor

    for model in (image_model(), text_model()):
        (rows,) = RowPredictor(model, TableOptions()).predict([_blank(model, TableOptions())])
        assert not isinstance(rows, DataError)
        assert json.loads(f"[{rows.text}]")[0]["confidence"] >= 0.5
