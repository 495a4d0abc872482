"""Trials for the tests: each leaves a line in a file, so that it can be counted how often it ran and where."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch


def ran(settings: dict[str, Any]) -> None:
    """One line in the log: the number of the trial and the process; one short write to the end of a file is whole."""
    line = f"{settings['n']} {os.getpid()}\n".encode()
    handle = os.open(settings["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(handle, line)
    os.close(handle)


def lines(log: Path | str) -> list[tuple[int, int]]:
    if not Path(log).exists():
        return []
    return [(int(n), int(pid)) for n, pid in (line.split() for line in Path(log).read_text().splitlines())]


def runs(log: Path | str) -> Counter[int]:
    """How often each trial was begun."""
    return Counter(n for n, _ in lines(log))


def square(settings: dict[str, Any]) -> dict[str, Any]:
    ran(settings)
    return {"y": settings["n"] ** 2, "threads": torch.get_num_threads(), "omp": os.environ.get("OMP_NUM_THREADS")}


def arrays(settings: dict[str, Any]) -> dict[str, Any]:
    ran(settings)
    probs = torch.full((3, 2), settings["n"] / 10)
    return {"probs": probs, "numpy": probs.numpy()[0], "nested": [{"one": torch.tensor(1.5)}], "y": settings["n"]}


def fails_at_two(settings: dict[str, Any]) -> dict[str, Any]:
    ran(settings)
    if settings["n"] == 2 and not Path(settings["log"] + ".mended").exists():
        raise ArithmeticError("two is too many")
    return {"y": settings["n"]}


def learns(settings: dict[str, Any]) -> dict[str, Any]:
    """A result as those of trainings are; trial 2 fails."""
    fails_at_two(settings)
    return {"epochs": [{"epoch": 1, "nll": 1.0}, {"epoch": 2, "nll": 0.5}], "final": {"nll": 0.25, "name": "a"}}


def leaves_at_two(settings: dict[str, Any]) -> dict[str, Any]:
    ran(settings)
    if settings["n"] == 2:
        sys.exit("no more")
    return {"y": settings["n"]}


def kills_at_two(settings: dict[str, Any]) -> dict[str, Any]:
    """Trial 2 ends its worker each time, and not before its neighbour is under way."""
    ran(settings)
    if settings["n"] == 2:
        wait_for(lambda: len(runs(settings["log"])) > 1 or runs(settings["log"])[2] > 1)
        os.kill(os.getpid(), signal.SIGKILL)
    return {"y": settings["n"]}


def killed_while_writing(settings: dict[str, Any]) -> dict[str, Any]:
    """The worker of trial 2 is killed the first time that it writes the result."""
    ran(settings)
    if settings["n"] == 2 and runs(settings["log"])[2] == 1:
        os.fsync = lambda fd: os.kill(os.getpid(), signal.SIGKILL)
    return {"y": settings["n"]}


def held(settings: dict[str, Any]) -> dict[str, Any]:
    """Runs until the file ``go`` is there."""
    ran(settings)
    wait_for(Path(settings["go"]).exists)
    return {"y": settings["n"]}


def first_ends_last(settings: dict[str, Any]) -> dict[str, Any]:
    """Trial 0 ends when all others have begun."""
    ran(settings)
    if settings["n"] == 0:
        wait_for(lambda: len(runs(settings["log"])) == settings["all"])
    return {"y": settings["n"]}


def takes_the_folder_away(settings: dict[str, Any]) -> dict[str, Any]:
    shutil.rmtree(Path(settings["log"]).with_name("there"), ignore_errors=True)
    return {}


def odd(settings: dict[str, Any]) -> Any:
    if settings["n"] == 3:
        raise SpeechlessError
    return ([1, 2], {"y": object()}, {"y": 10**5000})[settings["n"]]


class SpeechlessError(Exception):
    def __str__(self) -> str:
        raise ValueError("nothing to say")


def goes_away(settings: dict[str, Any]) -> dict[str, Any]:
    os.chdir("elsewhere" if settings["n"] == 0 else "..")
    return {"y": settings["n"]}


def clashes(settings: dict[str, Any]) -> dict[str, Any]:
    return {"n": settings["n"] + 1, "error": 0.5}


def numbers(settings: dict[str, Any]) -> dict[str, Any]:
    return {"nan": float("nan"), "inf": float("inf"), "text": "λ", "tuple": (1, 2), "none": None, "tensor": torch.tensor(2)}


def wait_for(condition: Callable[[], bool], seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)
