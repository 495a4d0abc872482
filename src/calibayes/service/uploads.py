"""Uploaded tables and images, read as the files of the command line are: from a temporary file of the service's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from calibayes.errors import CalibayesError, DataError
from calibayes.files.read_rows import read_rows
from calibayes.service.request_errors import RequestError
from calibayes.tables import RowBlock, TableOptions
from calibayes.wording import counted, shown, shown_path

__all__ = ["IMAGES", "TABLES", "ending_of", "uploaded_rows"]

TABLES = {"text/csv": ".csv", "text/tab-separated-values": ".tsv", "application/x-ndjson": ".jsonl"}
IMAGES = {"image/png": ".png", "image/jpeg": ".jpg"}
_ENDINGS = {
    ".csv": ".csv", ".tsv": ".tsv", ".txt": ".csv", ".jsonl": ".jsonl", ".ndjson": ".jsonl",
    ".png": ".png", ".jpg": ".jpg", ".jpeg": ".jpg",
}  # fmt: skip
_GZIP = b"\x1f\x8b"


def ending_of(file_name: str, media_type: str) -> str:
    """Return the kind of an uploaded file, an ending from a fixed list: by its name, or else by its media type.

    Examples:
        >>> ending_of("../../etc/New wines.CSV", "application/octet-stream"), ending_of("", "image/jpeg")
        ('.csv', '.jpg')
    """
    for ending, kind in _ENDINGS.items():
        if file_name.lower().endswith(ending):
            return kind
    kind = (TABLES | IMAGES).get(media_type, "")
    if not kind:
        accepted = ", ".join(_ENDINGS)
        raise RequestError(
            415, f"A file called {shown(file_name)} of the type {shown(media_type)} cannot be read: send {accepted}."
        )
    return kind


@contextmanager
def uploaded_rows(data: bytes, ending: str, options: TableOptions, most_rows: int) -> Iterator[RowBlock]:
    """Read the rows of an upload; errors in the ``with`` block name it as ``'upload.csv'``."""
    if data.startswith(_GZIP):
        raise RequestError(415, "The upload is compressed. Unpack it first.")
    with TemporaryDirectory(prefix="calibayes-") as folder:
        path = Path(folder) / f"upload{ending}"
        path.write_bytes(data)
        try:
            block, total = read_rows(path, options)
            if total > most_rows:
                what = f"The file has {counted(total, 'row')}, but at most {most_rows:,} are taken. Send them in parts."
                raise RequestError(413, what)
            yield block
        except RequestError:
            raise
        except CalibayesError as error:
            raise DataError(str(error).replace(shown_path(path), repr(path.name))) from None
