"""The folder that results go into, and the record of how they came about."""

from __future__ import annotations

import contextlib
import platform
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

import calibayes
from calibayes.atomic_file import UNFINISHED, atomic_file
from calibayes.errors import InvalidArgumentError

__all__ = ["clear_abandoned", "machine", "prepare", "unwritable", "versions", "write_whole"]

_ABANDONED = 3600.0  # seconds after which nobody is still writing a file


def prepare(folder: Path) -> None:
    """Make the folder, or say why nothing can be written there before minutes are spent."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
        clear_abandoned(folder)
    except OSError as error:
        raise unwritable(folder, error) from error


def clear_abandoned(folder: Path) -> None:
    """Remove what was being written when a process was killed, but not what another one is writing now."""
    for left in folder.glob(f".*{UNFINISHED}"):
        with contextlib.suppress(FileNotFoundError):  # another process has cleared it away
            if left.is_file() and time.time() - left.stat().st_mtime > _ABANDONED:
                left.unlink()


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that whoever looks finds the old one or the whole new one."""
    with atomic_file(path) as unfinished:
        unfinished.write_bytes(content)


def unwritable(folder: Path, error: OSError) -> InvalidArgumentError:
    """The error to raise when a folder does not take what is to be written."""
    return InvalidArgumentError(
        f"Cannot write to {str(folder)!r}: {error.strerror or error}. Choose another folder with --out."
    )


def versions() -> dict[str, str]:
    """Return the versions of the software that computed the results."""
    return {
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "calibayes": calibayes.__version__,
    }


def machine(**others: Any) -> dict[str, Any]:
    """Return the machine that computed the results."""
    return {"platform": platform.platform(), "cpu": _cpu(), **others}


@cache
def _cpu() -> str:
    """The name of the processor, which `platform` does not know on Linux."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
