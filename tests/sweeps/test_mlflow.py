"""Trials in a real MLflow that keeps files; it needs the extra of that name."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from tests.sweeps import acts

import calibayes as cb
from calibayes.errors import InvalidArgumentError, MissingExtraError


def swept(trial: Any, folder: Path, numbers: range, experiment: str = "tried") -> cb.sweeps.Sweep:
    settings = cb.grid(n=numbers, log=str(folder / "log"), widths=[[16, 8]])
    return cb.sweep(trial, settings, folder / "there", workers=1, threads=1, mlflow=experiment, progress=False)


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    return mlflow.MlflowClient((tmp_path / "there" / "mlruns").as_uri())


def runs(client: Any, experiment: str = "tried") -> dict[str, Any]:
    """The finished and failed runs of an experiment, by the setting ``n``."""
    found = client.search_runs([client.get_experiment_by_name(experiment).experiment_id])
    return {run.data.params["n"]: run for run in found}


@pytest.mark.mlflow
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_settings_numbers_epochs_and_errors_are_logged_once(tmp_path: Path, client: Any) -> None:
    swept(acts.learns, tmp_path, range(1, 3))
    found = swept(acts.learns, tmp_path, range(1, 4))
    logged = runs(client)
    assert sorted(logged) == ["1", "2", "3"]
    assert len(client.search_runs([client.get_experiment_by_name("tried").experiment_id])) == 3 + 1  # 2 failed twice
    first = logged["1"]
    assert first.info.status == "FINISHED"
    assert first.data.params == {"n": "1", "log": str(tmp_path / "log"), "widths": "[16, 8]"}
    assert first.data.metrics["final.nll"] == 0.25
    assert first.data.metrics["seconds"] == pytest.approx(found[0].seconds)
    history = client.get_metric_history(first.info.run_id, "epoch.nll")
    assert [(each.step, each.value) for each in history] == [(1, 1.0), (2, 0.5)]
    assert first.data.tags["trial"] == "tests.sweeps.acts:learns"
    assert first.data.tags["torch"] == found[0].record.versions["torch"]
    assert logged["2"].info.status == "FAILED"
    assert logged["2"].data.tags["error"] == "ArithmeticError: two is too many"


@pytest.mark.mlflow
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_what_ran_without_mlflow_is_logged_when_it_is_asked_for(tmp_path: Path, client: Any) -> None:
    settings = cb.grid(n=[1], log=str(tmp_path / "log"), widths=[[16, 8]])
    cb.sweep(acts.learns, settings, tmp_path / "there", workers=1, threads=1, progress=False)
    assert swept(acts.learns, tmp_path, range(1, 2)).kept == 1
    assert list(runs(client)) == ["1"]
    assert acts.runs(tmp_path / "log") == {1: 1}


@pytest.mark.mlflow
def test_a_server_that_is_not_there_is_named_before_anything_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with pytest.raises(InvalidArgumentError, match=r"experiment 'tried' of MLflow at 'http://127.0.0.1:9'"):
        swept(acts.learns, tmp_path, range(1, 3))
    assert acts.lines(tmp_path / "log") == []


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'calibayes\[mlflow\]'"):
        swept(acts.learns, tmp_path, range(1, 3))
