"""Archives whose SHA-256 has been checked, unpacked by the standard library."""

from __future__ import annotations

import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from calibayes.errors import DownloadError

__all__ = ["unpack_tar", "unpack_zip_member"]


def unpack_tar(archive: Path, target: Path) -> None:
    """Unpack a ``.tar.gz`` into a folder; members that would land outside it, and special files, are refused.

    Args:
        archive: the file.
        target: the folder; what has been written when an error is raised stays there.
    """
    with _named_errors(archive), tarfile.open(archive, "r:gz") as members:
        members.extractall(target, filter="data")


def unpack_zip_member(archive: Path, name: str, target: Path) -> Path:
    """Unpack one file of a ``.zip`` into a folder.

    Args:
        archive: the file.
        name: that of the member.
        target: the folder.

    Returns:
        The unpacked file.
    """
    with _named_errors(archive), zipfile.ZipFile(archive) as members:
        return Path(members.extract(name, target))


@contextmanager
def _named_errors(archive: Path) -> Iterator[None]:
    """Name the archive in errors: the standard library's say neither which file it was nor what to do."""
    try:
        yield
    except tarfile.FilterError as error:
        raise DownloadError(f"{str(archive)!r} was not unpacked: {error}. Remove it; it is not the official file.") from error
    except (tarfile.TarError, zipfile.BadZipFile, KeyError, EOFError, zlib.error) as error:
        raise DownloadError(f"{str(archive)!r} is damaged ({error}). Remove it and download it again.") from error
