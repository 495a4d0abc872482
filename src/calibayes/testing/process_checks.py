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
from typing import Any

import torch

from calibayes.errors import InvalidArgumentError
from calibayes.testing.check_runner import run_checks
from calibayes.testing.comparisons import close, expect, same_bits
from calibayes.testing.network_cases import NETWORKS, NetworkCase
from calibayes.testing.posterior_subject import Factory, PosteriorSubject, sgd, state

__all__ = ["Results", "check_with_processes", "trained_results"]

Results = dict[str, Any]

_TOLERANCE = 1e-10
_SECONDS = 300


def check_with_processes(
    factory: Factory | str,
    networks: Mapping[str, NetworkCase] | None = None,
    *,
    processes: int = 2,
    training: Mapping[str, Any] | None = None,
) -> None:
    """Check that processes started with ``torchrun`` end with the weights and predictions of a single one.

    Networks with dropout are left out: each process draws masks of its own.

    Args:
        factory: makes the posterior of a network: importable, or ``"module:function"``, or anything that cloudpickle can send.
        networks: what to check it on; `calibayes.testing.NETWORKS` by default.
        processes: how many.
        training: further arguments of `calibayes.fit`.

    Raises:
        AssertionError: says what differed.
    """
    made = _imported(factory) if isinstance(factory, str) else factory
    cases = {name: case for name, case in (networks or NETWORKS).items() if not case.has_dropout}
    if not cases:
        raise InvalidArgumentError("Expected a network without dropout: processes draw masks of their own.")
    subjects = {name: PosteriorSubject(made, case, training or {}) for name, case in cases.items()}

    def check_processes(subjects: Mapping[str, PosteriorSubject]) -> None:
        found = _started(subjects, processes)
        for name, subject in subjects.items():
            alone = trained_results(subject, group=None)
            for rank, results in enumerate(found):
                where = f"on the network {name!r}, in process {rank} of {processes}, compared with a single one,"
                close(results[name]["state"], alone["state"], f"the state after `fit` {where}", _TOLERANCE)
                close(results[name]["probs"], alone["probs"], f"`predict` {where}", _TOLERANCE)
                same_bits(
                    results[name]["state"], found[0][name]["state"], f"the state of process {rank}, compared with process 0"
                )

    run_checks((check_processes,), subjects, next(iter(subjects.values())).title)


def trained_results(subject: PosteriorSubject, group: Any) -> Results:
    """The state after training with all processes of a group, and what it predicts."""
    posterior = subject.posterior(double=True)
    subject.fit(posterior, double=True, epochs=3, optimizer=sgd, group=group)
    return {"state": state(posterior), "probs": subject.predict(posterior, group=group).probs}


def _started(subjects: Mapping[str, PosteriorSubject], processes: int) -> list[dict[str, Results]]:
    with TemporaryDirectory() as folder:
        (Path(folder) / "subjects.pickle").write_bytes(_pickled(dict(subjects)))
        launcher = ("-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}")
        done = subprocess.run(
            [sys.executable, *launcher, "-m", "calibayes.testing.process_worker", folder],
            env={
                **os.environ,
                "OMP_NUM_THREADS": "1",
                "PYTHONPATH": os.pathsep.join(filter(None, [str(Path.cwd()), *sys.path])),
            },
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        expect(done.returncode == 0, f"the processes failed:\n{done.stderr[-4000:]}")
        return [torch.load(Path(folder) / f"rank{rank}.pt") for rank in range(processes)]


def _pickled(subjects: dict[str, PosteriorSubject]) -> bytes:
    if find_spec("cloudpickle") is None:
        return pickle.dumps(subjects)
    found: bytes = import_module("cloudpickle").dumps(subjects)
    return found


def _imported(factory: str) -> Factory:
    module, _, name = factory.partition(":")
    found: Factory = getattr(import_module(module), name)
    return found
