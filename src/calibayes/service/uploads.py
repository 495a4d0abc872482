"""Uploaded tables and images, read as the files of the command line are: from a temporary file of the service's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from calibayes.errors import CalibayesError, DataError
from calibayes.files.read_rows import joined_blocks, read_rows
from calibayes.service.request_errors import RequestError
from calibayes.service.row_limits import RowLimits
from calibayes.tables import RowBlock, TableOptions, open_table
from calibayes.tables.formats import file_problem
from calibayes.wording import shown, shown_path

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
def uploaded_rows(data: bytes, ending: str, options: TableOptions, limits: RowLimits) -> Iterator[RowBlock]:
    """Read the rows of an upload; errors in the ``with`` block name it as ``'upload.csv'``."""
    if data.startswith(_GZIP):
        raise RequestError(415, "The upload is compressed. Unpack it first.")
    with TemporaryDirectory(prefix="calibayes-") as folder:
        path = Path(folder) / f"upload{ending}"
        path.write_bytes(data)
        try:
            yield read_rows(path, options)[0] if ending in IMAGES.values() else _table_rows(path, options, limits)
        except RequestError:
            raise
        except CalibayesError as error:
            raise DataError(str(error).replace(shown_path(path), repr(path.name))) from None


def _table_rows(path: Path, options: TableOptions, limits: RowLimits) -> RowBlock:
    """Read a table; stop as soon as it turns out to be too wide or too long."""
    table = open_table(path, options)
    limits.check_columns(table.names)
    blocks, rows = [], 0
    with closing(table.blocks()) as parts:
        for block in parts:
            blocks.append(block)
            rows += len(block.rows)
            limits.check_rows(rows)
    if not rows:
        raise file_problem(path, "there are no rows. Write one for each example.")
    return joined_blocks(blocks)
