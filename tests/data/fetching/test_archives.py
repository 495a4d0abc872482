"""Archives that hold what they should, and archives that try to get out, to fill the disk, or to be something else."""

from __future__ import annotations

import gzip
import io
import stat
import struct
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from calibayes.data.fetching.archives import Bounds, unpack_tar, unpack_zip
from calibayes.errors import DownloadError

BOUNDS = Bounds(files=5, size=1000)


def entry(name: str, content: bytes = b"text", kind: bytes = tarfile.REGTYPE, link: str = "") -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    info.size = len(content) if kind == tarfile.REGTYPE else 0
    return info, content


def tar(path: Path, *entries: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for info, content in entries:
            archive.addfile(info, io.BytesIO(content))
    return path


def zipped(path: Path, *entries: tuple[str, bytes], mode: int = stat.S_IFREG | 0o644) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries:
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            archive.writestr(info, content, zipfile.ZIP_DEFLATED)
    return path


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_tar_is_unpacked_with_its_folders(tmp_path: Path) -> None:
    archive = tar(
        tmp_path / "a.tar.gz", entry("group", kind=tarfile.DIRTYPE), entry("group/1", b"one"), entry("./other/2", b"")
    )
    unpack_tar(archive, tmp_path / "out", BOUNDS)
    assert everything(tmp_path / "out") == {"group/1": b"one", "other/2": b""}


def test_of_a_zip_the_named_files_are_unpacked(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "a.zip", ("big.txt", bytes(10_000)), ("small.txt", b"one"), ("in/it.txt", b"two"))
    unpack_zip(archive, tmp_path / "out", BOUNDS, only=("small.txt", "in/it.txt"))
    assert everything(tmp_path / "out") == {"small.txt": b"one", "in/it.txt": b"two"}


NAMES = ["/etc/evil", "../evil", "in/../../evil", "..", "in\\..\\..\\evil", "C:/evil", ""]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_leads_out_is_refused(tmp_path: Path, name: str) -> None:
    info, content = entry("place")
    info.name = name
    with pytest.raises(DownloadError, match="leads out of the folder"):
        unpack_tar(tar(tmp_path / "a.tar.gz", (info, content)), tmp_path / "in" / "out", BOUNDS)
    if name:  # there is no zip file with an empty name
        with pytest.raises(DownloadError, match="leads out of the folder"):
            unpack_zip(zipped(tmp_path / "a.zip", (name, b"text")), tmp_path / "in" / "other", BOUNDS)
    assert not list(tmp_path.rglob("*evil*"))


@pytest.mark.parametrize(
    ("kind", "link"),
    [
        (tarfile.SYMTYPE, "/etc/passwd"),
        (tarfile.SYMTYPE, "inside"),
        (tarfile.LNKTYPE, "../../secret"),
        (tarfile.CHRTYPE, ""),
        (tarfile.BLKTYPE, ""),
        (tarfile.FIFOTYPE, ""),
    ],
    ids=["symbolic link out", "symbolic link", "hard link", "character device", "block device", "pipe"],
)
def test_only_files_and_folders_are_made(tmp_path: Path, kind: bytes, link: str) -> None:
    archive = tar(tmp_path / "a.tar.gz", entry("thing", kind=kind, link=link), entry("thing/file"))
    with pytest.raises(DownloadError, match="'thing' is neither a file nor a folder"):
        unpack_tar(archive, tmp_path / "out", BOUNDS)
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFCHR, stat.S_IFIFO])
def test_a_zip_may_hold_files_and_folders_only(tmp_path: Path, kind: int) -> None:
    with pytest.raises(DownloadError, match="'thing' is neither a file nor a folder"):
        unpack_zip(zipped(tmp_path / "a.zip", ("thing", b"/etc"), mode=kind | 0o777), tmp_path / "out", BOUNDS)


@pytest.mark.parametrize(
    "entries",
    [
        [entry("same"), entry("same")],
        [entry("same"), entry("same/inside")],
        [entry("same"), entry("same", kind=tarfile.DIRTYPE)],
    ],
    ids=["two files", "a file in a file", "a file and a folder"],
)
def test_a_name_that_occurs_twice_is_refused(tmp_path: Path, entries: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    with pytest.raises(DownloadError, match=r"'same.*(twice|a file and a folder)"):
        unpack_tar(tar(tmp_path / "a.tar.gz", *entries), tmp_path / "out", BOUNDS)


def test_too_many_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="more than 5 files"):
        unpack_tar(tar(tmp_path / "a.tar.gz", *(entry(str(k)) for k in range(6))), tmp_path / "out", BOUNDS)
    with pytest.raises(DownloadError, match="more than 5 files"):
        unpack_zip(zipped(tmp_path / "a.zip", *((str(k), b"") for k in range(6))), tmp_path / "other", BOUNDS)


def test_a_bomb_does_not_go_off(tmp_path: Path) -> None:
    bomb = bytes(50_000_000)  # 50 kB when packed
    with pytest.raises(DownloadError, match=r"more than 1,000 bytes|more than it should"):
        unpack_tar(tar(tmp_path / "a.tar.gz", entry("bomb", bomb)), tmp_path / "out", BOUNDS)
    with pytest.raises(DownloadError, match=r"more than 1,000 bytes"):
        unpack_zip(zipped(tmp_path / "a.zip", ("bomb", bomb)), tmp_path / "other", BOUNDS)
    assert sum(path.stat().st_size for path in tmp_path.rglob("bomb")) <= 2000


def test_a_bomb_in_a_header_does_not_go_off_either(tmp_path: Path) -> None:
    info = tarfile.TarInfo("header")
    info.type, info.size = tarfile.XHDTYPE, 50_000_000
    archive = tmp_path / "a.tar.gz"
    archive.write_bytes(gzip.compress(info.tobuf() + bytes(50_000_000)))
    tracemalloc.start()
    with pytest.raises(DownloadError, match="unpacks to more than it should"):
        unpack_tar(archive, tmp_path / "out", BOUNDS)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5_000_000


def encrypted(path: Path) -> Path:
    """A zip whose file is marked as encrypted, in both places that say so."""
    content = bytearray(zipped(path, ("secret.txt", b"text")).read_bytes())
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        struct.pack_into("<H", content, content.index(signature) + offset, 1)
    path.write_bytes(content)
    return path


def torn(path: Path, make: Callable[[Path], Path]) -> Path:
    make(path).write_bytes(path.read_bytes()[:-30])
    return path


def whole_tar(path: Path) -> Path:
    return tar(path, entry("a", bytes(range(256)) * 3))


def whole_zip(path: Path) -> Path:
    return zipped(path, ("a", bytes(range(256)) * 3))


def test_what_is_no_whole_archive_has_a_named_error(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_bytes(b"<html>not found</html>")
    for number, archive in enumerate((plain, torn(tmp_path / "torn.tar.gz", whole_tar))):
        with pytest.raises(DownloadError, match="is not a whole archive"):
            unpack_tar(archive, tmp_path / f"tar{number}", BOUNDS)
    damaged = whole_zip(tmp_path / "damaged.zip")
    content = bytearray(damaged.read_bytes())
    content[60] ^= 0xFF  # within the compressed bytes
    damaged.write_bytes(content)
    archives = (plain, torn(tmp_path / "torn.zip", whole_zip), encrypted(tmp_path / "secret.zip"), damaged)
    for number, archive in enumerate(archives):
        with pytest.raises(DownloadError, match="is not a whole archive"):
            unpack_zip(archive, tmp_path / f"zip{number}", BOUNDS)
