"""Every example runs as a newcomer would run it, and prints and writes what it says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from calibayes import metrics
from calibayes.data.predictions import read_predictions

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(script: str, folder: Path) -> str:
    """What a script prints when it is run in an empty folder of its own."""
    folder.mkdir(exist_ok=True)
    command = [sys.executable, "-W", "error", str(EXAMPLES / script), "output"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def number(name: str, text: str) -> float:
    """The number after a name in a printed table."""
    found = re.search(rf"^{name}\s+([+-]?[\d.]+)", text, re.MULTILINE)
    assert found is not None, text
    return float(found[1])


def check_own_network(printed: str, written: Path) -> None:
    assert "4,482 Bayesian, 0 point, 0 frozen weights" in printed
    assert "predicts the same: True." in printed
    epochs, best = map(int, re.findall(r"after (\d+) epochs; the best was epoch (\d+)\.", printed)[0])
    assert 1 <= best <= epochs <= 100
    # Far better than guessing (½ and log 2), and about as sure as it is right.
    assert number("accuracy", printed) > 0.75
    assert number("NLL", printed) < 0.5
    assert abs(number("overconfidence", printed)) < 0.06
    assert (written / "reliability.png").read_bytes().startswith(b"\x89PNG")
    assert (written / "model.safetensors").stat().st_size > 2 * 4 * 4482
    assert list((written / "checkpoint").glob("step-*.safetensors"))


def check_predictions(printed: str, written: Path) -> None:
    found = {}
    for name in ("naive-bayes", "logistic"):
        table = read_predictions(written.parent / f"{name}.csv")
        assert (table.n, table.class_names) == (1197, tuple("0123456789"))
        accuracy = metrics.accuracy(table.probs, table.targets)
        assert f"{name}.csv: 1,197 examples, right {100 * accuracy:.1f} %" in printed
        found[name] = metrics.overconfidence(table.probs, table.targets)
    assert found["naive-bayes"] > 0.05
    assert found["logistic"] < -0.05


def check_ca_bnn_in_one_file(printed: str, written: Path) -> None:
    assert number("accuracy", printed) > 0.8
    assert number("NLL", printed) < 0.6
    assert number("ECE", printed) < 0.06
    assert (written / "reliability.png").read_bytes().startswith(b"\x89PNG")


def check_tumours(printed: str, written: Path) -> None:
    assert printed == "tumours.csv: 569 rows, 30 columns and the diagnosis\n"
    table = pd.read_csv(written.parent / "tumours.csv")
    assert table["diagnosis"].value_counts().to_dict() == {"benign": 357, "malignant": 212}
    assert table.shape == (569, 31)


CHECKS = {
    "ca_bnn_in_one_file.py": check_ca_bnn_in_one_file,
    "own_network.py": check_own_network,
    "predictions.py": check_predictions,
    "tumours.py": check_tumours,
}


def test_every_example_has_a_check() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(CHECKS)


@pytest.mark.parametrize("script", sorted(CHECKS))
def test_an_example_does_what_it_prints(script: str, tmp_path: Path) -> None:
    CHECKS[script](run(script, tmp_path / "a"), tmp_path / "a" / "output")


@pytest.mark.slow
@pytest.mark.parametrize("script", sorted(CHECKS))
def test_an_example_prints_the_same_again(script: str, tmp_path: Path) -> None:
    printed = run(script, tmp_path / "a")
    assert run(script, tmp_path / "a") == printed  # taken up from what the first run left
    assert run(script, tmp_path / "b") == printed  # from the start
