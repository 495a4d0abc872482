"""Results on disk: whole or not at all, known by everything that determines them."""

from __future__ import annotations

import multiprocessing
import os
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from calibayes.errors import InvalidArgumentError
from calibayes.recipes.compare.store import DamagedError, Store

IDENTITY = {"seed": 0, "lam": 3.0}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "deep" / "runs")
    made.open()
    return made


def content(seed: int) -> dict[str, Any]:
    return {"probs": torch.full((2000, 10), float(seed)), "seconds": 0.5}


def read(store: Store, identity: dict[str, Any] = IDENTITY) -> dict[str, Any]:
    found = store.read("fnn", identity)
    assert isinstance(found, dict)
    return found


def test_what_is_written_is_read_to_the_bit(store: Store) -> None:
    assert store.read("fnn", IDENTITY) is None
    probs = torch.randn(5, 3)
    store.write("fnn", IDENTITY, {"probs": probs, "weights": {"a.b": probs[0].double()}, "seconds": 0.1})
    found = read(store, {"lam": 3.0, "seed": 0})
    assert torch.equal(found["probs"], probs)
    assert torch.equal(found["weights"]["a.b"], probs[0].double())
    assert found["seconds"] == 0.1


@pytest.mark.parametrize("other", [{"seed": 1, "lam": 3.0}, {"seed": 0, "lam": 3.5}, {"seed": 0}, {**IDENTITY, "epochs": 1}])
def test_another_setting_is_another_result(store: Store, other: dict[str, Any]) -> None:
    store.write("fnn", IDENTITY, content(0))
    assert store.read("fnn", other) is None
    store.write("fnn", other, content(1))
    assert read(store)["probs"][0, 0] == 0
    assert read(store, other)["probs"][0, 0] == 1


def test_damage_is_found_wherever_it_is(store: Store) -> None:
    store.write("fnn", IDENTITY, content(0))
    path = store.path("fnn", IDENTITY)
    whole = path.read_bytes()
    for place in range(0, len(whole), len(whole) // 23):
        flipped = bytearray(whole)
        flipped[place] ^= 0x10
        path.write_bytes(flipped)
        with pytest.raises(DamagedError, match=rf"{path.name} is damaged"):
            store.read("fnn", IDENTITY)
    for length in (0, 7, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(DamagedError, match=rf"{path.name} is damaged"):
            store.read("fnn", IDENTITY)
    path.write_bytes(whole)
    assert read(store)["seconds"] == 0.5


def test_a_result_under_another_ones_name_is_not_taken(store: Store) -> None:
    store.write("fnn", IDENTITY, content(0))
    other = {**IDENTITY, "seed": 1}
    store.path("fnn", IDENTITY).rename(store.path("fnn", other))
    with pytest.raises(DamagedError, match="it holds another result than its name says"):
        store.read("fnn", other)


def write_often(folder: Path, until: float) -> None:
    store, turn = Store(folder), 0
    while time.monotonic() < until:
        store.write("fnn", IDENTITY, content(turn))
        turn += 1


def test_writers_at_once_never_leave_a_torn_file(store: Store) -> None:
    store.write("fnn", IDENTITY, content(0))
    context = multiprocessing.get_context("fork")  # spawned ones would import torch first
    writers = [context.Process(target=write_often, args=(store.folder, time.monotonic() + 1)) for _ in range(2)]
    for writer in writers:
        writer.start()
    reads = 0
    while any(writer.is_alive() for writer in writers):
        probs = read(store)["probs"]
        assert bool((probs == probs[0, 0]).all())
        reads += 1
    assert reads > 5
    assert [writer.exitcode for writer in writers] == [0, 0]
    assert [path.name for path in store.folder.iterdir()] == [store.path("fnn", IDENTITY).name]


def test_what_a_killed_process_was_writing_is_cleared_away_but_not_what_another_one_is(store: Store) -> None:
    old, new = store.folder / ".fnn-1.safetensors-abc", store.folder / ".fnn-2.safetensors-def"
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (time.time() - 7200,) * 2)
    store.open()
    assert not old.exists()
    assert new.exists()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(InvalidArgumentError, match=r"Cannot write to '.*taken/runs': Not a directory"):
        Store(tmp_path / "taken" / "runs").open()
