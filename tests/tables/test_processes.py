"""What only a real process shows: how it ends, how long it takes, and what is left when the disk is full."""

from __future__ import annotations

import gzip
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.files.made import rows, table_model, write_csv
from tests.test_cli import COMMAND

from calibayes.files import load

_READ = """
import sys
from pathlib import Path
from calibayes.tables import TableOptions, open_table
table = open_table(Path(sys.argv[1]), TableOptions(encoding=sys.argv[2]))
next(table.blocks())  # and the process ends, whatever Arrow's threads are doing
"""


@pytest.mark.parametrize(
    ("ending", "encoding"), [("csv", "utf-8"), pytest.param("csv", "latin-1", marks=pytest.mark.slow), ("csv.gz", "utf-8")]
)
@pytest.mark.slow
def test_a_process_that_stops_reading_half_way_ends_well(tmp_path: Path, ending: str, encoding: str) -> None:
    content = b"a,b\n" + b'1,"x"\n' * 3_000_000
    path = tmp_path / f"long.{ending}"
    path.write_bytes(gzip.compress(content, 1) if ending.endswith("gz") else content)
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", _READ, path, encoding], check=False, capture_output=True, text=True, timeout=300
        )
        assert (done.returncode, done.stderr) == (0, "")


def test_a_wrong_option_is_an_error_also_right_after_a_table_was_read(tmp_path: Path) -> None:
    (tmp_path / "short.csv").write_text("a,b\n" + "1,x\n" * 500)
    for _ in range(4):  # with threads of Arrow's own, which are still there at the end, more than half were aborted
        words = [*COMMAND, "train", str(tmp_path / "short.csv")]
        done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=300)
        assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr


def test_a_cut_off_gzip_is_an_error_at_once(tmp_path: Path) -> None:
    from calibayes.data.predictions import read_predictions
    from calibayes.errors import PredictionFileError

    whole = gzip.compress(b"label,p_a,p_b\n" + b"a,0.25,0.75\nb,0.5,0.5\n" * 100_000, mtime=0)
    (tmp_path / "p.csv.gz").write_bytes(whole[:-20])
    begun = time.process_time()
    with pytest.raises(PredictionFileError, match="damaged or cut off"):
        read_predictions(tmp_path / "p.csv.gz")
    assert time.process_time() - begun < 5


def _mount_works() -> bool:
    probe = ["unshare", "-rm", "sh", "-c", "mount -t tmpfs -o size=4k tmpfs /mnt"]
    try:
        return subprocess.run(probe, check=False, capture_output=True, timeout=10).returncode == 0
    except OSError:
        return False


@pytest.mark.skipif(not _mount_works(), reason="a small disk cannot be mounted here")
def test_a_full_disk_at_the_end_of_a_training_loses_nothing(tmp_path: Path) -> None:
    data = write_csv(tmp_path / "data.csv", rows(90))
    (tmp_path / "small").mkdir()
    (tmp_path / "spare").mkdir()
    words = [*COMMAND, "train", data, "--target", "kind", "--scheme", "fnn", "--epochs", "1", "-o", tmp_path / "small" / "m"]
    script = f'mount -t tmpfs -o size=8k tmpfs {tmp_path / "small"} && TMPDIR={tmp_path / "spare"} "$@"'
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script, "sh", *map(str, words)], check=False, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 2, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("calibayes: ")]
    assert "No space left on device" in line
    assert "Traceback" not in done.stderr
    (kept,) = (tmp_path / "spare").rglob("m")
    assert str(kept) in line
    assert load(kept).classes == ("large", "small")


def test_a_limit_on_the_size_of_files_at_the_end_of_a_training_loses_nothing(tmp_path: Path) -> None:
    data = write_csv(tmp_path / "data.csv", rows(90))
    (tmp_path / "spare").mkdir()
    words = [*COMMAND, "train", data, "--target", "kind", "--scheme", "fnn", "--epochs", "1", "-o", tmp_path / "m"]
    script = f'ulimit -f 4 && TMPDIR={tmp_path / "spare"} "$@"'
    done = subprocess.run(
        ["sh", "-c", script, "sh", *map(str, words)], check=False, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 2, done.stderr
    line = done.stderr.splitlines()[-1]
    assert "File too large" in line
    assert "Files may have at most 2,048 bytes here (ulimit -f)." in line
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "m").exists()
    _, _, join = line.partition("without the limit: ")
    assert all(part.stat().st_size <= 2048 for part in (tmp_path / "spare").rglob("part*"))
    subprocess.run(["sh", "-c", join], check=True)
    assert load(tmp_path / "m").classes == ("large", "small")


def test_a_limit_on_the_size_of_files_is_named_where_predictions_are_written(tmp_path: Path) -> None:
    data = write_csv(tmp_path / "data.csv", rows(900))
    table_model().save(tmp_path / "model")
    words = [*COMMAND, "predict", tmp_path / "model", data, "-o", tmp_path / "out.csv"]
    done = subprocess.run(
        ["sh", "-c", 'ulimit -f 40 && "$@"', "sh", *map(str, words)], check=False, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 2, done.stderr
    line = "calibayes: cannot write: File too large. Raise the limit on the size of files (ulimit -f), and try again."
    assert done.stderr.splitlines()[-1] == line
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.csv", "model"]
