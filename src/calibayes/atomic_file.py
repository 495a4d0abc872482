"""Files that appear when they are complete."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["UNFINISHED", "atomic_file"]

UNFINISHED = ".calibayes-part"  # the suffix of a file that is being written


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path for a file that is moved to ``path`` at the end, or removed if an error is raised.

    Examples:
        >>> folder = Path(tempfile.mkdtemp())
        >>> with atomic_file(folder / "numbers.txt") as unfinished:
        ...     _ = unfinished.write_text("1 2 3")
        ...     (folder / "numbers.txt").exists()
        False
        >>> [file.name for file in folder.iterdir()]
        ['numbers.txt']
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}-", suffix=UNFINISHED)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        temporary.chmod(0o644)
        temporary.replace(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    finally:
        temporary.unlink(missing_ok=True)
