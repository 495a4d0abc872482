"""Archives that hold what they should, and archives that try to get out or are damaged."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from calibayes.data.fetching.downloadable_sets import unpack_tar, unpack_zip_member
from calibayes.errors import DownloadError


def entry(name: str, content: bytes = b"text", kind: bytes = tarfile.REGTYPE, link: str = "") -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    info.size = len(content) if kind == tarfile.REGTYPE else 0
    return info, content


def write_tar(path: Path, *entries: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for info, content in entries:
            archive.addfile(info, io.BytesIO(content))
    return path


def write_zip(path: Path, *entries: tuple[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return path


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_tar_is_unpacked_with_its_folders(tmp_path: Path) -> None:
    archive = write_tar(
        tmp_path / "a.tar.gz", entry("group", kind=tarfile.DIRTYPE), entry("group/1", b"one"), entry("./other/2", b"")
    )
    unpack_tar(archive, tmp_path / "out")
    assert files_in(tmp_path / "out") == {"group/1": b"one", "other/2": b""}


def test_of_a_zip_the_named_file_is_unpacked(tmp_path: Path) -> None:
    archive = write_zip(tmp_path / "a.zip", ("big.txt", bytes(10_000)), ("in/it.txt", b"two"))
    assert unpack_zip_member(archive, "in/it.txt", tmp_path / "out").read_bytes() == b"two"
    assert files_in(tmp_path / "out") == {"in/it.txt": b"two"}


@pytest.mark.parametrize(
    "member",
    [
        entry("../evil"),
        entry("in/../../evil"),
        entry("link", kind=tarfile.SYMTYPE, link="/etc/passwd"),
        entry("link", kind=tarfile.SYMTYPE, link="../.."),
        entry("link", kind=tarfile.LNKTYPE, link="../../secret"),
        entry("device", kind=tarfile.CHRTYPE),
        entry("pipe", kind=tarfile.FIFOTYPE),
    ],
    ids=["parent", "parent of a folder", "absolute link", "relative link", "hard link", "device", "pipe"],
)
def test_nothing_gets_out_of_the_folder(tmp_path: Path, member: tuple[tarfile.TarInfo, bytes]) -> None:
    archive = write_tar(tmp_path / "a.tar.gz", member)
    with pytest.raises(DownloadError, match=r"a\.tar\.gz' was not unpacked: .* it is not the official file"):
        unpack_tar(archive, tmp_path / "in" / "out")
    assert [path for path in tmp_path.rglob("*") if not path.is_dir()] == [archive]


def truncated(path: Path, write: Callable[[Path], Path]) -> Path:
    content = write(path).read_bytes()
    path.write_bytes(content[: len(content) // 2])
    return path


def whole_tar(path: Path) -> Path:
    return write_tar(path, entry("a", bytes(range(256)) * 3))


def whole_zip(path: Path) -> Path:
    return write_zip(path, ("a", bytes(range(256)) * 3))


def test_a_damaged_archive_has_a_named_error(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_bytes(b"<html>not found</html>")
    for archive in (plain, truncated(tmp_path / "truncated.tar.gz", whole_tar)):
        with pytest.raises(DownloadError, match="is damaged"):
            unpack_tar(archive, tmp_path / "out")
    altered = whole_zip(tmp_path / "altered.zip")
    content = bytearray(altered.read_bytes())
    content[60] ^= 0xFF  # within the compressed bytes
    altered.write_bytes(content)
    for archive in (plain, truncated(tmp_path / "truncated.zip", whole_zip), altered):
        with pytest.raises(DownloadError, match="is damaged"):
            unpack_zip_member(archive, "a", tmp_path / "out")
    with pytest.raises(DownloadError, match=r"is damaged.*no item named 'b'"):
        unpack_zip_member(whole_zip(tmp_path / "other.zip"), "b", tmp_path / "out")
