"""What `import calibayes` loads, and how long it takes."""

from __future__ import annotations

import statistics
import subprocess
import sys

FRONT_DOORS = ("pandas", "matplotlib", "typer", "rich", "sklearn", "jinja2", "pydantic", "joblib", "scipy")


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def test_the_core_loads_torch_numpy_and_safetensors_only() -> None:
    loaded = run(
        "import sys, torch, numpy, safetensors.torch; before = set(sys.modules); import calibayes;"
        "print(*sorted({name.split('.')[0] for name in set(sys.modules) - before}))"
    ).split()
    assert not set(FRONT_DOORS) & set(loaded)
    allowed = {"calibayes", "torch", "numpy", "safetensors"}
    assert all(name in allowed or name in sys.stdlib_module_names for name in loaded), loaded


def test_importing_adds_little_to_importing_torch() -> None:
    # In processor time, as a share of torch's own in the same process, since a loaded machine slows both: a quarter today.
    code = (
        "import time; start = time.process_time(); import torch, numpy, safetensors.torch; middle = time.process_time();"
        "import calibayes; print((time.process_time() - middle) / (middle - start))"
    )
    assert statistics.median(float(run(code)) for _ in range(3)) < 0.5
