"""A lock on each trial under way, which the operating system releases when its process ends, however it ends."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["lock_owner", "lock_path", "release_abandoned", "trial_lock"]

_SUFFIX = ".claim"
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}  # what a file system without locks answers


def lock_path(folder: Path, key: str) -> Path:
    """Return the file that is locked while a trial, or a sweep of that name, is under way."""
    return folder / f".{key}{_SUFFIX}"


@contextmanager
def trial_lock(path: Path, owner: str, *, wait: bool) -> Iterator[bool]:
    """Lock a trial; yields whether it is locked, which with ``wait`` it always is.

    The file holds the owner's name until the lock is released; a process that is killed leaves it behind, unlocked, so
    that `lock_owner` tells what was under way. Where a file system has no locks, two sweeps may run the same trial.
    """
    handle = _open_locked(path, wait)
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


def lock_owner(path: Path) -> str | None:
    """Return the owner of a lock, also of one that a killed process has left behind; ``None`` if there is none."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return None


def release_abandoned(folder: Path) -> set[str]:
    """Remove the lock files of sweeps that have been killed, and return the keys of what they were running."""
    keys = set()
    for path in folder.glob(f".*{_SUFFIX}"):
        owner = lock_owner(path)
        if owner is not None and _removed(lock_path(folder, owner)) and _removed(path) and path != lock_path(folder, owner):
            keys.add(path.name.removeprefix(".").removesuffix(_SUFFIX))
    return keys


def _removed(path: Path) -> bool:
    """Remove a lock file unless a process holds it, and return whether it is gone."""
    with trial_lock(path, "", wait=False) as locked:
        return locked


def _open_locked(path: Path, wait: bool) -> int | None:
    """Return a locked open file, or ``None`` when another process holds it and ``wait`` is false.

    `filelock.FileLock` would do for a file that stays; these are removed, and on NFS it cannot tell a removed file.
    """
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            locked = _lock(handle, wait)
            if locked and _has_name(path, handle):
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)
        if not locked:
            return None


def _lock(handle: int, wait: bool) -> bool:
    from filelock import lock_descriptor

    try:
        return lock_descriptor(handle, blocking=wait)
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        return True


def _has_name(path: Path, handle: int) -> bool:
    """Return False for a file that was removed while we waited for its lock."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(path.stat(), os.fstat(handle))
    return False
