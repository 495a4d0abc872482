"""Downloads from a real server on this machine that breaks off, changes its mind, or lies."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.data.fetching.server import Served

from calibayes.data.fetching.download import Remote, download
from calibayes.errors import DownloadError


def remote(file: Served, **changes: object) -> Remote:
    settings: dict[str, object] = {"urls": (file.url,), "sha256": file.sha256, "size": len(file.content)}
    return Remote(**{**settings, **changes})  # type: ignore[arg-type]


def get(file: Served, target: Path, tries: int = 6, timeout: float = 10.0, **changes: object) -> None:
    download(remote(file, **changes), target, tries=tries, timeout=timeout, wait=0.0)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "file.bin"


@pytest.fixture
def part(tmp_path: Path) -> Path:
    return tmp_path / "file.bin.part"


def check_whole(file: Served, target: Path) -> None:
    assert target.read_bytes() == file.content
    assert [path.name for path in target.parent.iterdir()] == [target.name]  # nothing is left beside it


def test_a_whole_download(file: Served, target: Path) -> None:
    get(file, target)
    check_whole(file, target)
    assert len(file.asked) == 1


@pytest.mark.parametrize("size", [None, 300_000])
@pytest.mark.parametrize("length", [True, False])
def test_the_size_need_not_be_known(file: Served, target: Path, size: int | None, length: bool) -> None:
    file.length = length
    get(file, target, size=size)
    check_whole(file, target)


def test_it_goes_on_where_it_was_cut_off(file: Served, target: Path) -> None:
    file.cuts = [100_000, 50_000]
    get(file, target)
    check_whole(file, target)
    assert [asked.get("range") for asked in file.asked] == [None, "bytes=100000-", "bytes=150000-"]
    assert [asked.get("if-range") for asked in file.asked] == [None, '"one"', '"one"']


def test_a_later_call_goes_on_too(file: Served, target: Path, part: Path) -> None:
    file.cuts = [100_000]
    with pytest.raises(DownloadError, match=r"ended after 100,000 of 300,000 bytes, 1 times"):
        get(file, target, tries=1)
    assert not target.exists()
    assert part.read_bytes() == file.content[:100_000]
    get(file, target)
    check_whole(file, target)
    assert file.asked[-1]["range"] == "bytes=100000-"


def test_what_has_changed_meanwhile_is_fetched_anew(file: Served, target: Path) -> None:
    file.cuts = [100_000]
    with pytest.raises(DownloadError):
        get(file, target, tries=1)
    file.content, file.etag = file.content[::-1], '"two"'
    get(file, target)
    check_whole(file, target)
    assert file.asked[-1]["if-range"] == '"one"'


def test_a_server_without_ranges_sends_all_again(file: Served, target: Path) -> None:
    file.ranges, file.cuts = False, [100_000]
    get(file, target)
    check_whole(file, target)
    assert len(file.asked) == 2


def test_a_part_that_does_not_fit_is_thrown_away(file: Served, target: Path, part: Path) -> None:
    part.write_bytes(bytes(1000))
    get(file, target)
    check_whole(file, target)
    assert [asked.get("range") for asked in file.asked] == ["bytes=1000-", None]


@pytest.mark.parametrize("length", [300_000, 300_001])
def test_a_part_that_is_long_enough_is_only_checked(file: Served, target: Path, part: Path, length: int) -> None:
    part.write_bytes((file.content + b"x")[:length])
    get(file, target)
    check_whole(file, target)
    assert len(file.asked) == (0 if length == 300_000 else 2)


def test_the_number_of_tries_is_bounded_and_what_came_is_kept(file: Served, target: Path, part: Path) -> None:
    file.cuts = [1000] * 10
    with pytest.raises(DownloadError, match=r"4,000 of 300,000 bytes, 4 times"):
        get(file, target, tries=4)
    assert part.stat().st_size == 4000
    assert len(file.asked) == 4


def test_a_wrong_checksum_leaves_nothing(file: Served, target: Path) -> None:
    with pytest.raises(DownloadError, match=f"has the SHA-256 {file.sha256}, but {'0' * 64} was expected"):
        get(file, target, sha256="0" * 64)
    assert list(target.parent.iterdir()) == []
    assert len(file.asked) == 1


def test_a_wrong_size_is_found_before_anything_is_read(file: Served, target: Path, part: Path) -> None:
    with pytest.raises(DownloadError, match=r"the file has 300,000 bytes, but 300,001 were expected"):
        get(file, target, size=300_001)
    assert not part.exists()


def test_no_more_is_read_than_expected(file: Served, target: Path, part: Path) -> None:
    file.endless = True
    with pytest.raises(DownloadError, match=r"sends more than 300,000 bytes"):
        get(file, target)
    assert part.stat().st_size <= 300_000


@pytest.mark.parametrize("status", [404, 403, 410])
def test_a_file_that_is_gone_is_not_asked_for_again(file: Served, target: Path, status: int) -> None:
    file.statuses = [status] * 9
    with pytest.raises(DownloadError, match=f"the server answers {status}"):
        get(file, target)
    assert len(file.asked) == 1


def test_a_server_that_is_busy_is_asked_again(file: Served, target: Path) -> None:
    file.statuses = [503, 500, 429]
    get(file, target)
    check_whole(file, target)


def test_another_address_is_tried(file: Served, target: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # bound, but nobody listens
        port = closed.getsockname()[1]
        get(file, target, urls=(f"http://127.0.0.1:{port}/file.bin", file.url))
        check_whole(file, target)
        with pytest.raises(DownloadError, match=r"no connection \(Connection refused\)\.$"):
            get(file, target.with_name("other.bin"), urls=(f"http://127.0.0.1:{port}/file.bin",))


def test_a_redirection_is_followed_with_the_range(file: Served, target: Path) -> None:
    file.moved, file.cuts = True, [100_000]
    get(file, target)
    check_whole(file, target)
    assert file.asked[-1]["range"] == "bytes=100000-"


def test_a_server_that_falls_silent_is_left_after_the_timeout(file: Served, target: Path, part: Path) -> None:
    file.gate.clear()
    with pytest.raises(DownloadError, match="the connection broke"):
        get(file, target, tries=1, timeout=1.0)
    assert part.stat().st_size == 150_000
    file.gate.set()
    get(file, target)
    check_whole(file, target)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no disk that is always full")
def test_a_full_disk_is_one_line(file: Served, target: Path, part: Path) -> None:
    part.symlink_to("/dev/full")
    with pytest.raises(DownloadError, match=r"Cannot write .*file\.bin\.part': No space left on device\.") as caught:
        get(file, target)
    assert "\n" not in str(caught.value)
    assert not target.exists()


def test_killed_at_any_moment_it_can_go_on(file: Served, target: Path, part: Path) -> None:
    file.gate.clear()
    code = (
        "import sys; from pathlib import Path; from calibayes.data.fetching.download import Remote, download;"
        "download(Remote((sys.argv[1],), sys.argv[2], 300_000), Path(sys.argv[3]))"
    )
    process = subprocess.Popen([sys.executable, "-c", code, file.url, file.sha256, str(target)])
    while not (part.exists() and part.stat().st_size == 150_000):
        assert process.poll() is None
        time.sleep(0.005)
    process.kill()
    process.wait()
    assert not target.exists()
    file.gate.set()
    get(file, target)
    check_whole(file, target)
    assert file.asked[-1]["range"] == "bytes=150000-"
