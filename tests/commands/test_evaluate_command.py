"""`calibayes evaluate` as users meet it: real files, real processes, what is printed and written."""

from __future__ import annotations

import inspect
import io
import json
import os
import re
import subprocess
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from rich.console import Console
from tests.metrics.simulated import classifier
from tests.test_cli import COMMAND, run
from typer.testing import CliRunner, Result

from calibayes.cli import app
from calibayes.commands.evaluate import evaluate as command
from calibayes.metrics import METRICS, differences, evaluate
from calibayes.metrics.bins import DEFAULT_BINS
from calibayes.metrics.score_table import shown
from calibayes.report import study
from calibayes.report.study_text import show

NAMES = ["cat", "dog", "<script>alert(1)</script>", "fish, big"]
SHARP, TARGETS = (tensor.numpy() for tensor in classifier(800, 0.5, seed=0))
SOFT = classifier(800, 1.0, seed=0)[0].numpy()


def write_csv(path: Path, probs: npt.NDArray[np.float64], prefix: str = "p_") -> Path:
    frame = pd.DataFrame(probs, columns=[f"{prefix}{name}" for name in NAMES])
    frame.insert(0, "label", [NAMES[target] for target in TARGETS])
    frame.to_csv(path, index=False)
    return path


def call(*words: object) -> Result:
    return CliRunner().invoke(app, ["evaluate", *map(str, words)])


def test_the_verdict_comes_first_in_plain_words_then_the_table(tmp_path: Path) -> None:
    done = run("evaluate", str(write_csv(tmp_path / "sharp.csv", SHARP)))
    assert done.returncode == 0, done.stderr
    scores = evaluate(SHARP, TARGETS)
    lines = done.stdout.splitlines()
    says, right = f"{100 * scores.confidence:.0f} %", f"{100 * scores.accuracy:.0f} %"
    assert lines[0].startswith(f"Overconfident: it says {says}, it is right {right} (a gap of ")
    words = " ".join(lines[:3])
    assert "p ≤ 0.001); a temperature of 2" in words
    assert "would fix most of it." in words
    assert "800 examples, 4 classes; labels from 'label'" in done.stderr
    for metric in METRICS:
        assert any(line.strip().startswith(scores.title(metric.name)) for line in lines), metric.name
    low, high = scores.intervals["ece"]
    assert f"{scores.ece:.4f}  ({low:.4f} to {high:.4f})" in done.stdout
    assert "Traceback" not in done.stderr


def test_json_is_the_numbers_of_the_library(tmp_path: Path) -> None:
    done = call(write_csv(tmp_path / "sharp.csv", SHARP), "--json")
    assert done.exit_code == 0
    found = json.loads(done.stdout)
    scores = evaluate(SHARP, TARGETS, class_names=NAMES)
    (model,) = found["models"]
    assert model["name"] == "sharp"
    assert {name: each["value"] for name, each in model["scores"].items()} == pytest.approx(scores.values, rel=1e-9)
    for name, (low, high) in scores.intervals.items():
        assert (model["scores"][name]["low"], model["scores"][name]["high"]) == pytest.approx((low, high), rel=1e-6, abs=1e-12)
    assert found["data"] == {
        "n": 800,
        "classes": 4,
        "class_names": NAMES,
        "files": [str(tmp_path / "sharp.csv")],
        "pairs": False,
    }
    assert found["differences"] == []
    assert sum(each["count"] for each in model["reliability"]) == 800


def test_every_format_gives_the_same_numbers(tmp_path: Path) -> None:
    csv = write_csv(tmp_path / "m.csv", SHARP)
    pd.read_csv(csv).to_parquet(tmp_path / "m.parquet")
    np.savez(tmp_path / "m.npz", probs=SHARP, targets=TARGETS, class_names=np.array(NAMES))
    write_csv(tmp_path / "l.csv", np.log(SHARP), prefix="logit_")
    found = [json.loads(call(tmp_path / name, "--json").stdout) for name in ("m.csv", "m.parquet", "m.npz", "l.csv")]
    for other in found[1:]:
        for name, each in found[0]["models"][0]["scores"].items():
            assert other["models"][0]["scores"][name]["value"] == pytest.approx(each["value"], rel=1e-6, abs=1e-9), name


@pytest.mark.slow
def test_several_files_are_compared_pair_by_pair(tmp_path: Path) -> None:
    files = [write_csv(tmp_path / "sharp.csv", SHARP), write_csv(tmp_path / "soft.csv", SOFT)]
    text = call(*files)
    assert text.exit_code == 0, text.output
    assert "soft is better than sharp in NLL (by " in " ".join(text.stdout.split())
    found = json.loads(call(*files, "--json").stdout)
    (pair,) = found["differences"]
    assert (pair["first"], pair["second"]) == ("sharp", "soft")
    expected = differences(SHARP, SOFT, TARGETS)
    for name, each in expected.items():
        assert list(pair["metrics"][name].values()) == pytest.approx(list(each), rel=1e-5, abs=1e-9), name


def test_the_report_holds_the_numbers_of_the_json(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = call(write_csv(tmp_path / "sharp.csv", SHARP), "--json", "--report", page)
    assert done.exit_code == 0
    text = page.read_text(encoding="utf-8")
    start = text.index('id="study">') + len('id="study">')
    assert json.loads(text[start : text.index("</script>", start)]) == json.loads(done.stdout)
    assert "<script>alert(1)" not in text
    assert len(text) < 2_000_000
    assert sorted(path.name for path in tmp_path.iterdir()) == ["page.html", "sharp.csv"]


@pytest.mark.slow
def test_many_rows_take_well_under_a_minute(tmp_path: Path) -> None:
    n = 200_000  # a fifth of the million that is promised: everything here takes time in proportion
    generator = np.random.default_rng(0)
    probs = generator.dirichlet(np.ones(4), n)
    frame = pd.DataFrame(probs.astype(np.float32), columns=[f"p_{name}" for name in NAMES])
    frame.insert(0, "label", np.array(NAMES)[generator.integers(4, size=n)])
    frame.to_parquet(tmp_path / "big.parquet")
    start = time.monotonic()
    done = run("evaluate", str(tmp_path / "big.parquet"))
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - start < 60
    assert done.stdout.startswith("Overconfident: it says ")


BAD = {
    "missing.csv": (None, "there is no such file"),
    "empty.csv": ("", "empty"),
    "header.csv": ("label,p_a,p_b\n", "no rows|no examples|header"),
    "text.csv": ("label,p_a,p_b\na,0.5,0.5\nb,high,0.5\n", "line 3.*p_a.*high"),
    "nan.csv": ("label,p_a,p_b\na,0.5,0.5\nb,nan,0.5\n", "line 3.*p_a"),
    "gap.csv": ("label,p_a,p_b\na,0.5,0.5\nb,,0.5\n", "line 3.*p_a"),
    "sum.csv": ("label,p_a,p_b\na,0.5,0.5\nb,0.7,0.7\n", "line 3.*1.4"),
    "unknown.csv": ("label,p_a,p_b\na,0.5,0.5\nc,0.5,0.5\n", "line 3.*label.*'c'"),
    "range.csv": ("label,p_0,p_1\n0,0.5,0.5\n7,0.5,0.5\n", "line 3.*label.*'7'"),
    "nolabel.csv": ("x,p_a,p_b\na,0.5,0.5\n", "--label"),
    "logits.csv": ("label,p_a,p_b\na,3.5,-1.5\n", "--logits"),
    "image.csv": ("\x89PNG\r\n\x1a\n\x00\x00\x00", "image.csv"),
    "kind.xls": ("PK", ".csv"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line_that_names_the_place_and_exit_code_2(name: str, tmp_path: Path) -> None:
    content, message = BAD[name]
    if content is not None:
        (tmp_path / name).write_bytes(content.encode("latin-1"))
    done = call(tmp_path / name, "--report", tmp_path / "page.html")
    assert done.exit_code == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("calibayes: ")
    assert name in line
    assert re.search(message, line), line
    assert not (tmp_path / "page.html").exists()


def test_files_of_different_examples_are_refused(tmp_path: Path) -> None:
    whole = write_csv(tmp_path / "whole.csv", SHARP)
    lines = whole.read_text().splitlines(keepends=True)
    (tmp_path / "short.csv").write_text("".join(lines[:-1]))
    done = call(whole, tmp_path / "short.csv")
    assert done.exit_code == 2
    assert "800" in done.stderr
    assert "799" in done.stderr


def test_a_report_that_cannot_be_written_is_refused_before_the_work(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "a.csv", SHARP)
    for target in (tmp_path, tmp_path / "nowhere" / "page.html"):
        done = call(path, "--report", target)
        assert (done.exit_code, done.stdout) == (2, "")
        assert str(target) in done.stderr


def test_a_report_replaces_neither_the_predictions_nor_what_is_no_file(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "a.csv", SHARP)
    before = path.read_bytes()
    os.mkfifo(tmp_path / "pipe")
    for target in (path, tmp_path / "pipe", tmp_path / ("x" * 300)):
        done = call(path, "--report", target)
        assert (done.exit_code, done.stdout) == (2, "")
        assert len(done.stderr.splitlines()) == 1
    assert path.read_bytes() == before
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--bins", "0"], "`--bins` to be a positive integer, but got 0"),
        (["--bins", "100000000000"], "`--bins` to be at most 10,000, but got 100000000000"),
        (["--replicates", "1000000000"], "`--replicates` to be at most 100,000"),
        (["--level", "95"], "`--level` to lie between 0 and 1"),
        (["--label", "lable"], "lable"),
        (["--columns", "q_*"], "q_"),
    ],
)
def test_bad_flags_are_quoted(flags: list[str], message: str, tmp_path: Path) -> None:
    done = call(write_csv(tmp_path / "a.csv", SHARP), *flags)
    assert done.exit_code == 2
    assert message in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "a.csv", SHARP)
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*COMMAND, "evaluate", path], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "calibayes: cannot write: No space left on device. Free some space, and try again."
    assert "Traceback" not in done.stderr


def test_whoever_stops_reading_still_has_the_report(tmp_path: Path) -> None:
    path, page = write_csv(tmp_path / "a.csv", SHARP), tmp_path / "page.html"
    with subprocess.Popen([*COMMAND, "evaluate", path, "--report", page], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as it:
        assert it.stdout is not None
        it.stdout.close()
        it.wait()
    assert "Overconfident" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [60, 80, 110])
def test_no_number_is_cut_however_narrow_the_terminal_and_long_the_names(width: int) -> None:
    names = ["a-model-with-a-name-that-goes-on-and-on-and-on-and-on-for-ever", "b", "c", "d"]
    found = study(dict.fromkeys(names, SHARP[:100]), TARGETS[:100], replicates=20)
    text = io.StringIO()
    show(found, Console(file=text, width=width, force_terminal=True, color_system=None, highlight=False))
    said = text.getvalue()
    assert max(map(len, said.splitlines())) <= width
    for metric in METRICS:
        interval = found.models[0].scores.intervals.get(metric.name)
        if interval is not None:
            low, high = (shown(metric.name, end) for end in interval)
            assert said.count(f"({low} to {high})") >= 4, metric.name
    assert said.count("+0.0000 ") == 6 * 6


def test_the_command_has_the_default_number_of_bins() -> None:
    """It is written out there, because the help must not wait for PyTorch."""
    assert inspect.signature(command).parameters["bins"].default == DEFAULT_BINS
