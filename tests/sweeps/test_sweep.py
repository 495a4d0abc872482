"""A sweep in one process: what is run, what is kept, and what is said of what goes wrong."""

from __future__ import annotations

import io
import json
import re
import resource
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console
from tests.sweeps import acts

import calibayes as cb
from calibayes.errors import DataError, InvalidArgumentError
from calibayes.sweeps import Sweep, read


class Place:
    """A folder for results, a log of what ran, and what was said."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder / "there", folder / "log"
        self.err = ""

    def settings(self, *numbers: int, **others: Any) -> list[dict[str, Any]]:
        return cb.grid(n=numbers, log=str(self.log), **others)

    def sweep(self, trial: Any, *numbers: int, **others: Any) -> Sweep:
        err = io.StringIO()
        try:
            aside = Console(file=err, highlight=False, width=200)
            return cb.sweep(
                trial, self.settings(*numbers), self.folder, **{"workers": 1, "threads": 1, "progress": aside, **others}
            )
        finally:
            self.err = err.getvalue()

    @property
    def files(self) -> list[Path]:
        return sorted(self.folder.iterdir())


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_results_come_in_the_order_of_the_settings_and_are_not_computed_twice(place: Place) -> None:
    found = place.sweep(acts.square, 3, 1, 2)
    assert [trial.settings["n"] for trial in found] == [3, 1, 2]
    assert [result["y"] for result in found.results()] == [9, 1, 4]
    assert (found.kept, found.failed, len(found)) == (0, [], 3)
    assert re.findall(r"^\[\d/3\] n=\d: 0.0 s", place.err, flags=re.MULTILINE) == [
        f"[{k}/3] n={n}: 0.0 s" for k, n in enumerate((3, 1, 2), 1)
    ]
    assert "\x1b" not in place.err
    again = place.sweep(acts.square, 1, 2, 3, 4)
    assert [result["y"] for result in again.results()] == [1, 4, 9, 16]
    assert again.kept == 3
    assert "From before: 3 of 4 trials." in place.err
    assert acts.runs(place.log) == {1: 1, 2: 1, 3: 1, 4: 1}
    assert len(place.files) == 4  # nothing else is left: no claims, nothing half-written


def test_a_file_says_everything_in_plain_json(place: Place) -> None:
    place.sweep(acts.numbers, 7, label="number {n}/7")
    (path,) = place.files
    assert re.fullmatch(r"number_7_7-[0-9a-f]{20}\.json", path.name)
    text = path.read_text(encoding="utf-8")
    assert "λ" in text
    record = json.loads(text, parse_constant=pytest.fail)
    assert record["settings"] == {"n": 7, "log": str(place.log)}
    assert (record["trial"], record["version"], record["error"]) == ("tests.sweeps.acts:numbers", 1, None)
    assert record["result"] == {"inf": "Infinity", "nan": None, "none": None, "tensor": 2, "text": "λ", "tuple": [1, 2]}
    assert set(record["versions"]) == {"python", "torch", "numpy", "calibayes"}
    assert record["versions"]["torch"] == torch.__version__
    assert record["machine"]["threads"] >= 1
    assert record["started"].endswith("+00:00")
    assert list(record) == sorted(record)


def test_arrays_go_into_a_file_of_tensors_and_come_back_to_the_bit(place: Place) -> None:
    found = place.sweep(acts.arrays, 1, 2)
    assert {path.suffix for path in place.files} == {".safetensors"}
    for sweep in (found, place.sweep(acts.arrays, 1, 2), read(place.folder)):
        second = sweep[1].result
        assert second is not None
        assert torch.equal(second["probs"], torch.full((3, 2), 0.2))
        assert torch.equal(second["numpy"], torch.full((2,), 0.2))
        assert second["nested"] == [{"one": 1.5}]
    assert acts.runs(place.log) == {1: 1, 2: 1}


def test_a_trial_that_raises_is_recorded_does_not_stop_the_others_and_is_tried_again(place: Place) -> None:
    found = place.sweep(acts.fails_at_two, 1, 2, 3)
    assert [result["y"] for result in found.results()] == [1, 3]
    (failed,) = found.failed
    assert failed.settings["n"] == 2
    assert failed.result is None
    assert failed.error is not None
    assert (failed.error.type, failed.error.message) == ("ArithmeticError", "two is too many")
    assert "acts.py" in failed.error.traceback
    assert "n=2: failed, ArithmeticError: two is too many" in place.err
    kept = place.sweep(acts.fails_at_two, 1, 2, 3, keep_failures=True)
    assert (kept.kept, len(kept.failed)) == (3, 1)
    Path(f"{place.log}.mended").touch()
    again = place.sweep(acts.fails_at_two, 1, 2, 3)
    assert (again.kept, again.failed) == (2, [])
    assert acts.runs(place.log) == {1: 1, 2: 2, 3: 1}
    assert len(place.files) == 3


def test_a_trial_that_exits_ends_itself_alone(place: Place) -> None:
    found = place.sweep(acts.leaves_at_two, 1, 2, 3)
    assert [str(trial.error) for trial in found.failed] == ["SystemExit: no more"]
    assert len(found.results()) == 2


def test_what_cannot_be_kept_is_a_failure_with_a_name(place: Place) -> None:
    not_a_dict, not_storable, not_writable, not_sayable = place.sweep(acts.odd, 0, 1, 2, 3).failed
    assert "TypeError: Expected the trial to return a dict, but got [1, 2] (list)." in str(not_a_dict.error)
    assert "Expected the result['y'] to be a number, text" in str(not_storable.error)
    assert "Exceeds the limit" in str(not_writable.error)
    assert str(not_sayable.error) == "SpeechlessError: an error that cannot be shown"


def test_a_trial_may_go_to_another_folder(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    found = cb.sweep(acts.goes_away, [{"n": n} for n in range(2)], "there", workers=1, progress=False)
    assert len(found.results()) == len(list((tmp_path / "there").glob("*.json"))) == 2


def test_a_long_label_of_any_letters_fits_into_a_name(place: Place) -> None:
    place.sweep(acts.square, 1, label="試" * 200)
    assert [path.name.startswith("試" * 40 + "-") for path in place.files] == [True]


def test_what_a_newer_version_wrote_is_not_replaced(place: Place) -> None:
    place.sweep(acts.square, 1)
    (path,) = place.folder.glob("*.json")
    newer = path.read_text().replace('"format": 1', '"format": 2')
    path.write_text(newer)
    with pytest.raises(DataError, match=r"its format 2 is not one that this version of calibayes reads. Update calibayes"):
        place.sweep(acts.square, 1)
    assert path.read_text() == newer


def test_the_same_settings_are_one_trial_and_whole_numbers_have_one_form(place: Place) -> None:
    found = place.sweep(acts.square, 2, 2)
    assert len(found) == 2
    (name, _), (_, one) = place.settings(2)[0].items()
    cb.sweep(acts.square, [{"log": one, name: 2.0}], place.folder, workers=1, progress=False)
    assert acts.runs(place.log) == {2: 1}


def test_another_function_version_or_setting_is_another_trial(place: Place) -> None:
    place.sweep(acts.square, 2)
    place.sweep(acts.square, 2, version=2)
    place.sweep(acts.fails_at_two, 1, 2)
    assert acts.runs(place.log) == {2: 3, 1: 1}
    assert len(place.files) == 4
    assert len(read(place.folder)) == 4
    assert len(read(place.folder, "tests.sweeps.acts:square")) == 2


def test_another_label_takes_up_what_is_there(place: Place) -> None:
    place.sweep(acts.square, 2)
    found = place.sweep(acts.square, 2, label="other")
    assert found.kept == 1
    assert [path.name.partition("-")[0] for path in place.files] == ["square"]


@pytest.mark.parametrize("trial", [acts.square, acts.arrays])
def test_damage_is_found_told_and_mended(place: Place, trial: Any) -> None:
    before = place.sweep(trial, 1, 2, 3).frame()
    torn, altered, whole = place.files
    torn.write_bytes(torn.read_bytes()[:-40])
    content = bytearray(altered.read_bytes())
    content[content.index(b'"n') + 20 :] = (
        bytes([content[content.index(b'"n') + 20] ^ 1]) + content[content.index(b'"n') + 21 :]
    )
    altered.write_bytes(content)
    assert {path.name for path in read(place.folder).damaged} == {torn.name, altered.name}
    found = place.sweep(trial, 1, 2, 3)
    assert found.kept == 1
    for path in (torn, altered):
        assert f"{path.name} is damaged: " in place.err
    assert place.err.count("It is computed again.") == 2
    assert whole.name not in place.err
    assert sorted(acts.runs(place.log).values()) == [1, 2, 2]
    assert found.frame().drop(columns="seconds").equals(before.drop(columns="seconds"))
    assert read(place.folder).damaged == ()


def test_a_result_under_another_ones_name_is_not_taken(place: Place) -> None:
    place.sweep(acts.square, 1, 2)
    first, second = place.files
    first.write_bytes(second.read_bytes())
    assert place.sweep(acts.square, 1, 2).kept == 1
    assert "it does not hold the result that its name says" in place.err


def test_a_table_has_a_row_for_each_trial(place: Place) -> None:
    frame = place.sweep(acts.fails_at_two, 1, 2).frame()
    assert list(frame.columns) == ["n", "log", "y", "seconds", "error"]
    assert frame["n"].tolist() == [1, 2]
    assert frame["y"][0] == 1
    assert frame["y"].isna().tolist() == [False, True]
    assert frame["error"][1] == "ArithmeticError: two is too many"


def test_a_result_with_the_name_of_another_column_has_one_of_its_own(place: Place) -> None:
    frame = place.sweep(acts.clashes, 3).frame()
    assert frame[["n", "result.n", "result.error"]].values.tolist() == [[3, 4, 0.5]]
    assert frame["error"].isna().all()


def test_a_full_disk_ends_the_sweep_with_the_name_of_the_folder_and_keeps_what_is_there(place: Place) -> None:
    place.sweep(acts.square, 1)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, before[1]))  # no file may grow beyond this
    try:
        with pytest.raises(InvalidArgumentError, match=r"Cannot write to '.*there': File too large"):
            place.sweep(acts.square, 1, 2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert len(place.files) == 1
    assert place.sweep(acts.square, 1, 2).kept == 1


def test_a_folder_that_cannot_be_made_is_named_before_anything_runs(place: Place) -> None:
    place.folder.write_text("a file")
    with pytest.raises(InvalidArgumentError, match=r"Cannot write to '.*there'"):
        place.sweep(acts.square, 1)
    assert not place.log.exists()


def test_a_folder_that_is_taken_away_ends_the_sweep_with_its_name(place: Place) -> None:
    with pytest.raises(InvalidArgumentError, match=r"Cannot write to '.*there': No such file"):
        place.sweep(acts.takes_the_folder_away, 1, 2)


def test_reading_needs_a_folder(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no folder"):
        read(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"trial": lambda settings: settings}, "a function that a module defines"),
        ({"trial": "nowhere"}, "like package.module:function, but got 'nowhere'"),
        ({"trial": "no_such_module:run"}, "Cannot import the module of the trial 'no_such_module:run'"),
        ({"trial": "json:no_such_function"}, "to have a function 'no_such_function'"),
        ({"settings": {"n": 1}}, "a list of dicts, one for each trial, but got dict"),
        ({"settings": [3]}, "Expected settings 0 to be a dict, but got 3"),
        ({"settings": [{"n": float("nan")}]}, "Expected the setting `n` to be finite, but got nan"),
        ({"settings": [{"n": {"deep": [object]}}]}, r"the setting `n.deep\[0\]` to be a number"),
        ({"settings": [{1: 2}]}, "the names in settings 0 to be texts, but got 1"),
        ({"backend": "slurm"}, "'local', 'ray', 'dask', but got 'slurm'"),
        ({"workers": 0}, "`workers` to be a positive integer, but got 0"),
        ({"threads": 1.5}, "`threads` to be a positive integer, but got 1.5"),
        ({"retries": -1}, "`retries` to be an integer of at least 0, but got -1"),
        ({"label": "{m}"}, r"the label '\{m\}' to name settings"),
        ({"label": "{n[0]}"}, r"the label '\{n\[0\]\}' to name settings"),
        ({"cost": lambda settings: 0}, "`cost` to be a positive finite number, but got 0"),
    ],
)
def test_bad_input_is_named(tmp_path: Path, arguments: dict[str, Any], message: str) -> None:
    usual: dict[str, Any] = {"trial": acts.square, "settings": [{"n": 1}], "folder": tmp_path / "there"}
    with pytest.raises(InvalidArgumentError, match=message):
        cb.sweep(**{**usual, **arguments})
    assert not (tmp_path / "there").exists()


def test_a_trial_that_cannot_be_sent_to_workers_is_named(tmp_path: Path) -> None:
    def trial(settings: dict[str, Any]) -> dict[str, Any]:
        return {"y": lock.locked()}

    lock = threading.Lock()
    trial.__qualname__ = "trial"
    with pytest.raises(InvalidArgumentError, match=r"Cannot send the trial 'tests.sweeps.test_sweep:trial' to workers: .*lock"):
        cb.sweep(trial, [{"n": 1}], tmp_path / "there")


def test_a_choice_without_values_is_named() -> None:
    with pytest.raises(InvalidArgumentError, match="`lam` to have at least one value"):
        cb.grid(lam=[], seed=range(3))
