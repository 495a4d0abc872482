"""Rows of the core table, timed in a process of their own for `benchmarks.before_after`: commands come as lines of JSON.

It runs against any checkout's `calibayes` and `benchmarks`, and so uses only what those of older revisions have too.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

import calibayes as cb
from benchmarks.training_step import NETWORKS, our_step, plain_step

__all__ = ["ROWS", "RowServer"]

_LEAST = 0.05
_SAMPLES, _BATCH = 20, 256
_MLP, _TEXT, _RESNET = NETWORKS
_INPUTS = {_MLP: 10_240, _TEXT: 256, _RESNET: 256}
_STEPS: dict[str, tuple[str, int, float]] = {
    "plain PyTorch": ("plain", 1, 0.0),
    "Point": ("point", 1, 0.0),
    "Point + WMMCE": ("point", 1, 10.0),
    "MeanField R=1": ("mean-field", 1, 0.0),
    "MeanField R=1 + WMMCE": ("mean-field", 1, 10.0),
    "MeanField R=8": ("mean-field", 8, 0.0),
    "MeanField R=8 + WMMCE": ("mean-field", 8, 10.0),
}


def _step(network: str, kind: str, samples: int, lam: float) -> Callable[[], object]:
    net, x, classes = NETWORKS[network][0]()
    y = torch.randint(classes, (len(x),))
    if kind == "plain":
        return plain_step(net, x, y)
    posterior: Any = cb.Point(net) if kind == "point" else cb.MeanField(net)
    return our_step(posterior, x, y, samples, lam)


def _predict(network: str) -> Callable[[], object]:
    net, x, _ = NETWORKS[network][0]()
    posterior = cb.MeanField(net.eval())
    x = x.repeat(_INPUTS[network] // len(x), *[1] * (x.dim() - 1))
    return lambda: cb.predict(posterior, x, samples=_SAMPLES, batch_size=_BATCH)


ROWS: dict[str, Callable[[], Callable[[], object]]] = {
    **{
        f"step: {network}: {label}": partial(_step, network, *settings)
        for network in NETWORKS
        for label, settings in _STEPS.items()
    },
    **{f"predict: {network}: S={_SAMPLES}": partial(_predict, network) for network in NETWORKS},
}


class RowServer:
    """Answers commands; holds one row at a time."""

    def __init__(self) -> None:
        self._call: Callable[[], object] | None = None

    def answer(self, command: dict[str, Any]) -> dict[str, Any]:
        """What a command asks for.

        ``{"row": name}`` gets a row ready, and returns how many ``calls`` a turn should have; ``{"calls": n}`` takes a turn
        of the row, and returns the ``seconds`` of one call.
        """
        if "row" in command:
            torch.manual_seed(0)
            self._call = None
            self._call = ROWS[command["row"]]()
            first = self._seconds(1)
            calls = 1 if first > 20 * _LEAST else max(1, round(_LEAST / max(self._seconds(1), 1e-7)))
            return {"calls": calls}
        return {"seconds": self._seconds(int(command["calls"])) / int(command["calls"])}

    def _seconds(self, calls: int) -> float:
        assert self._call is not None
        gc.collect()
        gc.disable()
        try:
            start = time.perf_counter()
            for _ in range(calls):
                self._call()
            return time.perf_counter() - start
        finally:
            gc.enable()


def main() -> None:
    torch.set_num_threads(int(sys.argv[1]))
    server, out = RowServer(), sys.stdout
    sys.stdout = sys.stderr  # what the code under test prints must not be taken for an answer
    print(json.dumps({"calibayes": cb.__file__}), file=out, flush=True)
    for line in sys.stdin:
        try:
            answer = server.answer(json.loads(line))
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=out, flush=True)


if __name__ == "__main__":
    main()
