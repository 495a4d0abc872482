"""The reader beside exported files: it gives what calibayes gives, without calibayes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from tests.exporting.models import COLUMNS, NETWORKS, model_of, random_network, text_coding

from calibayes.exporting import reader
from calibayes.exporting.rows_to_check import described_rows
from calibayes.exporting.table_rows import TableRows
from calibayes.files.image_coding import ImageCoding
from calibayes.files.table_coding import TableCoding
from calibayes.files.table_columns import CategoryColumn
from calibayes.tables import RowBlock, TableOptions, UnnamedRows, frame_block

CELLS: dict[str, list[str | None]] = {
    "size": ["1", " 2.5 ", "-.5e1", "NA", None, "", "+7."],
    "colour": ["blue", " red", "3.0", "green", None, "", "03"],
    "seen": ["2024-01-31", "2024-02-29 23:59", "1969-07-20T20:17:40+02:00", "n/a", None, "", "2030-12-31"],
    "weight": ["-1000000", "1e6", "0", "?", None, "-", "123.456"],
    "wild": ["true", "FALSE", "True", "no", None, "", " false "],
}
COMMAS: dict[str, list[str | None]] = {
    **CELLS,
    "size": ["1", "2,5", "-,5e1", None, "3", "4", "7,"],
    "seen": ["31.01.2024", "2024-02-29", "01.12.1969", None, "", "NA", "2.3.2024"],
    "weight": ["1"] * 7,
}


def records(cells: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(cells, row, strict=True)) for row in zip(*cells.values(), strict=True)]


@pytest.mark.parametrize("raw", [True, False])
@pytest.mark.parametrize(
    ("cells", "options"),
    [(CELLS, TableOptions()), (COMMAS, TableOptions(decimal=",", delimiter=";", date_format="%d.%m.%Y"))],
)
def test_tables(cells: dict[str, list[str | None]], options: TableOptions, raw: bool) -> None:
    coding = TableCoding(COLUMNS, raw=raw)
    block = frame_block(cells)
    expected = coding.encode(RowBlock(block.table, block.rows, UnnamedRows(None, options)))
    given = reader.row_inputs(described_rows(coding, options), records(cells))
    assert given.dtype == np.float64
    found = TableRows(coding)(torch.from_numpy(given))
    assert found.dtype == expected.dtype
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6, equal_nan=True)


def test_values_that_are_no_texts() -> None:
    rows = [{"size": 2, "colour": 3.0, "seen": None, "weight": float("nan"), "wild": True}]
    texts = [{"size": "2", "colour": "3", "seen": "", "weight": "", "wild": "true"}]
    described = described_rows(TableCoding(COLUMNS, raw=True), TableOptions())
    np.testing.assert_array_equal(reader.row_inputs(described, rows), reader.row_inputs(described, texts))


def test_a_text_that_is_no_number() -> None:
    described = described_rows(TableCoding(COLUMNS, raw=True), TableOptions())
    good = records(CELLS)[0]
    with pytest.raises(ValueError, match=r"^Row 2, column 'size': '1,5' is not a number"):
        reader.row_inputs(described, [good, {**good, "size": "1,5"}])


def test_a_text_that_is_no_date() -> None:
    described = described_rows(TableCoding(COLUMNS, raw=True), TableOptions())
    good = records(CELLS)[0]
    with pytest.raises(ValueError, match=r"^Row 1, column 'seen': '31\.1\.2024' is not a date\. Write it like 2024-12-31"):
        reader.row_inputs(described, [{**good, "seen": "31.1.2024"}, good])


@pytest.mark.parametrize("decimal", [".", ","])
def test_numbers_in_columns_of_categories(decimal: str) -> None:
    coding = TableCoding((CategoryColumn("grade", ("3", "0.5", "1,5"), unknown=True, missing=True),), raw=True)
    options = TableOptions(decimal=decimal)
    grades = [3.0, 0.5, 1.5, float("nan"), 2.5]
    expected = coding.encode(frame_block({"grade": grades}, options)).numpy()
    rows = [{"grade": each} for each in [*grades, np.float32(1.5)]]
    found = reader.row_inputs(described_rows(coding, options), rows)
    np.testing.assert_array_equal(found[:-1], expected)
    assert found[-1] == found[2]


def test_what_calibayes_rejects_is_rejected() -> None:
    described = described_rows(TableCoding(COLUMNS, raw=True), TableOptions())
    row = records(CELLS)[0]
    for cell in ("1e400", float("inf"), -1e200):
        with pytest.raises(ValueError, match="too large a number"):
            reader.row_inputs(described, [{**row, "size": cell}])
    with pytest.raises(ValueError, match="Row 2 has no 'size', only"):
        reader.row_inputs(described, [row, {name: cell for name, cell in row.items() if name != "size"}])


def test_no_rows() -> None:
    shapes = {"table": (0, 8), "text": (0, 80), "images": (0, 3, 12, 12)}
    for coding in (TableCoding(COLUMNS, raw=True), text_coding(True, True), ImageCoding(3, 12)):
        assert reader.row_inputs(described_rows(coding, TableOptions()), []).shape == shapes[coding.kind]


def test_texts_that_are_numbers_or_missing() -> None:
    described = described_rows(text_coding(True, True), TableOptions())
    given: list[dict[str, Any]] = [{"title": float("nan"), "body": 5}, {"title": None, "body": 5.0}]
    texts = [{"title": "", "body": "5"}] * 2
    np.testing.assert_array_equal(reader.row_inputs(described, given), reader.row_inputs(described, texts))


@pytest.mark.parametrize(("once", "bigrams"), [(True, True), (True, False), (False, False)])
def test_texts(once: bool, bigrams: bool) -> None:
    cells: dict[str, list[Any]] = {
        "title": ["The cat sat; the CAT.", None, "Zoë’s DON’T don't", "", "cat " * 40],
        "body": ["dog on", "sat sat on unknown", None, "", "the cat sat on the dog"],
    }
    coding = text_coding(once, bigrams)
    expected = coding.encode(frame_block(cells)).numpy()
    np.testing.assert_array_equal(reader.row_inputs(described_rows(coding, TableOptions()), records(cells)), expected)


@pytest.mark.parametrize("channels", [1, 3])
def test_images(channels: int, tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (20, 15, 4), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "clear.png")
    Image.fromarray(pixels[..., 0]).save(tmp_path / "grey.png")
    coding = ImageCoding(channels, 12)
    paths = [str(tmp_path / name) for name in ("clear.png", "grey.png")]
    expected = coding.encode(frame_block({"file": paths})).numpy()
    described = described_rows(coding, TableOptions())
    np.testing.assert_array_equal(reader.row_inputs(described, [{"file": path} for path in paths]), expected)
    np.testing.assert_array_equal(reader.row_inputs(described, [{"file": each} for each in expected]), expected)


@pytest.mark.onnx
def test_it_runs_where_there_is_neither_calibayes_nor_torch(tmp_path: Path) -> None:
    for name in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(name)
    from calibayes.exporting import export_model

    model = model_of([random_network("table-linear", 0)], NETWORKS["table-linear"][0])
    done = export_model(model, tmp_path / "model.onnx")
    assert [path.name for path in done.others] == ["model.json", "reader.py"]
    code = (
        "import sys\n"
        "sys.modules['torch'] = sys.modules['calibayes'] = sys.modules['pandas'] = None\n"  # importing them fails
        "sys.path.insert(0, '.')\n"
        "from reader import Classifier\n"
        "row = {'size': '2.5', 'colour': 'red', 'seen': '2024-03-01', 'weight': 3, 'wild': True}\n"
        "classifier = Classifier('model.onnx')\n"
        "print(round(sum(classifier.predict([row])[0]['probs'].values()), 5), classifier.predict([]))"
    )
    found = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert found.stdout.strip() == "1.0 []", found.stderr
