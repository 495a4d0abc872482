"""Limits on the rows and columns of a request, so that a short body cannot take up much time or memory."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import final

from calibayes.service.request_errors import RequestError
from calibayes.wording import counted

__all__ = ["RowLimits"]

_SPARE_COLUMNS = 1000  # that the model does not use


@final
@dataclass(frozen=True)
class RowLimits:
    """The most rows and columns that a request may have.

    Attributes:
        rows: of a request.
        needed: the columns that the model uses.

    Examples:
        >>> RowLimits(10, {"x"}).check_columns(["x", "unused"])
    """

    rows: int
    needed: Collection[str]

    def check_rows(self, rows: int) -> None:
        """Raise if there are too many rows."""
        if rows > self.rows:
            raise RequestError(413, f"There are too many rows: at most {self.rows:,} are taken. Send them in parts.")

    def check_columns(self, names: Collection[str]) -> None:
        """Raise if there are many more columns than the model uses."""
        most = len(self.needed) + _SPARE_COLUMNS
        if len(names) > most:
            raise RequestError(
                413,
                f"There are {counted(len(names), 'column')}, but at most {most:,} are taken. Leave out those that the model "
                f"does not use: it needs {counted(len(self.needed), 'column')}.",
            )
