"""Real processes on this machine, as ``torchrun`` and other launchers start them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def torchrun(processes: int, script: Path, *words: str, timeout: float = 300, restarts: int = 0) -> str:
    """Run a script in several processes; what they said is returned, and an error of theirs is one of ours."""
    return python(
        *("-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}", f"--max-restarts={restarts}"),
        *(str(script), *words),
        timeout=timeout,
    )


def python(*words: str, timeout: float = 300) -> str:
    """The same for a script, or a launcher, that starts all processes but the first by itself."""
    done = subprocess.run(
        [sys.executable, *words],
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    return done.stdout + done.stderr
