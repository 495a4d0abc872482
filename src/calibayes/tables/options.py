"""The format of a table's text, where the file itself cannot say it."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from datetime import datetime

from calibayes.errors import InvalidArgumentError

__all__ = ["TableOptions"]

_SAMPLE_DATE = datetime(2023, 11, 29)


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """The format of a table's text; every command that reads a table has these options.

    Attributes:
        encoding: of text files.
        delimiter: between the cells of a CSV file; detected from the first rows if None.
        decimal: the decimal mark of numbers written as text, ``"."`` or ``","``.
        date_format: of dates, as in ``datetime.strptime``; ISO 8601 dates are always read.
        header: whether the first row has the column names; otherwise the columns are ``column1``, ``column2`` and so on.

    Examples:
        >>> TableOptions(encoding="Latin1", decimal=",")
        TableOptions(encoding='iso8859-1', delimiter=None, decimal=',', date_format=None, header=True)
    """

    encoding: str = "utf-8"
    delimiter: str | None = None
    decimal: str = "."
    date_format: str | None = None
    header: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "encoding", _codec_name(self.encoding))
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in '"\r\n'):
            raise InvalidArgumentError(f"Expected `delimiter` to be one character like ',' or ';', but got {self.delimiter!r}.")
        if self.decimal not in (".", ","):
            raise InvalidArgumentError(f"Expected `decimal` to be '.' or ',', but got {self.decimal!r}.")
        if self.delimiter == self.decimal:
            raise InvalidArgumentError(f"Expected `delimiter` and `decimal` to differ, but both are {self.decimal!r}.")
        if self.date_format is not None and not _is_date_format(self.date_format):
            raise InvalidArgumentError(
                f"Expected `date_format` to have a year, a month and a day, like %d.%m.%Y, but got {self.date_format!r}."
            )


def _codec_name(encoding: str) -> str:
    try:
        "".encode(encoding)  # rejects codecs that are not for text, such as hex
        return codecs.lookup(encoding).name
    except (LookupError, ValueError):
        wanted = "one like utf-8, latin-1, cp1252 or utf-16"
        raise InvalidArgumentError(f"Expected `encoding` to be {wanted}, but got {encoding!r}.") from None


def _is_date_format(text: str) -> bool:
    try:
        return datetime.strptime(_SAMPLE_DATE.strftime(text), text).date() == _SAMPLE_DATE.date()
    except ValueError:
        return False
