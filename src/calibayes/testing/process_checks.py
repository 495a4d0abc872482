"""Check that several processes train as one does."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import torch

from calibayes.errors import InvalidArgumentError
from calibayes.testing.check_runner import run_checks
from calibayes.testing.comparisons import close, expect, same_bits
from calibayes.testing.network_cases import NETWORKS, NetworkCase
from calibayes.testing.posterior_subject import Factory, PosteriorSubject, sgd
from calibayes.training.training_hooks import cloned_state

__all__ = ["check_with_processes", "train_in_group"]

_TOLERANCE = 1e-10
_SECONDS = 300
_WORKER = "import sys; from calibayes.testing.process_checks import train_in_group; train_in_group(sys.argv[1])"


def check_with_processes(
    factory: Factory | str,
    networks: Mapping[str, NetworkCase] | None = None,
    *,
    processes: int = 2,
    training: Mapping[str, Any] | None = None,
) -> None:
    """Check that processes started with ``torchrun`` end with the weights and predictions of a single one.

    Networks with dropout are left out: each process draws different masks.

    Args:
        factory: makes the posterior of a network: importable, or ``"module:function"``, or anything that cloudpickle can send.
        networks: what to check it on; `calibayes.testing.NETWORKS` by default.
        processes: how many.
        training: further arguments of `calibayes.fit`.

    Raises:
        AssertionError: says what differed.
    """
    if isinstance(factory, str):
        module, _, name = factory.partition(":")
        factory = cast(Factory, getattr(import_module(module), name))
    cases = {name: case for name, case in (networks or NETWORKS).items() if not case.has_dropout}
    if not cases:
        raise InvalidArgumentError("Expected a network without dropout: each process draws different masks.")
    subjects = {name: PosteriorSubject(factory, case, training or {}) for name, case in cases.items()}

    def check_processes(subjects: Mapping[str, PosteriorSubject]) -> None:
        results = _started(subjects, processes)
        for name, subject in subjects.items():
            alone = _trained(subject, group=None)
            for rank, of_rank in enumerate(results):
                where = f"on the network {name!r}, in process {rank} of {processes}, compared with a single one,"
                close(of_rank[name]["state"], alone["state"], f"the state after `fit` {where}", _TOLERANCE)
                close(of_rank[name]["probs"], alone["probs"], f"`predict` {where}", _TOLERANCE)
                first = results[0][name]["state"]
                same_bits(of_rank[name]["state"], first, f"the state of process {rank}, compared with process 0")

    run_checks((check_processes,), subjects, next(iter(subjects.values())).title)


def train_in_group(folder: str) -> None:
    """Train the subjects that are in a folder, as one of several processes, and write the results there."""
    torch.set_num_threads(1)
    subjects = pickle.loads((Path(folder) / "subjects.pickle").read_bytes())
    results = {name: _trained(subject, group="auto") for name, subject in subjects.items()}
    rank = torch.distributed.get_rank() if torch.distributed.is_initialized() else 0
    torch.save(results, Path(folder) / f"rank{rank}.pt")


def _trained(subject: PosteriorSubject, group: Any) -> dict[str, Any]:
    """The state after training with all processes of a group, and its predictions."""
    posterior = subject.posterior(double=True)
    subject.fit(posterior, double=True, epochs=3, optimizer=sgd, group=group)
    return {"state": cloned_state(posterior), "probs": subject.predict(posterior, group=group).probs}


def _started(subjects: Mapping[str, PosteriorSubject], processes: int) -> list[dict[str, dict[str, Any]]]:
    pickler: Any = pickle if find_spec("cloudpickle") is None else import_module("cloudpickle")
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}", "--no-python"]
    path = os.pathsep.join(filter(None, [str(Path.cwd()), *sys.path]))
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path}
    with TemporaryDirectory() as folder:
        (Path(folder) / "subjects.pickle").write_bytes(pickler.dumps(dict(subjects)))
        command = [*launcher, sys.executable, "-c", _WORKER, folder]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_SECONDS, check=False)
        expect(done.returncode == 0, f"the processes failed:\n{done.stderr[-4000:]}")
        return [torch.load(Path(folder) / f"rank{rank}.pt") for rank in range(processes)]
