"""Results on disk: whole or not at all, known by everything that determines them."""

from __future__ import annotations

import multiprocessing
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from calibayes.atomic_file import UNFINISHED
from calibayes.errors import InvalidArgumentError
from calibayes.sweeps.records import DamagedError, Failure, Record, Store
from calibayes.sweeps.trial_locks import lock_path

RECORD = Record(
    trial="module:function",
    version=1,
    settings={"seed": 0, "lam": 3.0},
    result={"nll": 0.5, "text": "λ", "list": [1, None, {"deep": True}]},
    error=None,
    started="2026-01-01T00:00:00+00:00",
    seconds=1.5,
    versions={"torch": "2"},
    machine={"cpu": "one"},
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "deep" / "runs")
    made.open()
    return made


def with_tensors(value: int) -> Record:
    return replace(RECORD, result={"probs": torch.full((2000, 10), float(value)), "nested": [{"a.b": torch.arange(3)}]})


def test_what_is_written_is_read_to_the_bit(store: Store) -> None:
    path = store.write("fnn", RECORD)
    assert path.suffix == ".json"
    assert store.read(path) == RECORD
    probs = torch.randn(5, 3)
    tensors = replace(RECORD, result={"probs": probs, "weights": {"a.b": probs[0].double()}, "seconds": 0.1})
    path = store.write("fnn", tensors)
    found = store.read(path)
    assert found is not None
    assert found.result is not None
    assert torch.equal(found.result["probs"], probs)
    assert torch.equal(found.result["weights"]["a.b"], probs[0].double())
    assert replace(found, result=None) == replace(tensors, result=None)
    assert list(store.paths()) == [path]  # it has replaced the one without tensors


def test_an_error_is_kept_with_its_traceback_whatever_letters_it_has(store: Store) -> None:
    failed = replace(RECORD, result=None, error=Failure("OSError", "no file 'caf\udce9'", "line 1\nline 2"))
    assert store.read(store.write("fnn", failed)) == failed


@pytest.mark.parametrize(
    "others",
    [
        {"settings": {"seed": 1, "lam": 3.0}},
        {"settings": {"seed": 0, "lam": 3.5}},
        {"settings": {"seed": 0}},
        {"settings": {"seed": "0", "lam": 3.0}},
        {"settings": {"seed": False, "lam": 3.0}},
        {"version": 2},
        {"trial": "module:other"},
    ],
)
def test_whatever_determines_a_result_makes_it_another_one(store: Store, others: dict[str, Any]) -> None:
    assert replace(RECORD, **others).key != RECORD.key
    store.write("fnn", RECORD)
    store.write("fnn", replace(RECORD, **others))
    assert len(list(store.paths())) == 2


def test_what_does_not_determine_a_result_makes_no_other_one() -> None:
    same = replace(RECORD, settings={"lam": 3, "seed": 0}, result=None, seconds=7.0, machine={}, versions={}, started="")
    assert same.key == RECORD.key


@pytest.mark.parametrize("record", [RECORD, with_tensors(0)])
def test_damage_is_found_wherever_it_is(store: Store, record: Record) -> None:
    path = store.write("fnn", record)
    whole = path.read_bytes()
    for place in range(0, len(whole), len(whole) // 23):
        flipped = bytearray(whole)
        flipped[place] ^= 0x10
        path.write_bytes(flipped)
        with pytest.raises(DamagedError, match=rf"{path.name} is damaged"):
            store.read(path)
    for length in (0, 7, len(whole) // 2, len(whole) - 4):
        path.write_bytes(whole[:length])
        with pytest.raises(DamagedError, match=rf"{path.name} is damaged"):
            store.read(path)
    path.write_bytes(whole)
    assert store.read(path) is not None


def test_a_result_under_another_ones_name_is_not_taken(store: Store) -> None:
    path = store.write("fnn", RECORD)
    other = path.rename(path.with_name(path.name.replace(RECORD.key, replace(RECORD, version=2).key)))
    with pytest.raises(DamagedError, match="it does not hold the result that its name says"):
        store.read(other)


def write_often(folder: Path, until: float) -> None:
    store, turn = Store(folder), 0
    while time.monotonic() < until:
        store.write("fnn", with_tensors(turn))
        turn += 1


def test_writers_at_once_never_leave_a_torn_file(store: Store) -> None:
    path = store.write("fnn", with_tensors(0))
    context = multiprocessing.get_context("fork")  # spawned ones would import torch first
    writers = [context.Process(target=write_often, args=(store.folder, time.monotonic() + 1)) for _ in range(2)]
    for writer in writers:
        writer.start()
    reads = 0
    while any(writer.is_alive() for writer in writers):
        found = store.read(path)
        assert found is not None
        assert found.result is not None
        assert bool((found.result["probs"] == found.result["probs"][0, 0]).all())
        reads += 1
    assert reads > 5
    assert [writer.exitcode for writer in writers] == [0, 0]
    assert list(store.folder.iterdir()) == [path]


def test_what_a_killed_process_was_writing_is_cleared_away_but_not_what_another_one_is(store: Store) -> None:
    old, new = (store.folder / f".fnn-{k}.safetensors-abc{UNFINISHED}" for k in (1, 2))
    claimed, others = lock_path(store.folder, "sweep-1"), store.folder / ".pre-commit-config.yaml"
    for path in (old, new, claimed, others):
        path.write_bytes(b"half")
    for path in (old, claimed, others):
        os.utime(path, (time.time() - 7200,) * 2)
    store.open()
    assert not old.exists()
    assert new.exists()
    assert claimed.exists()  # a trial may take longer than an hour
    assert others.exists()  # --out may be anybody's folder


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(InvalidArgumentError, match=r"Cannot write to '.*taken/runs': Not a directory"):
        Store(tmp_path / "taken" / "runs").open()
