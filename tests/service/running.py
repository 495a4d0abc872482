"""A real `calibayes serve` on a free port of this machine, and a client of the standard library."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Answer", "Service", "serving"]

_SECONDS = 180  # several trainings may share the machine


class Answer(NamedTuple):
    """What the service answered."""

    status: int
    body: bytes
    headers: dict[str, str]

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def detail(self) -> str:
        detail = self.json["detail"]
        assert isinstance(detail, str)
        return detail


class Service:
    """A service that runs."""

    def __init__(self, process: subprocess.Popen[str], port: int, errors: Path) -> None:
        self.process, self.port, self.errors = process, port, errors

    def connect(self) -> HTTPConnection:
        return HTTPConnection("127.0.0.1", self.port, timeout=_SECONDS)

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Answer:
        connection = self.connect()
        try:
            connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            return read(connection.getresponse())
        finally:
            connection.close()

    def predict(self, rows: Any, **headers: str) -> Answer:
        return self.ask("POST", "/predict", json.dumps({"rows": rows}).encode(), Content_Type="application/json", **headers)

    def upload(self, name: str, data: bytes, content_type: str = "application/octet-stream") -> Answer:
        mark = b"a-mark-that-no-file-holds"
        head = f'Content-Disposition: form-data; name="file"; filename="{name}"\r\nContent-Type: {content_type}'.encode()
        body = b"--" + mark + b"\r\n" + head + b"\r\n\r\n" + data + b"\r\n--" + mark + b"--\r\n"
        return self.ask("POST", "/predict", body, Content_Type=f"multipart/form-data; boundary={mark.decode()}")

    def metrics(self) -> dict[str, float]:
        lines = self.ask("GET", "/metrics").body.decode().splitlines()
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))}

    def workers(self) -> set[int]:
        """The processes that answer requests; multiprocessing's own helper is none."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return {int(pid) for pid in children if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()}


def read(response: HTTPResponse) -> Answer:
    return Answer(response.status, response.read(), {name.lower(): value for name, value in response.getheaders()})


@contextmanager
def serving(model: Path, *words: str, **environment: str) -> Iterator[Service]:
    """Start a service, and stop it at the end with SIGTERM."""
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "calibayes", "serve", str(model), "--port", "0", *words],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"} | environment,
        )
        assert process.stdout is not None
        with process:
            try:
                line = process.stdout.readline()
                found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
                if found is None:
                    process.wait(timeout=60)
                    errors.seek(0)
                    raise AssertionError(f"{line!r}: {errors.read()}")
                service = Service(process, int(found[1]), Path(f"/proc/self/fd/{errors.fileno()}"))
                assert service.ask("GET", "/health").status == 200  # waits until there is a worker
                yield service
            finally:
                if process.poll() is None:
                    process.send_signal(signal.SIGTERM)
                    try:
                        process.wait(timeout=60)
                    finally:
                        process.kill()
