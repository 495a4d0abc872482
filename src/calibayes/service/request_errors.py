"""Requests that are turned away, each with its HTTP status."""

from __future__ import annotations

from typing import final

from calibayes.errors import CalibayesError

__all__ = ["RequestError"]


@final
class RequestError(CalibayesError):
    """A request that cannot be answered.

    Attributes:
        status: of HTTP, such as 413.
        headers: of the answer.
    """

    def __init__(self, status: int, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status = status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}
