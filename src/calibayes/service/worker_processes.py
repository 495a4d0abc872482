"""The worker processes of a service, each replaced as soon as it is gone, also while it starts."""

from __future__ import annotations

from typing import final

from uvicorn.supervisors import Multiprocess

__all__ = ["WorkerProcesses"]


@final
class WorkerProcesses(Multiprocess):  # type: ignore[misc]
    """uvicorn's supervisor, which does not wait for the answer of a worker that has died.

    It asks each worker whether it is well, and waits for the answer as long as a start may take. As it holds both ends of the
    pipe itself, it would not notice that nobody is left to answer: no other worker would be replaced, and no signal handled.
    """

    def keep_subprocess_alive(self) -> None:
        """Replace the workers that are gone."""
        for process in self.processes:
            process.child_conn.close()  # the worker has its own
        super().keep_subprocess_alive()
