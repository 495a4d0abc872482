"""(s) The service under load: latency and throughput by clients and rows, beside the bare network in the same server."""

from __future__ import annotations

import asyncio
import http.client
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pandas as pd
from sklearn.datasets import load_wine

from benchmarks.report import Report
from calibayes.files import load, train
from calibayes.tables import frame_block

__all__ = ["WHAT", "section"]

WHAT = "milliseconds of a request and requests a second, on this machine's own network, turn by turn with the bare network"
_MODELS: dict[str, dict[str, Any]] = {
    "5 networks, one weight vector each": {"scheme": "fnn"},
    "5 Bayesian networks, 20 samples": {"scheme": "bnn", "predictive_samples": 20},
    "networks with averaged weights, as calibayes train takes them": {"scheme": "ema"},
}
_CLIENTS = (1, 8, 64)
_ROWS = (1, 1_000)
_TURNS = 5
_SECONDS = 2.0  # of a turn, at most
_REQUESTS = 4_000  # of a turn, at most
_GOALS = "goals: a single row within 1 ms of the bare network; 64 clients ≥ 5 × 1 client; p99 ≤ 3 × median up to 8 clients"


class Cell(NamedTuple):
    """One measurement."""

    path: str
    rows: int
    clients: int


class Load(NamedTuple):
    """What the clients of one cell saw in all turns."""

    seconds: list[float]  # of each request
    rates: list[float]  # requests a second, of each turn

    def told(self) -> dict[str, float]:
        p99 = statistics.quantiles(self.seconds, n=100)[98] if len(self.seconds) > 1 else self.seconds[0]
        median = statistics.median(self.seconds)
        return {"median_ms": 1e3 * median, "p99_ms": 1e3 * p99, "per_second": statistics.median(self.rates),
                "requests": len(self.seconds)}  # fmt: skip


def section(report: Report, *, quick: bool = False) -> None:
    """Measure and tell."""
    models = dict(list(_MODELS.items())[:1]) if quick else _MODELS
    turns, seconds = (1, 0.3) if quick else (_TURNS, _SECONDS)
    for name, settings in models.items():
        with TemporaryDirectory() as folder:
            path, bodies = _trained(Path(folder), settings | ({"epochs": 2} if quick else {}))
            with _running(path) as port:
                loads = _measured(port, bodies, turns, seconds)
        _tell(report, name, loads)
    report.tell(f"\n{_GOALS}")


def _trained(folder: Path, settings: dict[str, Any]) -> tuple[Path, dict[tuple[str, int], bytes]]:
    """Train a model on the wines of scikit-learn, with a category and missing cells; return it and the bodies to send."""
    wines = load_wine(as_frame=True).frame
    wines["colour"] = ["pale" if value < 4 else "deep" for value in wines.pop("color_intensity")]
    wines["grower"] = wines.pop("target").map({0: "Rossi", 1: "Bianchi", 2: "Verdi"})
    wines.loc[wines.index % 11 == 5, "alcohol"] = None
    wines = wines.sample(frac=1, random_state=0)
    wines.to_csv(folder / "wines.csv", index=False)
    model = train(folder / "wines.csv", target="grower", sets=0.9, certify="accuracy=0.9", **settings).model
    model.save(folder / "wines.model")
    many = pd.concat([wines.drop(columns="grower")] * 6)
    bodies = {}
    for rows in _ROWS:
        part = many[:rows]
        records = json.loads(part.to_json(orient="records"))
        bodies["/predict", rows] = json.dumps({"rows": records}).encode()
        inputs = load(folder / "wines.model").encode(frame_block(part)).nan_to_num(0.0)
        bodies["/bare", rows] = json.dumps(inputs.tolist()).encode()
    return folder / "wines.model", bodies


@contextmanager
def _running(model: Path) -> Iterator[int]:
    command = [sys.executable, "-m", "benchmarks.serve_app", str(model)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            port = int(process.stdout.readline())
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
            connection.request("GET", "/health")  # waits until a worker is there
            connection.getresponse().read()
            connection.close()
            yield port
        finally:
            process.terminate()


def _measured(port: int, bodies: dict[tuple[str, int], bytes], turns: int, seconds: float) -> dict[Cell, Load]:
    cells = [Cell(path, rows, clients) for clients in _CLIENTS for rows in _ROWS for path in ("/bare", "/predict")]
    loads = {cell: Load([], []) for cell in cells}
    for turn in range(turns + 1):  # the first only warms up
        for cell in cells:
            request = _request(cell.path, bodies[cell.path, cell.rows])
            took, whole = asyncio.run(_turn(port, request, cell.clients, seconds if turn else seconds / 4))
            if turn:
                loads[cell].seconds.extend(took)
                loads[cell].rates.append(len(took) / whole)
    return loads


def _request(path: str, body: bytes) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def _turn(port: int, request: bytes, clients: int, seconds: float) -> tuple[list[float], float]:
    """Let clients send a request again and again, each on its own connection; return the seconds of each, and of all."""
    connections = [await asyncio.open_connection("127.0.0.1", port, limit=1 << 24) for _ in range(clients)]
    begin = time.perf_counter()
    took: list[float] = []

    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while not took or (time.perf_counter() < begin + seconds and len(took) < _REQUESTS):
            start = time.perf_counter()
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200"):
                raise RuntimeError(f"the service answered {head[:200]!r}")
            length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.startswith(b"content-length:"))
            await reader.readexactly(length)
            took.append(time.perf_counter() - start)

    await asyncio.gather(*(client(*pair) for pair in connections))
    whole = time.perf_counter() - begin
    for _, writer in connections:
        writer.close()
    return took, whole


def _tell(report: Report, name: str, loads: dict[Cell, Load]) -> None:
    told = {cell: load.told() for cell, load in loads.items()}
    report.record[name] = {f"{cell.path}, {cell.rows} rows, {cell.clients} clients": values for cell, values in told.items()}
    report.tell(f"\n(s) {name}")
    report.tell(f"    {'rows':>6}{'clients':>9}{'bare ms':>11}{'p99':>9}{'per s':>9}{'predict ms':>14}{'p99':>9}{'per s':>9}")
    for rows in _ROWS:
        for clients in _CLIENTS:
            pair = [told[Cell(path, rows, clients)] for path in ("/bare", "/predict")]
            numbers = [f"{each['median_ms']:11.2f}{each['p99_ms']:9.2f}{each['per_second']:9.0f}" for each in pair]
            report.tell(f"    {rows:>6,}{clients:>9}{numbers[0]}   {numbers[1]}")
    _tell_goals(report, name, told)


def _tell_goals(report: Report, name: str, told: dict[Cell, dict[str, float]]) -> None:
    one = told[Cell("/predict", 1, _CLIENTS[0])]
    more = one["median_ms"] - told[Cell("/bare", 1, _CLIENTS[0])]["median_ms"]
    gain = told[Cell("/predict", 1, _CLIENTS[-1])]["per_second"] / one["per_second"]
    tails: Sequence[float] = [
        told[Cell("/predict", rows, clients)]["p99_ms"] / told[Cell("/predict", rows, clients)]["median_ms"]
        for rows in _ROWS
        for clients in _CLIENTS[:-1]
    ]
    report.record[f"{name}: goals"] = {
        "more_than_bare_ms": more,
        "gain_of_64_clients": gain,
        "worst_p99_over_median": max(tails),
    }
    report.tell(
        f"    a single row takes {more:.2f} ms more than the bare network; 64 clients get {gain:.1f} × the answers of one;"
    )
    report.tell(f"    p99 is at most {max(tails):.1f} × the median up to {_CLIENTS[-2]} clients")
