"""Who is doing what: a lock on each trial under way, which the kernel releases when its process ends, however it ends."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # a system without these locks: two sweeps in one folder may do the same trial
    fcntl = None  # type: ignore[assignment]

__all__ = ["abandoned", "claim", "claim_path", "held_by"]

_SUFFIX = ".claim"
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}  # what a file system without locks answers


def claim_path(folder: Path, key: str) -> Path:
    """The file that is locked while a trial, or a sweep of that name, is under way."""
    return folder / f".{key}{_SUFFIX}"


@contextmanager
def claim(path: Path, owner: str, *, wait: bool) -> Iterator[bool]:
    """Claim a trial; whether that was possible is told, and it always is with ``wait``.

    The file holds the owner's name until the claim is given up; a process that is killed leaves it behind, unlocked, so
    that `held_by` tells what was under way.
    """
    handle = _locked(path, wait)
    if handle is None:
        yield False
        return
    try:
        os.ftruncate(handle, 0)
        os.pwrite(handle, owner.encode(), 0)
        yield True
    finally:
        # First the name, then the lock: whoever has waited for this file sees that it is not the one with the name.
        path.unlink(missing_ok=True)
        os.close(handle)


def held_by(path: Path) -> str | None:
    """The owner of a claim, also of one that a killed process has left behind; ``None`` if there is no claim."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return None


def abandoned(folder: Path) -> set[str]:
    """What was under way in sweeps that have been killed; their claims are taken away."""
    found = set()
    for path in folder.glob(f".*{_SUFFIX}"):
        owner = held_by(path)
        if owner is not None and _is_free(claim_path(folder, owner)) and _is_free(path) and path != claim_path(folder, owner):
            found.add(path.name.removeprefix(".").removesuffix(_SUFFIX))
    return found


def _is_free(path: Path) -> bool:
    """Whether nobody holds this claim; if so, it is taken away."""
    with claim(path, "", wait=False) as ours:
        return ours


def _locked(path: Path, wait: bool) -> int | None:
    """A lock on the file that has this name, as an open file; ``None`` when another has it and ``wait`` is false."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _lock(handle, wait)
            if _same(path, handle):
                return handle
        except BlockingIOError:
            os.close(handle)
            return None
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # it was taken away while we waited


def _lock(handle: int, wait: bool) -> None:
    if fcntl is None:
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise


def _same(path: Path, handle: int) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(path.stat(), os.fstat(handle))
    return False
