"""Predictions on real clusters of two processes: the bytes of one process, each shard once, and no work lost to a kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.clusters import dask_of_two, ray_of_two
from tests.files.made import rows, table_model, write_csv

from calibayes.errors import DataError
from calibayes.files import predict_file
from calibayes.files.prediction_shards import ShardFolder
from calibayes.sweeps.clusters import Cluster

# What these libraries do to themselves is not ours to judge: sockets and files that they leave to the end.
pytestmark = pytest.mark.filterwarnings("default")

BODY = rows(1000) * 50  # seven blocks
ONE_BLOCK = "calibayes.files.prediction_cluster.SHARD_BLOCKS"


@pytest.fixture(autouse=True)
def _small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ONE_BLOCK, 1)


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    with ray_of_two() as ray:
        yield ray


@pytest.fixture(scope="module")
def dask() -> Iterator[str]:
    with dask_of_two() as address:
        yield address


_KILLED = """
import sys
from calibayes.files import load, predict_file, prediction_cluster
from calibayes.files.prediction_shards import ShardFolder

prediction_cluster.SHARD_BLOCKS = 1
write = ShardFolder.write

def write_three(self, number, blocks):
    write(self, number, blocks)
    if len(list(self.path.glob("shard-*"))) == 3:
        print("three", flush=True)
        sys.stdin.read()  # until it is killed

ShardFolder.write = write_three
model, source, out, backend, address = sys.argv[1:]
predict_file(load(model), source, out, backend=backend, address=address)
"""


def check_sharing(folder: Path, backend: str, address: str | None) -> None:
    """The bytes are those of one process, for both formats, and no folder is left."""
    source = write_csv(folder / "in.csv", BODY)
    for ending in (".csv", ".parquet"):
        alone = predict_file(table_model(), source, folder / f"alone{ending}", workers=1)
        done = predict_file(table_model(), source, folder / f"out{ending}", backend=backend, address=address)
        assert done == alone
        assert (folder / f"out{ending}").read_bytes() == (folder / f"alone{ending}").read_bytes()
    assert list(folder.glob("*.shards")) == []


def check_error(folder: Path, backend: str, address: str | None) -> None:
    """The first bad cell of the file is named as one process names it."""
    body = [list(row) for row in BODY]
    body[20_000][0] = body[30_000][0] = "many"
    source = write_csv(folder / "bad.csv", body)
    with pytest.raises(DataError, match=r"bad\.csv', line 20002, column 'size': 'many' is not a number"):
        predict_file(table_model(), source, folder / "bad.out.csv", backend=backend, address=address)
    assert not (folder / "bad.out.csv").exists()


def check_resumed(folder: Path, backend: str, address: str) -> None:
    """A run that is killed goes on with the shards that it has; another model, file or option begins anew."""
    source, out, shards = write_csv(folder / "long.csv", BODY), folder / "long.out.csv", folder / "long.out.csv.shards"
    table_model().save(folder / "model")
    process = subprocess.Popen(
        [sys.executable, "-c", _KILLED, folder / "model", source, out, backend, address],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "three\n"
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    assert not out.exists()
    before = {path.name: path.read_bytes() for path in shards.glob("shard-*")}
    assert len(before) == 3

    said: list[str] = []
    predict_file(table_model(), source, folder / "alone.csv", workers=1)
    predict_file(table_model(), source, out, backend=backend, address=address, say=said.append)
    assert said == [f"From before: 3 of 7 shards in '{shards}'."]
    assert out.read_bytes() == (folder / "alone.csv").read_bytes()
    assert not shards.exists()


def check_death(folder: Path, backend: str, address: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that dies while it predicts costs its shard another attempt."""
    source, marker = write_csv(folder / "in.csv", BODY[:20_000]), folder / "died"
    predict_file(table_model(), source, folder / "alone.csv", workers=1)
    monkeypatch.setattr("calibayes.files.prediction_cluster._predict_shard", DiesOnce(marker))
    predict_file(table_model(), source, folder / "out.csv", backend=backend, address=address)
    assert marker.exists()
    assert (folder / "out.csv").read_bytes() == (folder / "alone.csv").read_bytes()


class DiesOnce:
    """Predicts shards as the real function does, except that the first one kills its worker."""

    def __init__(self, marker: Path) -> None:
        self.marker = str(marker)

    def __call__(self, predictor: bytes, key: str, blocks: list[Any]) -> Any:
        from calibayes.files.prediction_cluster import _predict_shard

        if blocks[0][1] == 0 and not Path(self.marker).exists():
            Path(self.marker).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return _predict_shard(predictor, key, blocks)


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster of one thread, under the name of Dask."""

    @contextmanager
    def opened(*_: Any, **__: Any) -> Iterator[Cluster]:
        with ThreadPoolExecutor(1) as pool:

            def submit(task: Callable[[], Any]) -> Future[Any]:
                return pool.submit(task)

            yield Cluster(workers=1, submit=submit, cancel=lambda future: future.cancel(), died=())

    monkeypatch.setattr("calibayes.sweeps.clusters.open_cluster", opened)


@pytest.mark.usefixtures("threads")
def test_the_first_error_comes_first_where_rows_of_the_same_shard_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ONE_BLOCK, 2)
    body = [list(row) for row in BODY[:30_000]]
    body[20_000][0], body[29_000] = "many", body[29_000][:2]
    source, messages = write_csv(tmp_path / "in.csv", body), set()
    for backend in ("local", "dask"):
        with pytest.raises(DataError, match="line 20002") as raised:
            predict_file(table_model(), source, tmp_path / "out.csv", backend=backend)
        messages.add(str(raised.value))
    assert len(messages) == 1
    kept = ShardFolder(tmp_path / "out.csv").path.glob("shard-*")
    assert [path.name for path in kept] == ["shard-000000"]  # none with fewer blocks than it should have


@pytest.mark.usefixtures("threads")
def test_a_shard_that_disappears_is_an_error_and_not_a_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = ShardFolder.write

    def lose_the_second(self: ShardFolder, number: int, blocks: list[Any]) -> None:
        write(self, number, blocks)
        if number == 1:
            next(self.path.glob("shard-000001")).unlink()

    source = write_csv(tmp_path / "in.csv", BODY[:30_000])
    with monkeypatch.context() as patch:
        patch.setattr(ShardFolder, "write", lose_the_second)
        with pytest.raises(DataError, match=r"Shard 1 in .* was removed or damaged"):
            predict_file(table_model(), source, tmp_path / "out.csv", backend="dask")
    assert not (tmp_path / "out.csv").exists()
    predict_file(table_model(), source, tmp_path / "alone.csv", workers=1)
    predict_file(table_model(), source, tmp_path / "out.csv", backend="dask")
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "alone.csv").read_bytes()


@pytest.mark.ray
def test_ray_gives_the_bytes_and_the_errors_of_one_process(ray: Any, tmp_path: Path) -> None:
    check_sharing(tmp_path, "ray", None)
    check_error(tmp_path, "ray", None)
    assert ray.is_initialized()


@pytest.mark.ray
def test_ray_loses_nothing_when_a_worker_or_the_command_is_killed(
    ray: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_resumed(tmp_path, "ray", ray.get_runtime_context().gcs_address)
    check_death(tmp_path, "ray", None, monkeypatch)


@pytest.mark.dask
def test_dask_gives_the_bytes_and_the_errors_of_one_process(dask: str, tmp_path: Path) -> None:
    check_sharing(tmp_path, "dask", dask)
    check_error(tmp_path, "dask", dask)


@pytest.mark.dask
def test_dask_loses_nothing_when_a_worker_or_the_command_is_killed(
    dask: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_resumed(tmp_path, "dask", dask)
    check_death(tmp_path, "dask", dask, monkeypatch)
