"""``calibayes sweep`` as users meet it, without a terminal."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from tests.sweeps import acts
from typer.testing import CliRunner, Result

from calibayes.cli import app
from calibayes.sweeps import read

ROOT = Path(__file__).parents[2]
HOLD = """
from pathlib import Path
from tests.sweeps.acts import held
def trial(settings):
    here = Path(__file__).parent
    return held({**settings, "log": str(here / "log"), "go": str(here / str(settings["n"]))})
"""


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["sweep", "--workers", "1", "--threads", "1", *words])


def line(text: str, *beginning: str) -> list[str]:
    """The cells of the row of a table that begins so."""
    found = [row.split() for row in text.splitlines()]
    return next(row for row in found if tuple(row[: len(beginning)]) == beginning)


def test_schemes_on_clothes_are_trained_tested_and_put_side_by_side(tmp_path: Path) -> None:
    small = ["epochs=2", "train=96", "validation=64", "test=128", "predictive_samples=2", "epoch_samples=2"]
    words = [word for each in ["scheme=fnn,ca-bnn", "lam=3,30", *small] for word in ("--set", each)]
    done = run(*words, "--seeds", "1", "--out", "there")
    assert done.exit_code == 0, done.output
    found = read("there")
    assert len(found) == 1 + 2  # FNN has no λ
    for trial in found:
        assert re.match(rf"{trial.settings['scheme']}-seed{trial.settings['seed']}-[0-9a-f]+\.json", trial.path.name)
        result = trial.result
        assert result is not None
        assert [epoch["epoch"] for epoch in result["epochs"]] == [1, 2]
        assert all(0 < epoch["validation"]["nll"] < 5 for epoch in result["epochs"])
        assert result["final"]["scaled"]["accuracy"] == result["final"]["test"]["accuracy"]
        assert {"accuracy", "nll", "brier", "ece"} <= set(result["final"]["test"])
    (test,) = [trial.result["final"]["test"] for trial in found if trial.result and trial.settings.get("lam") == 30]
    cells = line(done.output, "ca-bnn", "30", "1")
    assert cells[3:7] == [f"{test[name]:.4g}" for name in ("accuracy", "nll", "brier", "ece")]
    assert "3 trials, in " in done.output
    again = run(*words, "--seeds", "1", "--out", "there")
    assert "3 trials (3 from before), in 0 s. Every result is in there." in again.output
    assert line(again.output, "ca-bnn", "30", "1") == cells


def test_the_table_has_means_over_seeds(tmp_path: Path) -> None:
    Path("scored.py").write_text(
        "def trial(settings):\n    return {'score': settings['lam'] + 0.1 * settings['seed'], 'text': 'a'}\n"
    )
    done = run("--trial", "scored:trial", "--set", "lam=1,20", "--set", "epochs=3", "--seeds", "3", "--out", "there")
    assert line(done.output, "lam") == ["lam", "trials", "score"]  # nothing that is the same in all, and no texts
    assert line(done.output, "1") == ["1", "3", "1.100", "±", "0.100"]
    assert line(done.output, "20") == ["20", "3", "20.10", "±", "0.10"]


def test_a_file_a_function_of_ones_own_failures_and_what_is_left_to_do(tmp_path: Path) -> None:
    Path("halved.py").write_text(
        "def trial(settings):\n    return {'half': 1 / (settings['n'] - 1), 'deep': {'n': settings['n']}}\n"
    )
    Path("plan.toml").write_text("trial = 'halved:trial'\nout = 'there'\n[settings]\nn = [0, 1, 2]\n")
    dry = run("plan.toml", "--dry-run")
    assert dry.output.splitlines()[:3] == ["to run: n=0", "to run: n=1", "to run: n=2"]
    assert "3 of 3 trials of halved:trial to run; results go to there." in dry.output
    assert not Path("there").exists()
    done = run("plan.toml", "--show", "half,deep.n")
    assert done.exit_code == 1
    assert "Failed: n=1: ZeroDivisionError: division by zero" in done.output
    assert "3 trials, 1 failed, in " in done.output
    assert line(done.output, "2") == ["2", "1", "1", "2"]
    dry = run("plan.toml", "--dry-run")
    assert dry.output.splitlines()[:3] == ["there: n=0", "failed before: to run: n=1", "there: n=2"]
    kept = run("plan.toml", "--keep-failures")
    assert (kept.exit_code, "(3 from before), 1 failed" in kept.output) == (1, True)
    wrong = run("plan.toml", "--show", "hlaf")
    assert (wrong.exit_code, "got 'hlaf'. Did you mean 'half'?" in wrong.output) == (1, True)
    assert "got 'n'. Did you mean 'deep.n'?" in run("plan.toml", "--show", "n").output
    assert line(wrong.output, "2") == ["2", "1", "2", "1"]  # nothing of a long sweep is lost for a misspelt name
    dry = run("plan.toml", "--dry-run", "--keep-failures")
    assert "failed before: n=1\n" in dry.output
    assert "0 of 3 trials" in dry.output


def test_a_function_of_ones_own_gets_every_setting_and_numbers_that_are_not_finite_are_told(tmp_path: Path) -> None:
    Path("odd.py").write_text(
        "def trial(settings):\n"
        "    return {'loss': float('nan') if settings['seed'] == 1 else settings['lam'], 'big': 10**400, 'zero': 0.0}\n"
    )
    done = run("--trial", "odd:trial", "--set", "scheme=fnn", "--set", "lam=1,20", "--seeds", "3", "--out", "there")
    assert done.exit_code == 0, done.output
    assert line(done.output, "lam") == ["lam", "trials", "big", "loss", "zero"]
    assert " ".join(line(done.output, "20")[2:]) == "– (3 not finite) 20.00 ± 0.00 (1 not finite) 0 ± 0"


@pytest.mark.parametrize(
    ("text", "message"), [("def", "SyntaxError"), ("1 / 0", "ZeroDivisionError"), ("exit(3)", "SystemExit")]
)
def test_a_module_that_cannot_be_imported_is_one_line(text: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("broken_module.py").write_text(text)
    done = run("--trial", "broken_module:trial", "--set", "n=1")
    assert (done.exit_code, done.output.count("\n")) == (2, 1)
    assert f"'broken_module:trial': it raises {message}" in done.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "Nothing to run"),
        (["nowhere.toml"], "Cannot read 'nowhere.toml'"),
        (["--set", "schem=fnn"], "got 'schem'. Did you mean 'scheme'?"),
        (["--set", "scheme=gnn"], "but got 'gnn'"),
        (["--set", "scheme=fnn", "--set", "members=2"], "'fnn' has no setting 'members'"),
        (["--set", "scheme=ensemble,fnn", "--set", "member=2"], "got 'member'"),
        (["--seeds", "0"], "`seeds` to be a positive integer, but got 0"),
        (["--set", "lam=3", "--backend", "slurm"], "but got 'slurm'"),
        (["--set", "epochs=1", "--trial", "nowhere:trial"], "Cannot import the module of the trial 'nowhere:trial'"),
        (["--set", "epochs=1", "--out", "taken/there"], "taken/there': Not a directory"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(words: list[str], message: str) -> None:
    Path("taken").write_text("a file")
    done = run(*words)
    assert done.exit_code == 2
    assert message in done.output
    assert done.output.count("\n") == 1
    assert not Path("calibayes-sweep").exists()


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_finished_and_says_how_to_go_on(tmp_path: Path) -> None:
    Path("mine.py").write_text(HOLD)
    Path("0").touch()
    words = ["sweep", "--trial", "mine:trial", "--set", "n=0,1,2", "--out", "there", "--workers", "2"]
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "calibayes", *words],
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    acts.wait_for(lambda: process.poll() is not None or (len(acts.lines("log")) == 3 and len(read("there")) == 1))
    workers = psutil.Process(process.pid).children(recursive=True)
    os.killpg(process.pid, signal.SIGINT)  # a terminal sends it to all processes
    out, err = process.communicate(timeout=60)
    _, alive = psutil.wait_procs(workers, timeout=60)
    assert alive == []
    assert (process.returncode, out) == (130, ""), err
    typed = " ".join(["calibayes", *words])
    assert err.splitlines()[-1] == f"Stopped. 1 of 3 trials are kept in there. To continue: {typed}"
    assert "Traceback" not in err
    (finished,) = Path("there").iterdir()  # and nothing else: no claim is left behind
    assert json.loads(finished.read_text())["settings"] == {"n": 0}


def test_other_methods_are_swept_with_the_settings_that_they_have(tmp_path: Path) -> None:
    small = ["epochs=1", "train=96", "validation=64", "test=128", "predictive_samples=2", "epoch_samples=2"]
    words = [word for each in ["scheme=ensemble,fnn", "members=1,2", *small] for word in ("--set", each)]
    done = run(*words, "--out", "there")
    assert done.exit_code == 0, done.output
    weights = {(each.settings["scheme"], each.settings.get("members")): each.result["weights"] for each in read("there")}  # type: ignore[index]
    one = weights["fnn", None]
    assert weights == {("fnn", None): one, ("ensemble", 1): one, ("ensemble", 2): 2 * one}
