"""`calibayes reproduce` from end to end on the real data, in its tiny size."""

from __future__ import annotations

import json
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import cloudpickle
import pytest
from tests.data.real import needs
from typer.testing import CliRunner, Result

import calibayes
from calibayes.cli import app
from calibayes.data.data_folder import data_folder
from calibayes.sweeps import read
from calibayes.sweeps.trial_identity import function_and_name
from calibayes.sweeps.worker import Job
from reproduction.experiments import EXPERIMENTS, experiment
from reproduction.run_experiment import VERSION

ROOT = Path(__file__).parents[2]

TEXTS, IMAGES = needs("newsgroups", "glove"), needs("cifar10", "resnet20")


def reproduce(*words: object) -> Result:
    return CliRunner().invoke(app, ["reproduce", *map(str, words)])


def start(name: str, folder: Path, *words: str) -> Result:
    """One seed alone."""
    return reproduce(name, "--preset", "tiny", "--out", folder, "--workers", 1, "--only", "seed=0", *words)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reproduction")


@pytest.mark.slow
@TEXTS
@pytest.mark.parametrize(
    ("name", "trainings", "files"),
    [
        ("newsgroups-epochs", 3, {"figure1.png", "figure1-beside.png"}),
        ("newsgroups-lambda", 2, {"figure2.png", "figure2-beside.png", "equal-accuracy.png"}),  # two are known from Fig. 1
    ],
)
def test_figures_of_20_newsgroups(name: str, trainings: int, files: set[str], folder: Path) -> None:
    before = len(list((folder / "newsgroups").glob("*.json")))
    done = start(name, folder)
    assert done.exit_code == 0, done.output
    assert len(list((folder / "newsgroups").glob("*.json"))) == before + trainings
    assert {path.name for path in (folder / name).iterdir()} == {"table.txt", "summary.json", "commands.txt", *files}
    assert (folder / name / "table.txt").read_text() in done.stdout
    summary = json.loads((folder / name / "summary.json").read_text())
    line = next(line for line in done.stdout.splitlines() if line.startswith("  FNN "))
    errors = next(part for part in summary["parts"] if part["name"] == "FNN")["scores"]["test ece"]
    assert f" {100 * errors[0]:.1f} " in line


@pytest.mark.slow
@TEXTS
def test_a_record_has_all_that_it_takes_to_repeat_it(folder: Path) -> None:
    start("newsgroups-epochs", folder)
    path = next((folder / "newsgroups").glob("ca-fnn-seed0-*.json"))
    record = json.loads(path.read_text())
    assert record["settings"]["seed"] == 0
    assert {"torch", "calibayes", "python"} <= set(record["versions"])
    assert record["result"]["examples"] == {"train": 400, "validation": 300, "test": 300}
    assert [epoch["epoch"] for epoch in record["result"]["epochs"]] == [1, 2]
    scores = record["settings"]["scores"]
    path.unlink()
    done = start("newsgroups-epochs", folder, "--only", "scheme=ca-fnn", "--only", f"scores={scores}")
    assert done.exit_code == 0, done.output
    again = json.loads(path.read_text())
    assert again["result"]["final"] == record["result"]["final"]


@pytest.mark.slow
@TEXTS
def test_figures_alone_are_drawn_without_training(folder: Path) -> None:
    start("newsgroups-epochs", folder)
    picture = folder / "newsgroups-epochs" / "figure1.png"
    picture.unlink()
    times = {path: path.stat().st_mtime_ns for path in (folder / "newsgroups").glob("*.json")}
    done = start("newsgroups-epochs", folder, "--figures-only")
    assert done.exit_code == 0
    assert picture.exists()
    assert {path: path.stat().st_mtime_ns for path in (folder / "newsgroups").glob("*.json")} == times


@pytest.mark.slow
@TEXTS
def test_claims_come_from_the_records(folder: Path) -> None:
    for name in ("newsgroups-epochs", "newsgroups-lambda"):
        start(name, folder)
    done = reproduce("claims", "--preset", "tiny", "--out", folder)
    assert done.exit_code == 0, done.output
    assert (folder / "claims.txt").read_text() == done.stdout
    written = json.loads((folder / "claims.json").read_text())["claims"]
    assert [claim["claim"][:5] for claim in written] == ["Fully", "… wit", "(Aske", "A BNN", "CA-BN", "(Aske", "(Aske"]
    assert all(claim["verdict"] in done.stdout for claim in written)


@pytest.mark.slow
@IMAGES
def test_reliability_diagrams_of_cifar10(tmp_path: Path) -> None:
    done = start("cifar10-reliability", tmp_path)
    assert done.exit_code == 0, done.output
    names = {"table.txt", "summary.json", "commands.txt", "figure3-resnet20.png", "figure3-resnet20-temperature.png"}
    assert {path.name for path in (tmp_path / "cifar10-reliability").iterdir()} == names
    (plain,) = (tmp_path / "cifar10").glob("fnn-*.json")
    final = json.loads(plain.read_text())["result"]["final"]
    assert final["test"]["accuracy"] > 0.85  # the published weights are where it starts
    assert sum(final["reliability"]["test"]["count"]) == 200


@pytest.mark.slow
@pytest.mark.skipif(not (data_folder() / "clinc150" / "data_full.json").exists(), reason="CLINC150 is not here")
@needs("newsgroups")
def test_the_follow_up_on_texts(tmp_path: Path) -> None:
    done = start("clinc150-followup", tmp_path)
    assert done.exit_code == 0, done.output
    names = {"table.txt", "summary.json", "commands.txt", "ece-and-detection.png", "selection.png", "shift.png"}
    assert {path.name for path in (tmp_path / "clinc150-followup").iterdir()} == names
    done = reproduce("followup-claims", "--preset", "tiny", "--out", tmp_path)
    assert done.exit_code == 0, done.output
    assert (tmp_path / "followup-claims.txt").read_text() == done.stdout
    assert reproduce("claims", "--preset", "tiny", "--out", tmp_path).exit_code == 2  # those are of another paper


@pytest.mark.slow
@pytest.mark.skipif(not (data_folder() / "imagenet-resize").exists(), reason="the outsiders are not here")
@IMAGES
def test_the_follow_up_on_images(tmp_path: Path) -> None:
    done = start("cifar10-followup", tmp_path, "--only", "scheme=ca-bnn", "--only", "ocm=1")
    assert done.exit_code == 0, done.output
    (record,) = (tmp_path / "cifar10").glob("ca-bnn-*.json")
    result = json.loads(record.read_text())["result"]
    assert result["final"]["test"]["accuracy"] > 0.8  # the published weights are where it starts
    assert result["examples"]["outside"] == 6000
    assert set(result["final"]["shift"]) == {"gaussian_noise", "brightness"}


@pytest.mark.slow
@TEXTS
def test_records_of_another_version_and_damaged_ones_are_left_out_and_sizes_are_not_mixed(folder: Path) -> None:
    start("newsgroups-epochs", folder)
    first, second, _ = sorted((folder / "newsgroups").glob("*fnn-seed0-*.json"))[:3]
    kept = [first.read_bytes(), second.read_bytes()]
    first.write_text(first.read_text().replace('"version": 2', '"version": 1'))
    second.write_bytes(kept[1][:100])
    done = start("newsgroups-epochs", folder, "--figures-only")
    assert f"Left out, since it cannot be read: {second}" in done.stderr
    assert "5 trainings are missing." in done.stdout
    first.write_bytes(kept[0])
    second.write_bytes(kept[1])
    done = reproduce("newsgroups-epochs", "--figures-only", "--preset", "cpu", "--out", folder)
    assert done.exit_code == 2
    assert "holds results of preset tiny. For preset cpu, choose another --out" in done.stderr


def test_missing_data_are_told_once_before_anything_is_trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, what in (
        ("newsgroups-lambda", "20 Newsgroups"),
        ("cifar10-reliability", "CIFAR-10"),
        ("clinc150-followup", "CLINC150"),
    ):
        done = CliRunner().invoke(
            app,
            ["reproduce", name, "--preset", "tiny", "--out", str(tmp_path / "new")],
            env={"CALIBAYES_DATA": str(tmp_path / "none")},
        )
        assert done.exit_code == 2
        assert done.stderr.count("is not here") == 1
        assert f"calibayes: {what} is not here" in done.stderr


def test_what_cannot_be_done_is_one_line(tmp_path: Path) -> None:
    for words, message in (
        (("fig1",), "Expected the experiment to be one of newsgroups-epochs"),
        (("newsgroups-epochs", "--preset", "gpu"), "Expected the preset to be one of tiny, cpu, paper, but got 'gpu'"),
        (("newsgroups-epochs", "--only", "seed"), "Expected --only to be like lam=1,3,10, but got 'seed'"),
        (("newsgroups-epochs", "--only", "seed=11", "--only", "seed=12"), "to have seed=11,12, but none has"),
        (("claims", "--workers", "2"), "--workers has no effect with claims"),
        (("cifar10-pretrain", "--preset", "tiny"), "--out has no effect with cifar10-pretrain"),
        (("claims",), "Expected results of experiments"),
        (("newsgroups-epochs", "--figures-only"), "Expected a folder of results"),
    ):
        done = reproduce(*words, "--out", tmp_path / "new")
        assert done.exit_code == 2, done.output
        assert message in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "name", [name for name in EXPERIMENTS if (ROOT / "results" / "reproduction" / name / "table.txt").exists()]
)
def test_committed_records_are_taken_up_rather_than_trained_again(name: str) -> None:
    asked = experiment(name)
    trial, known_as = function_and_name(asked.trial)
    kept = {each.path.stem.rpartition("-")[2] for each in read(ROOT / "results" / "reproduction" / asked.data)}
    wanted = {Job(b"", known_as, VERSION, each, "").key for each in asked.settings()}
    assert wanted <= kept
    sent = pickle.loads(cloudpickle.dumps(trial))  # as workers get it
    assert sent.__code__ == trial.__code__


@pytest.mark.slow
def test_the_package_is_run_from_a_clone(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "results" / "reproduction", tmp_path / "there")
    words = ["claims", "--out", str(tmp_path / "there")]
    done = subprocess.run([sys.executable, "-m", "reproduction", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == (ROOT / "results" / "reproduction" / "claims.txt").read_text()


def test_without_a_clone_it_says_to_make_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "reproduction").mkdir()  # a folder of results, say
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(calibayes, "__file__", str(tmp_path / "lib" / "site-packages" / "calibayes" / "__init__.py"))
    monkeypatch.setattr(sys, "path", [place for place in sys.path if not (Path(place or ROOT) / "reproduction").is_dir()])
    for name in [name for name in sys.modules if name.partition(".")[0] == "reproduction"]:
        monkeypatch.delitem(sys.modules, name)
    done = reproduce("claims")
    assert done.exit_code == 2
    assert "Python finds no package 'reproduction'. Clone the repository of calibayes" in done.stderr
