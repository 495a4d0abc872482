"""Download data sets to this machine."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from calibayes.data.data_folder import data_folder
from calibayes.data.fetching.completeness import DataSetState
from calibayes.data.fetching.download import download, sha256_of
from calibayes.data.fetching.download_progress import DownloadProgress
from calibayes.data.fetching.downloadable_sets import DataSet, data_set
from calibayes.errors import DownloadError
from calibayes.terminal import progress_console
from calibayes.wording import megabytes

__all__ = ["fetch", "obtain"]

_USABLE = ("whole", "partial")


def fetch(name: str, folder: str | Path | None = None, progress: bool | None = None) -> Path:
    """Download a data set, unless it is there, and check it.

    An interrupted download is resumed. If you have put the official archive into the folder under its own name, it is
    used instead. ``calibayes data get`` does the same from a shell.

    Args:
        name: ``"newsgroups"``, ``"cifar10"``, ``"glove"`` or ``"resnet20"``.
        folder: the folder of data sets; by default ``CALIBAYES_DATA`` or the user's cache.
        progress: show how much has arrived; by default if standard error is a terminal.

    Returns:
        The path of its file or folder.
    """
    wanted = data_set(name)
    with DownloadProgress(progress_console(progress)) as watch:
        obtain(wanted, data_folder(folder), watch)
    return data_folder(folder) / wanted.place


def obtain(wanted: DataSet, folder: Path, watch: DownloadProgress) -> DataSetState:
    """Do what `fetch` does, for any `DataSet`, and return its state."""
    from filelock import FileLock, Timeout

    place = folder / wanted.place
    state = wanted.state(place)
    if state.status in _USABLE:
        return state
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / f".{wanted.name}.lock")
        try:
            holding = lock.acquire(blocking=False)
        except Timeout:
            watch.note(f"Another process is downloading {wanted.title}: waiting …")
            holding = lock.acquire()
        with holding:
            state = wanted.state(place)  # it may have come while we waited
            if state.status not in _USABLE:
                if state.status == "damaged":
                    watch.note(f"{place}: {state.note}. It will be replaced.")
                state = _get(wanted, folder, watch)
    except DownloadError:
        raise
    except OSError as error:
        raise DownloadError(f"Cannot write to {str(folder)!r}: {error.strerror or error}.") from error
    return state


def _get(wanted: DataSet, folder: Path, watch: DownloadProgress) -> DataSetState:
    archive = folder / wanted.archive
    by_hand = archive.exists()
    if not by_hand:
        _check_room(wanted, folder)
        try:
            download(wanted.remote, archive, watch=watch)
        except DownloadError as error:
            raise DownloadError(f"{error} If you get it in another way, put it at {str(archive)!r} and try again.") from error
    elif sha256_of(archive) != wanted.remote.sha256:
        raise DownloadError(
            f"{str(archive)!r} is not the official file: its SHA-256 is not {wanted.remote.sha256}. "
            "Remove it to have it downloaded."
        )
    watch.note(f"Unpacking {archive.name} …")
    state = _unpack(wanted, archive, folder)
    if not by_hand:
        archive.unlink()
    return state


def _unpack(wanted: DataSet, archive: Path, folder: Path) -> DataSetState:
    """Unpack the data set beside its place, check it, and only then move it there."""
    prefix = f".{wanted.name}-"
    for left in folder.glob(f"{prefix}*"):  # by a process that was killed, for we have the lock
        shutil.rmtree(left, ignore_errors=True)
    scratch = Path(tempfile.mkdtemp(prefix=prefix, dir=folder))
    try:
        unpacked = wanted.prepare(archive, scratch)
        state = wanted.state(unpacked)
        if state.status != "whole":
            raise DownloadError(
                f"The data in {str(archive)!r} are {state.status}: {state.note or 'nothing of use'}. Remove it."
            )
        place = folder / wanted.place
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.exists():
            place.rename(scratch / "replaced")
        unpacked.rename(place)
        return state
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _check_room(wanted: DataSet, folder: Path) -> None:
    part = folder / f"{wanted.archive}.part"
    there = part.stat().st_size if part.exists() else 0
    needed = max((wanted.remote.size or wanted.unpacked) - there, 0) + wanted.unpacked
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise DownloadError(
            f"{wanted.title} needs {megabytes(needed)} in {str(folder)!r}, but only {megabytes(free)} are free. "
            "Free some space, or set CALIBAYES_DATA to another folder."
        )
