"""Archives, unpacked with suspicion: ordinary files within the target folder, and no more of them than expected."""

from __future__ import annotations

import gzip
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

from calibayes.errors import DownloadError

__all__ = ["Bounds", "unpack_tar", "unpack_zip"]

_CHUNK = 1 << 20
_BROKEN = (
    tarfile.TarError,
    zipfile.BadZipFile,
    gzip.BadGzipFile,
    zlib.error,
    EOFError,
    OverflowError,
    RuntimeError,  # a zip that is encrypted, or compressed in an unknown way
    ValueError,
)


@dataclass(frozen=True)
class Bounds:
    """How much an archive may hold.

    Attributes:
        files: the number of files and folders.
        size: the bytes of all files together.
    """

    files: int
    size: int


def unpack_tar(archive: Path, target: Path, bounds: Bounds) -> None:
    """Unpack a ``.tar.gz`` into a new folder.

    Links, devices, absolute paths, paths with ``..``, names that occur twice, and more than the bounds allow are refused.
    What has been written by then stays: unpack into a folder that can be removed.

    Args:
        archive: the file.
        target: the folder; it must not exist.
        bounds: how much it may hold.
    """
    writer = _Writer(archive, target, bounds)
    try:
        # Headers count too: a stream is read that ends where the bounds do, however well it was compressed.
        with gzip.open(archive) as unzipped:
            stream: Any = _Bounded(unzipped, writer, bounds.size + 4096 * (bounds.files + 16))
            with tarfile.open(fileobj=stream, mode="r|") as members:
                for member in members:
                    if member.isdir():
                        writer.folder(member.name)
                    elif member.isreg():
                        content = members.extractfile(member)
                        if content is None:
                            raise writer.refusal(f"{member.name!r} has no content")
                        writer.file(member.name, content)
                    else:
                        raise writer.refusal(f"{member.name!r} is neither a file nor a folder")
    except _BROKEN as error:
        raise writer.broken(error) from error


def unpack_zip(archive: Path, target: Path, bounds: Bounds, only: Container[str] | None = None) -> None:
    """Unpack a ``.zip`` into a new folder; what is refused is that of `unpack_tar`, and encrypted files.

    Args:
        archive: the file.
        target: the folder; it must not exist.
        bounds: how much it may hold.
        only: the names of files to unpack; by default all.
    """
    writer = _Writer(archive, target, bounds)
    try:
        with zipfile.ZipFile(archive) as members:
            for member in members.infolist():
                if only is not None and member.filename not in only:
                    continue
                mode = member.external_attr >> 16
                if member.is_dir():
                    writer.folder(member.filename)
                elif stat.S_IFMT(mode) in (0, stat.S_IFREG):
                    with members.open(member) as content:
                        writer.file(member.filename, content)
                else:
                    raise writer.refusal(f"{member.filename!r} is neither a file nor a folder")
    except _BROKEN as error:
        raise writer.broken(error) from error


class _Writer:
    """Makes files and folders within one folder, and counts them."""

    def __init__(self, archive: Path, target: Path, bounds: Bounds) -> None:
        self._archive, self._target, self._bounds = archive, target, bounds
        self._files = self._size = 0
        target.mkdir(parents=True)

    def refusal(self, why: str) -> DownloadError:
        """The error for an archive that holds what it should not."""
        return DownloadError(f"{str(self._archive)!r} is not unpacked: {why}. Remove it; it is not the official file.")

    def broken(self, error: Exception) -> DownloadError:
        """The error for an archive that cannot be read."""
        return DownloadError(f"{str(self._archive)!r} is not a whole archive ({error}). Remove it and get it again.")

    def folder(self, name: str) -> None:
        """Make a folder; it may be there."""
        path = self._place(name)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise self.refusal(f"{name!r} is a file and a folder") from None

    def file(self, name: str, content: IO[bytes]) -> None:
        """Write a file that is not there yet."""
        path = self._place(name)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as file:
                while chunk := content.read(_CHUNK):
                    self._size += len(chunk)
                    if self._size > self._bounds.size:
                        raise self.refusal(f"its files have more than {self._bounds.size:,} bytes")
                    file.write(chunk)
        except (FileExistsError, NotADirectoryError):
            raise self.refusal(f"{name!r} occurs twice") from None

    def _place(self, name: str) -> Path:
        self._files += 1
        if self._files > self._bounds.files:
            raise self.refusal(f"it holds more than {self._bounds.files:,} files")
        path = PurePosixPath(name)
        if not name or path.is_absolute() or ".." in path.parts or any(sign in name for sign in "\\:\0"):
            raise self.refusal(f"the name {name!r} leads out of the folder")
        return self._target / path


class _Bounded:
    """A stream that may be read up to a bound."""

    def __init__(self, stream: gzip.GzipFile, writer: _Writer, bound: int) -> None:
        self._stream, self._writer, self._left = stream, writer, bound

    def read(self, size: int) -> bytes:
        """The next bytes."""
        chunk = self._stream.read(size)
        self._left -= len(chunk)
        if self._left < 0:
            raise self._writer.refusal("it unpacks to more than it should")
        return chunk
