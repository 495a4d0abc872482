"""Exports replace earlier exports, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.exporting.models import NETWORKS, model_of, random_network
from torch import nn
from typer.testing import CliRunner

import calibayes as cb
from calibayes.cli import app
from calibayes.errors import ExportError
from calibayes.exporting import export_model
from calibayes.exporting.export_paths import READER, check_paths, write_files

X = torch.randn(8, 4, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("model.md", "# My notes\n"),
        ("model.json", '{"classes": 3}'),
        ("model.json", '[{"size": 1}]'),
        ("model.json", "no JSON"),
        ("reader.py", "import csv\n"),
        ("reader.py", ""),
    ],
)
def test_what_is_not_from_an_export_stays(name: str, content: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    model = model_of([random_network("table-linear", 0)], NETWORKS["table-linear"][0])
    with pytest.raises(ExportError, match=f"{name}' would be written beside 'model.pt2', but is there already"):
        export_model(model, tmp_path / "model.pt2")
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == content


def test_an_earlier_export_is_replaced(tmp_path: Path) -> None:
    for temperature in (1.3, 2.6):
        model = model_of([random_network("table-linear", 0)], NETWORKS["table-linear"][0], temperature=temperature)
        done = export_model(model, tmp_path / "model.pt2")
        assert f"{temperature:.4g} and is applied" in done.card.read_text()
    assert {path.name for path in tmp_path.iterdir()} == {"model.pt2", "model.md", "model.json", "reader.py"}
    assert (tmp_path / "reader.py").read_bytes() == READER.read_bytes()


def test_a_posterior_has_no_reader(tmp_path: Path) -> None:
    (tmp_path / "reader.py").write_text("import csv\n")
    cb.export(cb.Point(nn.Linear(4, 3)), tmp_path / "model.pt2", X)
    assert (tmp_path / "reader.py").read_text() == "import csv\n"


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="is there a folder"):
        check_paths(tmp_path / "nowhere" / "model.pt2", described=False)
    (tmp_path / "model.pt2").mkdir()
    with pytest.raises(ExportError, match="is not a file"):
        check_paths(tmp_path / "model.pt2", described=False)
    with pytest.raises(ExportError, match=r"model\.pt2' cannot be written: "):
        write_files({tmp_path / "model.md": b"card", tmp_path / "model.pt2": b"file"})


def test_odd_class_names_are_quoted_in_the_card(tmp_path: Path) -> None:
    names = ("a, b", "two\nlines", "Zoë")
    model = model_of([random_network("table-linear", 0)], NETWORKS["table-linear"][0], classes=names, target="a\nb")
    card = export_model(model, tmp_path / "model.pt2").card.read_text()
    assert card.startswith("# A classifier of 'a\\nb'\n")
    assert "Classes: 'a, b', 'two\\nlines', 'Zoë'." in card


def test_a_tolerance_without_8_bit_weights_is_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["export", str(tmp_path / "model"), "--int8-tolerance", "0.1"])
    assert done.exit_code == 2
    assert "--int8-tolerance only with --int8" in " ".join(done.output.split())
