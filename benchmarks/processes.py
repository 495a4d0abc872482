"""(e) What several processes send each other in a step of `calibayes.fit`, and what that costs."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

import calibayes as cb
from benchmarks.report import Report
from benchmarks.training_step import NETWORKS

__all__ = ["SCHEMES", "measure", "section"]

SCHEMES = {"FNN": (0.0, 0.0), "CA-FNN": (10.0, 0.0), "BNN": (0.0, 0.1), "CA-BNN": (10.0, 0.1)}
_BATCH, _STEPS, _PROCESSES = 128, 12, (1, 2)


def section(report: Report) -> None:
    """Measure and tell."""
    tell = report.tell
    tell(f"\n(e) fit in processes of one thread each, global batch {_BATCH}: time of a step, and what a process sends in it")
    for network in NETWORKS:
        found = {count: measure(network, count) for count in _PROCESSES}
        report.record[f"processes: {network}"] = found
        tell(f"  {network}")
        tell(
            f"    {'':<8}{'1 process':>12}{'2 processes':>14}{'ratio':>8}{'messages':>10}{'bytes':>14}{'besides gradients':>19}"
        )
        for scheme in SCHEMES:
            alone, pair = (found[count][scheme] for count in _PROCESSES)
            times = (
                f"{alone['seconds'] * 1e3:9.1f} ms{pair['seconds'] * 1e3:11.1f} ms{pair['seconds'] / alone['seconds']:7.2f}x"
            )
            besides = pair["bytes"] - pair["gradient bytes"]
            tell(f"    {scheme:<8}{times}{pair['messages']:10.0f}{pair['bytes']:14,.0f}{besides:19,.0f}")


def measure(network: str, processes: int) -> dict[str, dict[str, float]]:
    """For each scheme: seconds of a step at the same global batch, its messages, and the bytes that a process puts in them."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "found.json"
        subprocess.run(
            [
                *(sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"),
                *("--module", "benchmarks.processes", network, str(out)),
            ],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            check=True,
            capture_output=True,
        )
        found: dict[str, dict[str, float]] = json.loads(out.read_text())
        return found


class _Counted:
    """Counts messages and their bytes."""

    def __init__(self) -> None:
        self.messages, self.bytes = 0, 0
        for name in ("all_reduce", "all_gather"):
            setattr(dist, name, self._counting(getattr(dist, name), first=name == "all_reduce"))

    def _counting(self, send: Any, first: bool) -> Any:
        def counted(*words: Any, **others: Any) -> Any:
            own = words[0] if first else words[1]
            self.messages += 1
            self.bytes += own.numel() * own.element_size()
            return send(*words, **others)

        return counted


def _scheme(network: str, lam: float, beta: float, counted: _Counted) -> dict[str, float]:
    torch.manual_seed(0)
    net, x, classes = NETWORKS[network][0]()
    data = (x.repeat(_STEPS, *[1] * (x.dim() - 1)), torch.randint(classes, (_STEPS * _BATCH,)))
    posterior: Any = cb.MeanField(net) if beta else cb.Point(net)
    times: list[float] = []
    sent: list[tuple[int, int]] = []

    def note(*_: Any) -> None:
        times.append(time.perf_counter())
        sent.append((counted.messages, counted.bytes))

    cb.fit(posterior, data, cb.Objective(lam=lam, beta=beta), batch_size=_BATCH, epochs=4, on_epoch=note, progress=False)
    epochs = [after - before for before, after in itertools.pairwise(times)]
    (messages, size), (later, more) = sent[0], sent[-1]
    steps = _STEPS * (len(sent) - 1)
    weights = sum(parameter.numel() for parameter in posterior.parameters())
    return {
        "seconds": min(epochs) / _STEPS,
        "messages": (later - messages) / steps,
        "bytes": (more - size) / steps,
        "gradient bytes": 4.0 * weights,
    }


def main() -> None:
    network, out = sys.argv[1:]
    torch.set_num_threads(1)
    counted = _Counted()
    found = {name: _scheme(network, lam, beta, counted) for name, (lam, beta) in SCHEMES.items()}
    if os.environ["RANK"] == "0":
        Path(out).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
