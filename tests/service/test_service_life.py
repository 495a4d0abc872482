"""How a service starts and ends: limits on time, killed workers, SIGTERM, the drift alarm, the commands of the page."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.files.guaranteed import trained
from tests.service.pets import numbers
from tests.service.running import Service, read, serving

pytest.importorskip("fastapi")
pytestmark = pytest.mark.serve
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("service") / "pets.model"
    trained().model.save(path)
    return path


def test_rows_from_elsewhere_raise_the_alarm(model: Path) -> None:
    with serving(model) as running:
        for seed in range(20):
            assert running.predict(numbers(20, seed=seed + 100)).status == 200
            calm = running.metrics()
        assert calm['calibayes_drift_alarm{of="confidence"}'] == 0
        for seed in range(20):
            rows = [{"x": 0.6 + 0.01 * row["x"], "z": 0.5} for row in numbers(20, seed=seed)]  # where all classes meet
            assert running.predict(rows).status == 200
            drifted = running.metrics()
        assert calm["calibayes_drift_rows_total"] == 400
        assert drifted['calibayes_drift_alarm{of="confidence"}'] == 1
        assert drifted['calibayes_drift_evidence{of="confidence"}'] > 100


def test_sigterm_finishes_what_is_under_way_and_a_killed_worker_is_replaced(model: Path) -> None:
    with serving(model, "--workers", "2", "--token", "s3cret", "--max-seconds", "10") as running:
        token = {"Authorization": "Bearer s3cret"}
        assert running.predict(numbers(1)).status == 401
        assert running.predict(numbers(1), Authorization="Bearer secret").status == 401
        assert running.ask("GET", "/metrics").headers["www-authenticate"] == "Bearer"
        assert [running.ask("GET", path).status for path in ("/", "/health", "/page.js")] == [200, 200, 200]
        assert running.predict(numbers(1), **token).status == 200

        _wait_for(lambda: len(running.workers()) == 2)
        before = running.workers()
        os.kill(min(before), signal.SIGKILL)
        for _ in range(20):
            assert running.predict(numbers(2), **token).status == 200  # the other worker answers
        _wait_for(lambda: len(running.workers() - before) == 1)
        text = running.ask("GET", "/metrics", None, **token).body.decode()
        assert "calibayes_rows_total 41.0" in text  # what a worker counted stays counted

        slow = running.connect()
        body = json.dumps({"rows": numbers(5)}).encode()
        slow.putrequest("POST", "/predict")
        for name, value in {**token, "Content-Type": "application/json", "Content-Length": str(len(body))}.items():
            slow.putheader(name, value)
        slow.endheaders(body[:20])
        time.sleep(0.5)
        running.process.send_signal(signal.SIGTERM)
        time.sleep(1)
        slow.send(body[20:])
        answer = read(slow.getresponse())
        slow.close()
        assert (answer.status, len(answer.json["rows"])) == (200, 5)
        assert running.process.wait(timeout=60) == 0


def _wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 240
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_a_worker_that_dies_while_it_starts_delays_nothing_and_a_replaced_one_has_the_same_model(tmp_path: Path) -> None:
    path = tmp_path / "pets.model"
    trained().model.save(path)
    with serving(path) as running:
        answer = running.predict(numbers(3)).json
        path.unlink()
        begin = time.monotonic()
        for _ in range(2):
            _kill_the_worker(running)
            time.sleep(0.7)  # it starts, and is asked whether it is well
        assert running.predict(numbers(3)).json == answer
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(timeout=60) == 0
        assert time.monotonic() - begin < 110  # one that waits for the answer of a dead worker takes two minutes more


def _kill_the_worker(running: Service) -> None:
    (old,) = running.workers()
    os.kill(old, signal.SIGKILL)
    _wait_for(lambda: bool(running.workers() - {old}))


def test_a_slow_body_is_given_up(model: Path) -> None:
    with serving(model, "--max-seconds", "0.5", "--max-requests", "1") as running:
        slow = running.connect()
        slow.putrequest("POST", "/predict")
        slow.putheader("Content-Type", "application/json")
        slow.putheader("Content-Length", "100")
        slow.endheaders(b"{")
        time.sleep(0.1)
        busy = running.predict(numbers(1))
        answer = read(slow.getresponse())
        slow.close()
        assert (answer.status, "did not arrive within 0.5 seconds" in answer.detail) == (408, True)
        assert (busy.status, busy.headers["retry-after"]) == (503, "1")
        assert running.predict(numbers(1)).status == 200


def test_a_service_that_cannot_start_says_why(model: Path, tmp_path: Path) -> None:
    def failed(*words: str) -> str:
        command = [sys.executable, "-m", "calibayes", "serve", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
        assert (done.returncode, done.stdout) == (2, "")
        return done.stderr

    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert "Choose another --port" in failed(str(model), "--port", str(taken.getsockname()[1]))
    assert "this is not a name of a machine" in failed(str(model), "--host", "a..b")
    assert "there is no such file" in failed(str(tmp_path / "nothing.model"))


@pytest.mark.slow
def test_the_five_commands_of_the_page_run(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "deploying.md").read_text()
    block = re.search(r"```sh\n(.*?)```", page, flags=re.DOTALL)
    assert block is not None
    commands = block[1].splitlines()
    assert len(commands) == 5
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    program = f"{sys.executable} -m calibayes"
    lines = [re.sub(r"^calibayes", program, line).replace("localhost:8000", f"127.0.0.1:{port}") for line in commands]
    lines[0] = lines[0].replace("python", sys.executable, 1)
    lines[1] += " --method logistic-regression"
    lines[2] = lines[2].replace(" &", f" --port {port} & server=$!; trap 'kill -TERM $server; wait $server' EXIT")
    script = "\n".join(["set -e -o pipefail", *lines[:4], lines[4] + " -s -o answer.json --fail"])
    subprocess.run(["bash", "-c", script], cwd=tmp_path, check=True, timeout=500, capture_output=True)
    rows = json.loads((tmp_path / "answer.json").read_text())["rows"]
    assert len(rows) == 2
    assert {row["decision"] for row in rows} <= {"benign", "malignant", None}
