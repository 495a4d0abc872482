"""Predictions in shards: files in a folder beside the output, each written once, so that an interrupted run can continue."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, final

from filelock import FileLock, Timeout

from calibayes.errors import InvalidArgumentError
from calibayes.files.block_prediction import PredictedBlock
from calibayes.files.model import Model
from calibayes.files.prediction_notes import BlockNotes
from calibayes.files.read_rows import labelled_files
from calibayes.sweeps.results_folder import prepare, versions, write_json, write_whole
from calibayes.tables.formats import check_regular, named_errors
from calibayes.wording import joined, shown_path

__all__ = ["SHARD_BLOCKS", "ShardFolder", "manifest"]

SHARD_BLOCKS = 8  # blocks of rows in a shard
_MANIFEST, _LOCK, _SHARDS = "manifest.json", ".lock", "shard-*"


def manifest(model: Model, source: Path, options: Mapping[str, Any], costs: Path | None) -> dict[str, Any]:
    """Return all that the shards of a prediction depend on: a run with the same may continue with them.

    Of a folder, the names, sizes and times of its files are looked at, not what they hold.
    """
    return {
        "model": model.digest(),
        "input": _digest(source),
        "options": {**options, "costs": None if costs is None else _digest(costs)},
        "versions": versions(),
        "blocks of a shard": SHARD_BLOCKS,
    }


def _digest(path: Path) -> str:
    if not path.is_dir():
        check_regular(path)
        with named_errors(path), path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    found = [(str(file), label, file.stat()) for file, label in labelled_files(path)]
    listing = [[name, label, about.st_size, about.st_mtime_ns] for name, label, about in found]
    return hashlib.sha256(json.dumps(listing).encode()).hexdigest()


@final
class ShardFolder:
    """The shards of an output file."""

    def __init__(self, out: Path) -> None:
        self.path = out.with_name(f"{out.name}.shards")

    @contextmanager
    def opened(self, wanted: Mapping[str, Any], say: Callable[[str], None]) -> Iterator[None]:
        """Lock the folder, and discard the shards in it if they were made from anything else than a manifest says."""
        prepare(self.path)
        try:
            with FileLock(self.path / _LOCK, timeout=0):
                self._discard_others(json.loads(json.dumps(wanted)), say)
                try:
                    yield
                finally:
                    if not any(self.path.glob(_SHARDS)):
                        self.remove()
        except Timeout:
            raise InvalidArgumentError(
                f"Another process is predicting into {shown_path(self.path)}. Wait for it, or choose another --out."
            ) from None

    def _discard_others(self, wanted: dict[str, Any], say: Callable[[str], None]) -> None:
        there: dict[str, Any] = {}
        with suppress(OSError, ValueError):
            there = json.loads((self.path / _MANIFEST).read_text(encoding="utf-8"))
        if there == wanted:
            return
        changed = [f"the {name}" for name in wanted if there.get(name) != wanted[name]]
        if any(self.path.glob(_SHARDS)):
            say(f"Shards from before are discarded: {joined(changed)} changed since. Everything is predicted again.")
        self._clear()
        write_json(self.path / _MANIFEST, wanted)

    def _clear(self) -> None:
        for file in (self.path / _MANIFEST, *self.path.glob(_SHARDS)):
            file.unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove the shards, and the folder if nothing else is in it."""
        self._clear()
        (self.path / _LOCK).unlink(missing_ok=True)
        with suppress(OSError):
            self.path.rmdir()

    def write(self, number: int, blocks: list[PredictedBlock]) -> None:
        """Write a shard, complete or not at all."""
        parts = [{**asdict(block), "content": len(block.content)} for block in blocks]
        body = b"".join(block.content for block in blocks)
        head = {"sha256": hashlib.sha256(body).hexdigest(), "blocks": parts}
        write_whole(self._file(number), json.dumps(head).encode() + b"\n" + body)

    def read(self, number: int) -> list[PredictedBlock] | None:
        """Return the blocks of a shard; None if it is missing or damaged."""
        try:
            line, _, body = self._file(number).read_bytes().partition(b"\n")
            head = json.loads(line)
            if head["sha256"] != hashlib.sha256(body).hexdigest():
                return None
        except (OSError, ValueError, KeyError, TypeError):
            return None
        blocks, begin = [], 0
        for part in head["blocks"]:
            content = body[begin : begin + part["content"]]
            begin += len(content)
            about = {**part, "content": content, "names": tuple(part["names"]), "notes": BlockNotes(**part["notes"])}
            blocks.append(PredictedBlock(**about))
        return blocks

    def _file(self, number: int) -> Path:
        return self.path / f"shard-{number:06}"
