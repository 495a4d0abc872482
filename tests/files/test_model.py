"""A model in a file: the same answers after loading, and no way for a file of unknown origin to do harm."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from tests.files.made import HEADER, rows, table_model

import calibayes
from calibayes import tensor_tree_file
from calibayes.errors import DataError, ModelFileError
from calibayes.files import load
from calibayes.tensor_tree_file import read_tree, write_tree

KIND = "classifier of files"
FRAME = {name: [row[place] for row in rows(30, seed=1)] for place, name in enumerate(HEADER)}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "m.safetensors"
    table_model().save(path)
    return path


def test_a_loaded_model_says_the_same(saved: Path) -> None:
    model, before = load(saved), table_model()
    assert torch.equal(model.predict(FRAME).probs, before.predict(FRAME).probs)
    assert (model.classes, model.target, model.temperature) == (before.classes, "kind", before.temperature)
    assert model.about["settings"]["scheme"] == "bnn"
    assert model.about["versions"]["calibayes"] == calibayes.__version__
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]


def test_uncertainties_add_up_and_samples_can_be_chosen() -> None:
    found = table_model().predict(FRAME, samples=7)
    assert torch.allclose(found.epistemic + found.aleatoric, found.entropy)
    assert bool((found.epistemic > 0).any())
    assert not torch.equal(found.probs, table_model().predict(FRAME).probs)


def test_a_temperature_changes_no_decision() -> None:
    found = table_model().predict(FRAME)
    scaled = table_model().scaled(found)
    assert torch.equal(scaled.argmax(-1), found.decision)
    expected = (found.probs.log() / table_model().temperature).softmax(-1)
    assert torch.allclose(scaled, expected)


def test_missing_columns_are_listed_all_at_once() -> None:
    with pytest.raises(DataError, match=r"not there: 'size', 'seen'. There are 'colour', 'other'"):
        table_model().predict({"colour": ["red"], "other": [1]})


def changed(saved: Path, path: Path, place: str, value: Any) -> Path:
    """The file with one value replaced, and a checksum that fits."""
    tree = read_tree(saved, KIND)
    *outer, last = place.split(".")
    inside = tree
    for name in outer:
        inside = inside[int(name)] if isinstance(inside, list) else inside[name]
    inside[int(last) if isinstance(inside, list) else last] = value
    write_tree(path, KIND, tree)
    return path


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("classes", ["a"], "names, one for each output"),
        ("classes", ["a", "a"], "different texts"),
        ("classes", 3, "'classes' of the model"),
        ("target", None, "'target'"),
        ("temperature", -1.0, "positive finite number"),
        ("temperature", float("inf"), "positive finite number"),
        ("samples", 10**12, "'samples'"),
        ("seed", "now", "'seed'"),
        ("coding", [], "table of values"),
        ("coding.kind", "python", "one of table, text, images"),
        ("coding.columns", [], "columns of different names"),
        ("coding.columns.0.kind", "eval", "one of number, date, category"),
        ("coding.columns.0.std", 0.0, "'std'"),
        ("coding.columns.0.mean", "1", "'mean'"),
        ("coding.columns.1.values", ["red", "red"], "different texts"),
        ("coding.columns.2.means", [1.0], "4 numbers"),
        ("networks.0.name", "os.system", "one of table-network"),
        ("networks.0.sizes.hidden", [10**9], "'hidden'"),
        ("networks.0.sizes.hidden", [4096] * 16, "describes a network of"),
        ("networks.0.sizes.hidden", [7], "another architecture"),
        ("networks.0.sizes.numbers", [0, 2], "does not fit the inputs that its columns give"),
        ("networks.0.sizes.categories", [10**6], "does not fit the inputs that its columns give"),
        ("networks.0.sizes.classes", 1, "'classes'"),
        ("networks", [], "one network, or one for each"),
        ("posterior", None, "damaged"),
        ("posterior.state", {"mu": 3}, "a posterior with weights"),
        ("posterior.state", {}, "describes a network"),
        ("posterior.architecture.kind", "magic", "of the kind 'magic', which is not known"),
        ("posterior.architecture.members.0.prior_std", "wide", "damaged|does not hold"),
    ],
)
def test_a_file_with_another_value_is_refused(saved: Path, tmp_path: Path, place: str, value: Any, message: str) -> None:
    path = changed(saved, tmp_path / "m.safetensors", place, value)
    with pytest.raises(ModelFileError, match=message) as caught:
        load(path)
    assert "m.safetensors" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_weights_that_are_not_numbers_are_refused(saved: Path, tmp_path: Path) -> None:
    state = read_tree(saved, KIND)["posterior"]["state"]
    broken = {name: torch.full_like(value, float("nan")) for name, value in state.items()}
    with pytest.raises(ModelFileError, match="are not finite"):
        load(changed(saved, tmp_path / "m.safetensors", "posterior.state", broken))


def test_a_file_cannot_describe_more_than_it_holds(saved: Path, tmp_path: Path) -> None:
    path, tree = tmp_path / "m.safetensors", read_tree(saved, KIND)
    tree["networks"][0]["sizes"]["hidden"] = [1000]
    tree["posterior"]["state"] = {"bytes": torch.zeros(20_000, dtype=torch.uint8)}  # as many numbers, but not their bytes
    write_tree(path, KIND, tree)
    with pytest.raises(ModelFileError, match="describes a network of"):
        load(path)
    body = json.dumps({"a": {"$tensor": "t"}, "b": {"$tensor": "t"}})
    tensors = {"t": torch.zeros(9)}
    header = {"kind": KIND, "format": 1, "crc32": tensor_tree_file._checksum(body, tensors), "tree": body}
    save_file(tensors, path, metadata={"calibayes": json.dumps(header)})
    with pytest.raises(ModelFileError, match="its header is damaged"):
        load(path)


def test_weights_that_are_too_large_give_no_answer(saved: Path, tmp_path: Path) -> None:
    state = read_tree(saved, KIND)["posterior"]["state"]
    huge = {name: torch.full_like(value, 3e38) for name, value in state.items()}
    with pytest.raises(ModelFileError, match="probabilities are not finite"):
        load(changed(saved, tmp_path / "m.safetensors", "posterior.state", huge)).predict(FRAME)


def test_what_could_not_be_loaded_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="'temperature' of the model to be a positive finite number"):
        replace(table_model(), temperature=float("inf")).save(tmp_path / "m")
    assert not list(tmp_path.iterdir())


class Harm:
    """Unpickled, it would leave a trace."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def test_files_that_are_none_of_ours_are_refused_and_nothing_in_them_is_run(saved: Path, tmp_path: Path) -> None:
    whole = saved.read_bytes()
    trace = tmp_path / "trace"
    flipped = bytearray(whole)
    flipped[-5] ^= 1
    write_tree(tmp_path / "other.safetensors", "model", {"a": 1})
    save_file({"a": torch.zeros(1)}, tmp_path / "foreign.safetensors")
    files = {
        "torn": whole[: len(whole) // 2],
        "flipped": bytes(flipped),
        "pickle": pickle.dumps(Harm(trace)),
        "empty": b"",
        "other": (tmp_path / "other.safetensors").read_bytes(),
        "foreign": (tmp_path / "foreign.safetensors").read_bytes(),
        "newer": whole.replace(b'\\"format\\": 1', b'\\"format\\": 9'),
    }
    assert files["newer"] != whole
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ModelFileError, match=name):
            load(tmp_path / name)
    assert not trace.exists()
    with pytest.raises(ModelFileError, match="format 9"):
        load(tmp_path / "newer")
    with pytest.raises(ModelFileError, match="there is no such file"):
        load(tmp_path / "none")
    with pytest.raises(ModelFileError, match="this is not a file"):
        load(tmp_path)


def test_a_model_that_can_be_kept_nowhere_is_not_said_to_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("calibayes.files.model.gettempdir", lambda: str(tmp_path / "gone"))
    monkeypatch.setattr("calibayes.files.model._SPARE_FOLDERS", ())
    with pytest.raises(ModelFileError, match=r"cannot be written: No such file or directory\.$"):
        table_model().save_or_keep(tmp_path / "gone" / "model")


def test_a_model_is_kept_in_a_spare_folder_where_no_temporary_one_can_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone() -> str:
        raise FileNotFoundError("No usable temporary directory found")

    (tmp_path / "spare").mkdir()
    monkeypatch.setattr("calibayes.files.model.gettempdir", gone)
    monkeypatch.setattr("calibayes.files.model._SPARE_FOLDERS", (str(tmp_path / "spare"),))
    with pytest.raises(ModelFileError, match="The model is kept in"):
        table_model().save_or_keep(tmp_path / "gone" / "model")
    (kept,) = (tmp_path / "spare").rglob("model")
    assert load(kept).classes == table_model().classes
