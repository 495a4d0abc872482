"""Run a service: a process that holds the port, and workers that answer requests and are replaced if they die."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from calibayes.errors import CalibayesError, InvalidArgumentError
from calibayes.extras import require_package
from calibayes.service.settings import ServiceSettings
from calibayes.terminal import print_error

__all__ = ["bound_socket", "check_packages", "run_service", "worker_app"]

_METRICS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # where prometheus_client adds up the numbers of all workers
_START_SECONDS = 120  # that a worker may take to load everything
_CONNECTIONS = 1024
_BACKLOG = 2048
_STARTUP_FAILURE = 3  # the exit code that tells uvicorn not to try again


def check_packages() -> Any:
    """Return uvicorn; raise an error that says how to install what is missing."""
    for name in ("fastapi", "python_multipart", "prometheus_client"):
        require_package(name, "A service", "serve")
    return require_package("uvicorn", "A service", "serve")


def bound_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address, or raise an error that says what to do."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        # With its protocol: asyncio looks for it before it turns off Nagle's algorithm, which holds answers back for 40 ms.
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(_BACKLOG)  # so that connections wait while there is no worker, and are not refused
    except (OSError, UnicodeError) as error:  # a name that cannot be one
        why = error.strerror if isinstance(error, OSError) else "this is not a name of a machine"
        raise InvalidArgumentError(f"Cannot listen at {host}, port {port}: {why}. Choose another --port.") from None
    return listening


def run_service(
    settings: ServiceSettings, listening: socket.socket, app: Callable[[ServiceSettings], Any] | None = None
) -> int:
    """Serve until SIGTERM or Ctrl-C, finish what is under way, and return the exit code.

    Args:
        settings: of the service.
        listening: what `bound_socket` returned.
        app: makes the application of a worker; `create_app` by default.
    """
    uvicorn = check_packages()
    from calibayes.service.worker_processes import WorkerProcesses

    with TemporaryDirectory(prefix="calibayes-service-") as name:
        folder = Path(name)
        config = uvicorn.Config(
            partial(worker_app, _with_own_files(settings, folder), app),
            factory=True,
            workers=settings.workers,
            lifespan="on",
            ws="none",
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=max(_CONNECTIONS, 2 * settings.max_requests),
            timeout_graceful_shutdown=int(settings.max_seconds) + 1,
            timeout_worker_healthcheck=_START_SECONDS,
        )
        os.environ[_METRICS_FOLDER] = str(_made(folder / "metrics"))
        supervisor = WorkerProcesses(config, [listening])
        supervisor.run()
    failed = any(process.exitcode == _STARTUP_FAILURE for process in supervisor.processes)
    return _STARTUP_FAILURE if failed else 0


def _with_own_files(settings: ServiceSettings, folder: Path) -> ServiceSettings:
    """Copy the files of the settings, so that a worker that is replaced has the same, even if they were written anew since."""
    costs = settings.actions.get("costs")
    copied = {} if costs is None else {"costs": _copied(Path(costs), folder / "costs")}
    return replace(settings, model=_copied(settings.model, folder / "model"), actions={**settings.actions, **copied})


def _copied(path: Path, folder: Path) -> Path:
    return Path(shutil.copyfile(path, _made(folder) / path.name)) if path.is_file() else path


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def worker_app(settings: ServiceSettings, app: Callable[[ServiceSettings], Any] | None) -> Any:
    """Make the application of a worker; an error in the model ends the service, as the next worker would meet it too."""
    from calibayes.service.http_app import create_app

    try:
        return (app or create_app)(settings)
    except CalibayesError as error:
        print_error(error)
        raise SystemExit(_STARTUP_FAILURE) from None
