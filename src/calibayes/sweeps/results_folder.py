"""The folder that results go into, and the software and machine that computed them."""

from __future__ import annotations

import contextlib
import json
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

__all__ = ["machine", "prepare", "unwritable", "versions", "write_json", "write_whole"]

_ABANDONED = 3600.0  # seconds after which nobody is still writing a file


def prepare(folder: Path) -> None:
    """Make the folder and clear away abandoned files, or raise at once if nothing can be written there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
        for left in folder.glob(f".*{UNFINISHED}"):  # of processes that were killed
            with contextlib.suppress(FileNotFoundError):  # another process has cleared it away
                if left.is_file() and time.time() - left.stat().st_mtime > _ABANDONED:
                    left.unlink()
    except OSError as error:
        raise unwritable(folder, error) from error


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that readers see the old one or the whole new one."""
    with atomic_file(path) as unfinished:
        unfinished.write_bytes(content)


def write_json(path: Path, numbers: dict[str, Any], indent: int = 2) -> None:
    """Write numbers, lists and dicts as a JSON file."""
    write_whole(path, (json.dumps(numbers, indent=indent, ensure_ascii=False) + "\n").encode())


def unwritable(folder: Path, error: OSError) -> InvalidArgumentError:
    """Return the error to raise when files cannot be written to a folder."""
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
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
