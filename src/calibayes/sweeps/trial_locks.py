"""A lock on each running trial, which the operating system releases when its process ends, however it ends."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["lock_owner", "lock_path", "release_abandoned", "trial_lock"]

_SUFFIX = ".claim"
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}  # errors of a file system without locks


def lock_path(folder: Path, key: str) -> Path:
    """Return the file that is locked while a trial, or a sweep of that name, is running."""
    return folder / f".{key}{_SUFFIX}"


@contextmanager
def trial_lock(path: Path, owner: str, *, wait: bool) -> Iterator[bool]:
    """Lock a trial, and yield True if that succeeded, which with ``wait`` it always does.

    The file contains the owner's name until the lock is released; a process that is killed leaves it behind, unlocked, so
    that `lock_owner` shows what was running. On a file system without locks, two sweeps may run the same trial.
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
        # Remove the name before the lock, so that a process that waited for this file sees that it is gone.
        path.unlink(missing_ok=True)
        os.close(handle)


def lock_owner(path: Path) -> str | None:
    """Return the owner of a lock, including one that a killed process left behind; ``None`` if it is not locked."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return None


def release_abandoned(folder: Path) -> set[str]:
    """Remove the lock files of killed sweeps, and return the keys of the trials they were running."""
    keys = set()
    for path in folder.glob(f".*{_SUFFIX}"):
        owner = lock_owner(path)
        if owner is not None and _removed(lock_path(folder, owner)) and _removed(path) and path != lock_path(folder, owner):
            keys.add(path.name.removeprefix(".").removesuffix(_SUFFIX))
    return keys


def _removed(path: Path) -> bool:
    """Remove a lock file unless a process holds it, and return True if it is gone."""
    with trial_lock(path, "", wait=False) as locked:
        return locked


def _open_locked(path: Path, wait: bool) -> int | None:
    """Return a locked open file, or ``None`` when another process holds it and ``wait`` is false.

    `filelock.FileLock` would do for a file that stays; these are removed, and on NFS it cannot detect a removed file.
    """
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            locked = _lock(handle, wait)
            with contextlib.suppress(FileNotFoundError):  # removed while we waited for its lock
                if locked and os.path.samestat(path.stat(), os.fstat(handle)):
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
