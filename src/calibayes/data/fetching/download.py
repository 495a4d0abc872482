"""Download a file with a known checksum: interrupted downloads are resumed, and only complete files appear."""

from __future__ import annotations

import errno
import hashlib
import http.client
import json
import re
import socket
import ssl
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibayes.data.fetching.download_progress import DownloadProgress
from calibayes.errors import DownloadError

__all__ = ["Remote", "download", "sha256_of"]

_CHUNK = 1 << 18
_MOST = 1 << 30  # bytes of a file whose size is not known beforehand
_GONE = (400, 401, 403, 404, 405, 406, 410, 451)
_NO_HOST_OR_TRUST = (socket.gaierror, ssl.SSLCertVerificationError)
_AWAY = (errno.ECONNREFUSED, errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EADDRNOTAVAIL)


@dataclass(frozen=True)
class Remote:
    """A file on the web."""

    urls: tuple[str, ...]  # tried in turn
    sha256: str
    size: int | None = None  # in bytes, if it is known


class _PassingError(Exception):
    """A fault that another try may not meet again."""


class _LastingError(Exception):
    """A fault that every try at this address would meet."""


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def download(
    remote: Remote,
    target: Path,
    *,
    watch: DownloadProgress | None = None,
    tries: int = 6,
    timeout: float = 30.0,
    wait: float = 1.0,
) -> None:
    """Download a file to ``target``, by way of ``target.part``, which a later call resumes.

    Args:
        remote: what to download.
        target: the file, in a folder that exists.
        watch: shows the progress.
        tries: how often each address is tried when connections break.
        timeout: seconds without a byte after which a connection counts as broken.
        wait: seconds before the second try; each further wait is twice as long.
    """
    shown = DownloadProgress() if watch is None else watch
    part = target.with_name(target.name + ".part")
    reasons: list[str] = []
    for url in remote.urls:
        if reasons:
            shown.note(f"{reasons[-1]}; trying {url}")
        try:
            _from(url, remote, part, shown, tries, timeout, wait)
            part.replace(target)
            _notes(part).unlink(missing_ok=True)
        except _LastingError as fault:
            reasons.append(f"{url}: {fault}")
        except OSError as error:
            raise DownloadError(
                f"Cannot write {str(part)!r}: {error.strerror or error}. The part downloaded so far is kept for the next call."
            ) from error
        else:
            return
    raise DownloadError(f"Cannot download {'; '.join(reasons)}.")


def _from(url: str, remote: Remote, part: Path, watch: DownloadProgress, tries: int, timeout: float, wait: float) -> None:
    """Bring ``part`` to its full length from one address, and check it."""
    for left in range(tries - 1, -1, -1):
        before = _length(part)
        try:
            if before == 0 or before != remote.size:
                _transfer(url, remote, part, watch, timeout)
            digest = sha256_of(part)
            if digest == remote.sha256:
                return
            _discard(part)
            if before == 0:
                raise _LastingError(f"the file has the SHA-256 {digest}, but {remote.sha256} was expected; it was removed")
            watch.note("The part from before does not fit the file: starting again.")
            continue
        except _PassingError as fault:
            if not left:
                raise _LastingError(f"{fault}, {tries} times") from fault
            watch.note(f"{url}: {fault}; trying again")
        time.sleep(wait)
        wait = min(2 * wait, 60.0)
    raise _LastingError(f"no complete file arrived in {tries} tries")


def _transfer(url: str, remote: Remote, part: Path, watch: DownloadProgress, timeout: float) -> None:
    """Read what is still missing; every chunk is written at once, so that nothing is lost when the connection breaks."""
    there = _length(part)
    with _opened(url, part, there, timeout) as response:
        status, headers = response.status, response.headers
        if status == http.client.PARTIAL_CONTENT:
            start, total = _range(headers.get("Content-Range", ""))
            if start != there:
                _discard(part)
                raise _PassingError(f"the server sent bytes from {start} on where those from {there} on were asked for")
        else:
            there = 0
            total = _count(headers.get("Content-Length", ""))
        if remote.size is not None and total is not None and total != remote.size:
            raise _LastingError(f"the file has {total:,} bytes, but {remote.size:,} were expected: is it another file?")
        total = remote.size if total is None else total
        _notes(part).write_text(json.dumps({"url": url, "validator": _validator(headers)}))
        watch.begin_file(part.stem, total)
        with part.open("ab" if there else "wb", buffering=0) as file:
            while chunk := _read(response):
                there += len(chunk)
                if there > (_MOST if total is None else total):
                    raise _LastingError(f"the server sends more than {_MOST if total is None else total:,} bytes")
                file.write(chunk)
                watch.reached(there)
    if total is not None and there < total:
        raise _PassingError(f"the connection ended after {there:,} of {total:,} bytes")


def _opened(url: str, part: Path, there: int, timeout: float) -> Any:
    request = urllib.request.Request(url, headers={"User-Agent": "calibayes", "Accept-Encoding": "identity"})
    if there:
        request.add_header("Range", f"bytes={there}-")
        if validator := _remembered(part, url):
            request.add_header("If-Range", validator)
    try:
        return urllib.request.urlopen(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
            _discard(part)
            raise _PassingError("the file has become shorter than the part already downloaded") from error
        fault = f"the server answers {error.code} {error.reason}"
        raise (_LastingError if error.code in _GONE else _PassingError)(fault) from error
    except urllib.error.URLError as error:
        reason = error.reason
        text = (reason.strerror if isinstance(reason, OSError) else None) or str(reason)
        raise (_LastingError if _hopeless(reason) else _PassingError)(f"no connection ({text})") from error
    except (TimeoutError, ConnectionError, http.client.HTTPException) as error:
        raise _PassingError(f"no answer ({_reason(error)})") from error


def _hopeless(reason: object) -> bool:
    """Return True if another try would fail too: no such host, nobody listens, no trust, or a proxy that says no."""
    if isinstance(reason, TimeoutError):
        return False
    return not isinstance(reason, OSError) or isinstance(reason, _NO_HOST_OR_TRUST) or reason.errno in (None, *_AWAY)


def _read(response: Any) -> bytes:
    try:
        chunk: bytes = response.read1(_CHUNK)
    except (OSError, http.client.HTTPException) as error:
        raise _PassingError(f"the connection broke ({_reason(error)})") from error
    return chunk


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _range(text: str) -> tuple[int, int | None]:
    """Return start and total of ``bytes 100-199/200``."""
    unit, _, rest = text.partition(" ")
    span, _, total = rest.partition("/")
    start = span.partition("-")[0]
    if unit != "bytes" or (begin := _count(start)) is None:
        raise _LastingError(f"the server sends a part of the file without saying which (Content-Range {text!r})")
    return begin, _count(total)


def _count(text: str) -> int | None:
    """Return a number of bytes in a header; ``None`` if it is not a number."""
    return int(text) if re.fullmatch("[0-9]{1,18}", text) else None


def _validator(headers: Any) -> str:
    """Return an identifier of this version of the file: a strong ETag, or the time of its last change."""
    tag = str(headers.get("ETag", ""))
    return tag if tag and not tag.startswith("W/") else str(headers.get("Last-Modified", ""))


def _notes(part: Path) -> Path:
    return part.with_name(part.name + ".json")


def _discard(part: Path) -> None:
    part.unlink(missing_ok=True)
    _notes(part).unlink(missing_ok=True)


def _remembered(part: Path, url: str) -> str:
    try:
        notes = json.loads(_notes(part).read_text())
    except (OSError, ValueError):
        return ""
    return str(notes["validator"]) if isinstance(notes, dict) and notes.get("url") == url and "validator" in notes else ""


def _length(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
