"""A small data set: a folder with the files a and b."""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path

from calibayes.data.fetching import DataSet, DataSetState
from calibayes.data.fetching.download import Remote
from calibayes.data.fetching.downloadable_sets import unpack_tar

__all__ = ["archive", "letters"]


def archive(**files: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as made:
        for name, content in files.items():
            info = tarfile.TarInfo(f"letters/{name}")
            info.size = len(content)
            made.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def letters_state(path: Path) -> DataSetState:
    if not path.is_dir():
        return DataSetState("missing", "")
    found = sorted(each.name for each in path.iterdir())
    return DataSetState("whole", "its letters") if found == ["a", "b"] else DataSetState("damaged", f"it has {found}")


def letters_made(source: Path, scratch: Path) -> Path:
    unpack_tar(source, scratch / "unpacked")
    return scratch / "unpacked" / "letters"


def letters(url: str, content: bytes) -> DataSet:
    """The data set in an archive at an address."""
    return DataSet(
        name="letters",
        title="Letters",
        what="two letters",
        licence="none",
        archive="letters.tar.gz",
        remote=Remote((url,), hashlib.sha256(content).hexdigest(), len(content)),
        place="sets/letters",
        unpacked=10,
        prepare=letters_made,
        state=letters_state,
    )
