"""A web server on this machine that serves one file, well or badly."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["Served", "served"]


class Served:
    """A file on a server, and how the server behaves; ``asked`` holds the headers of every request."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.ranges = True
        self.length = True
        self.etag: str | None = '"one"'
        self.cuts: list[int] = []  # after how many bytes the next answers break off
        self.statuses: list[int] = []  # what the next answers say instead
        self.endless = False
        self.moved = False
        self.gate = threading.Event()  # answers stop after half of their bytes until it is set
        self.gate.set()
        self.asked: list[dict[str, str]] = []
        self.url = ""

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        file: Served = self.server.file  # type: ignore[attr-defined]
        if file.moved and self.path == "/file.bin":
            self.send_response(302)
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        file.asked.append({name.lower(): value for name, value in self.headers.items()})
        if file.statuses:
            self.send_error(file.statuses.pop(0))
            return
        start, status = 0, 200
        wanted = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if wanted and file.ranges and self.headers.get("If-Range", file.etag) == file.etag:
            start, status = int(wanted[1]), 206
            if start >= len(file.content):
                self.send_error(416)
                return
        body = file.content[start:]
        self.send_response(status)
        if status == 206:
            self.send_header("Content-Range", f"bytes {start}-{len(file.content) - 1}/{len(file.content)}")
        if file.length and not file.endless:
            self.send_header("Content-Length", str(len(body)))
        if file.etag:
            self.send_header("ETag", file.etag)
        self.end_headers()
        if file.cuts:
            body = body[: file.cuts.pop(0)]
        try:
            self.wfile.write(body[: len(body) // 2])
            self.wfile.flush()
            file.gate.wait()
            self.wfile.write(body[len(body) // 2 :])
            while file.endless:
                self.wfile.write(bytes(1 << 16))
        except ConnectionError:
            pass

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def served(content: bytes) -> Iterator[Served]:
    """Serve ``content`` at ``url`` until the end of the block."""
    file = Served(content)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    server.file = file  # type: ignore[attr-defined]
    file.url = f"http://127.0.0.1:{server.server_address[1]}/file.bin"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield file
    finally:
        file.gate.set()
        file.endless = False
        server.shutdown()
        thread.join()
        server.server_close()
