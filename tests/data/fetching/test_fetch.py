"""From a server to the folder of data sets: as a whole or not at all, once for all processes."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.data.fetching.letters import archive, letters
from tests.data.fetching.server import Served
from tests.data.real import needs, place

from calibayes.data.fetching import SETS, DataSet, DownloadProgress, fetch, obtain
from calibayes.errors import DownloadError, InvalidArgumentError
from calibayes.terminal import status_console


@pytest.fixture
def wanted(file: Served) -> DataSet:
    file.content = archive(a=b"A", b=b"B")
    return letters(file.url, file.content)


def visible(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != ".letters.lock")


def test_it_comes_is_unpacked_and_leaves_nothing_else(file: Served, wanted: DataSet, tmp_path: Path) -> None:
    told = io.StringIO()
    assert obtain(wanted, tmp_path / "new", DownloadProgress(status_console(told))).status == "whole"
    assert (tmp_path / "new" / "sets" / "letters" / "a").read_bytes() == b"A"
    assert visible(tmp_path / "new") == ["sets"]
    assert told.getvalue().splitlines()[-1] == "Unpacking letters.tar.gz …"


def test_what_is_there_is_not_asked_for(file: Served, wanted: DataSet, tmp_path: Path) -> None:
    obtain(wanted, tmp_path, DownloadProgress())
    assert obtain(wanted, tmp_path, DownloadProgress()).status == "whole"
    assert len(file.asked) == 1


def test_what_is_damaged_is_replaced_as_a_whole(file: Served, wanted: DataSet, tmp_path: Path) -> None:
    obtain(wanted, tmp_path, DownloadProgress())
    (tmp_path / "sets" / "letters" / "b").rename(tmp_path / "sets" / "letters" / "c")
    told = io.StringIO()
    assert obtain(wanted, tmp_path, DownloadProgress(status_console(told))).status == "whole"
    assert sorted(path.name for path in (tmp_path / "sets" / "letters").iterdir()) == ["a", "b"]
    assert "letters: it has ['a', 'c']. It will be replaced." in told.getvalue()
    assert visible(tmp_path) == ["sets"]


def test_an_archive_put_there_by_hand_is_used_and_kept(file: Served, wanted: DataSet, tmp_path: Path) -> None:
    (tmp_path / "letters.tar.gz").write_bytes(file.content)
    assert obtain(wanted, tmp_path, DownloadProgress()).status == "whole"
    assert visible(tmp_path) == ["letters.tar.gz", "sets"]
    assert file.asked == []


def test_another_file_put_there_by_hand_is_refused_and_kept(file: Served, wanted: DataSet, tmp_path: Path) -> None:
    (tmp_path / "letters.tar.gz").write_bytes(b"something else")
    with pytest.raises(DownloadError, match="is not the official file: its SHA-256 is not"):
        obtain(wanted, tmp_path, DownloadProgress())
    assert visible(tmp_path) == ["letters.tar.gz"]


def test_an_archive_with_other_things_in_it_changes_nothing(file: Served, tmp_path: Path) -> None:
    file.content = archive(x=b"X")
    damaged = tmp_path / "sets" / "letters"
    damaged.mkdir(parents=True)
    with pytest.raises(DownloadError, match=r"are damaged: it has \['x'\]"):
        obtain(letters(file.url, file.content), tmp_path, DownloadProgress())
    assert list(damaged.iterdir()) == []
    assert visible(tmp_path) == ["letters.tar.gz", "sets"]


def test_what_a_killed_process_left_is_cleared_away(wanted: DataSet, tmp_path: Path) -> None:
    left = tmp_path / ".letters-abc"
    left.mkdir()
    (left / "half").write_bytes(b"")
    obtain(wanted, tmp_path, DownloadProgress())
    assert visible(tmp_path) == ["sets"]


def test_without_a_network_the_message_says_where_to_put_the_file(wanted: DataSet, tmp_path: Path) -> None:
    lost = replace(wanted, remote=replace(wanted.remote, urls=("http://127.0.0.1:1/letters.tar.gz",)))
    with pytest.raises(DownloadError, match=r"no connection \(Connection refused\).*put it at '.*letters\.tar\.gz'") as caught:
        obtain(lost, tmp_path, DownloadProgress())
    assert "\n" not in str(caught.value)


def test_a_disk_without_room_is_told_before_anything_comes(file: Served, wanted: DataSet, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=r"Letters needs \d+ MB in .* but only [\d.]+ MB are free"):
        obtain(replace(wanted, unpacked=10**18), tmp_path, DownloadProgress())
    assert file.asked == []


def test_a_folder_that_cannot_be_made_is_named(wanted: DataSet, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(DownloadError, match=r"Cannot write to '.*taken/sets': Not a directory"):
        obtain(wanted, tmp_path / "taken" / "sets", DownloadProgress())


def test_another_process_waits_and_then_finds_it_there(file: Served, wanted: DataSet, tmp_path: Path) -> None:
    file.gate.clear()
    code = (
        "import sys; from pathlib import Path; from tests.data.fetching.letters import letters;"
        "from calibayes.data.fetching import DownloadProgress, obtain; from calibayes.terminal import status_console;"
        "source = letters(sys.argv[1], Path(sys.argv[2]).read_bytes());"
        "print(obtain(source, Path(sys.argv[3]), DownloadProgress(status_console(sys.stdout))).status)"
    )
    copy = tmp_path / "copy"
    copy.write_bytes(file.content)
    command = [sys.executable, "-c", code, file.url, str(copy), str(tmp_path / "data")]
    with ThreadPoolExecutor() as pool:
        first = pool.submit(obtain, wanted, tmp_path / "data", DownloadProgress())
        while not file.asked:  # from then on it has the lock, and the server keeps it busy
            assert not first.done()
            time.sleep(0.005)
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as second:
            assert second.stdout is not None
            told = second.stdout.readline()
            file.gate.set()
            assert second.stdout.read() == "whole\n"
        assert told == "Another process is downloading Letters: waiting …\n"
        assert first.result().status == "whole"
    assert len(file.asked) == 1
    assert visible(tmp_path / "data") == ["sets"]


def test_names_that_are_not_known_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"one of newsgroups, cifar10, glove, resnet20, but got 'mnist'"):
        fetch("mnist")


@needs("newsgroups", "cifar10", "glove", "resnet20")
@pytest.mark.parametrize("name", SETS)
def test_fetch_finds_what_is_there(name: str) -> None:
    assert fetch(name) == place(name)


class Payload:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, ("pickled-code-was-run",)


def test_a_checkpoint_with_code_in_it_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    checkpoint = tmp_path / "weights.th"
    for zipped in (True, False):
        torch.save({"state_dict": Payload()}, checkpoint, _use_new_zipfile_serialization=zipped)
        with pytest.raises(DownloadError, match=r"is not a checkpoint of weights \(UnpicklingError\)"):
            SETS["resnet20"].prepare(checkpoint, tmp_path)
    checkpoint.write_bytes(b"no pickle at all")
    with pytest.raises(DownloadError, match="is not a checkpoint of weights"):
        SETS["resnet20"].prepare(checkpoint, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["weights.th"]


@needs("resnet20")
@pytest.mark.parametrize("zipped", [True, False])
def test_a_checkpoint_of_pytorch_becomes_the_file_of_weights(tmp_path: Path, zipped: bool) -> None:
    from safetensors.torch import load_file

    weights = {f"module.{name}": value for name, value in load_file(place("resnet20")).items()}
    weights["module.bn1.num_batches_tracked"] = torch.tensor(7)
    checkpoint = tmp_path / "weights.th"
    torch.save({"state_dict": weights, "best_prec1": 91.73}, checkpoint, _use_new_zipfile_serialization=zipped)
    made = SETS["resnet20"].prepare(checkpoint, tmp_path)
    assert SETS["resnet20"].state(made).status == "whole"
