"""Shards on disk: read as they were written, and used only for the run that they are of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.files.made import rows, table_model, write_csv

from calibayes.errors import InvalidArgumentError
from calibayes.files import load
from calibayes.files.block_prediction import PredictedBlock
from calibayes.files.prediction_notes import BlockNotes
from calibayes.files.prediction_shards import ShardFolder, manifest

NOTES = BlockNotes(
    unseen={"colour": 3}, filled={"colour": 4}, first={"colour": "blå\n"}, unlabelled=1, unknown_label="x", missing={"size": 2}
)
BLOCKS = [
    PredictedBlock(("label", "p_a"), b"a,0.5\nb\n,1\n", 2, 1.1000000000000001, 1, NOTES),
    PredictedBlock(("label", "p_a"), bytes(range(256)), 1, 0.1 + 0.2, 0, BlockNotes({}, {}, {})),
]


def _said(folder: ShardFolder, made_from: dict[str, Any]) -> list[str]:
    said: list[str] = []
    with folder.opened(made_from, said.append):
        pass
    return said


def test_a_shard_is_read_as_it_was_written_and_a_damaged_one_is_not(tmp_path: Path) -> None:
    folder = ShardFolder(tmp_path / "out.csv")
    with folder.opened({"model": "1"}, print):
        folder.write(5, BLOCKS)
        assert folder.read(5) == BLOCKS
        assert folder.read(4) is None
        (file,) = folder.path.glob("shard-*")
        whole = file.read_bytes()
        for damaged in (whole[:-1], whole[:-1] + b"?", whole[:20], b""):
            file.write_bytes(damaged)
            assert folder.read(5) is None


def test_shards_of_something_else_are_discarded_with_a_word(tmp_path: Path) -> None:
    folder = ShardFolder(tmp_path / "out.csv")
    first = {"model": "1", "input": "2", "options": {"keep": ["id"]}}
    with folder.opened(first, print):
        folder.write(0, BLOCKS)
    assert _said(folder, first) == []
    assert folder.read(0) == BLOCKS
    said = _said(folder, first | {"model": "9", "options": {"keep": []}})
    assert said == ["Shards from before are discarded: the model and the options changed since. Everything is predicted again."]
    assert not folder.path.exists()


def test_two_processes_do_not_share_a_folder(tmp_path: Path) -> None:
    folder = ShardFolder(tmp_path / "out.csv")
    with folder.opened({}, print), pytest.raises(InvalidArgumentError, match="Another process is predicting into"):
        _said(ShardFolder(tmp_path / "out.csv"), {})


def test_files_of_others_stay_in_the_folder(tmp_path: Path) -> None:
    folder = ShardFolder(tmp_path / "out.csv")
    folder.path.mkdir()
    (folder.path / "mine.txt").write_text("mine")
    with folder.opened({}, print):
        folder.write(0, BLOCKS)
        folder.remove()
    assert [path.name for path in folder.path.iterdir()] == ["mine.txt"]


def test_a_manifest_knows_model_input_options_and_costs(tmp_path: Path) -> None:
    source, costs = write_csv(tmp_path / "in.csv", rows(3)), tmp_path / "costs.csv"
    costs.write_text("a,b\n")
    model = table_model()

    def changed(**others: Any) -> list[str]:
        given: dict[str, Any] = {"model": model, "source": source, "options": {"samples": 3}, "costs": costs}
        new = manifest(**(given | others))
        return [name for name in new if new[name] != base[name]]

    base = manifest(model, source, {"samples": 3}, costs)
    assert changed() == []
    model.save(tmp_path / "model")
    assert changed(model=load(tmp_path / "model")) == []
    assert changed(model=replace(model, temperature=model.temperature + 1)) == ["model"]
    assert changed(source=write_csv(tmp_path / "other.csv", rows(3, seed=1))) == ["input"]
    assert changed(options={"samples": 4}) == ["options"]
    costs.write_text("a,c\n")
    assert changed() == ["options"]
