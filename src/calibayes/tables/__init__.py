"""The one reader of tables: CSV, JSON lines, Parquet and Excel files as blocks of rows that know where each cell is."""

from __future__ import annotations

from pathlib import Path

from calibayes.tables.delimited import DelimitedFile
from calibayes.tables.formats import check_file, file_problem
from calibayes.tables.options import TableOptions
from calibayes.tables.parquet import ParquetTable, frame_block
from calibayes.tables.record_files import ExcelFile, JsonLinesFile
from calibayes.tables.table_file import RowBlock, RowSource, TableFile, UnnamedRows

__all__ = ["RowBlock", "RowSource", "TableFile", "TableOptions", "UnnamedRows", "frame_block", "open_table"]

_READERS: dict[str, type[DelimitedFile | JsonLinesFile | ParquetTable | ExcelFile]] = {
    ".csv": DelimitedFile,
    ".jsonl": JsonLinesFile,
    ".parquet": ParquetTable,
    ".xlsx": ExcelFile,
}


def open_table(path: Path, options: TableOptions | None = None) -> TableFile:
    """Open a table in a file; raise a `DataError` that says why if it is not one.

    Args:
        path: a file ending in ``.csv``, ``.tsv``, ``.txt``, ``.jsonl``, ``.ndjson`` (each also with ``.gz``), ``.parquet`` or
            ``.xlsx``.
        options: the format of its text.

    Examples:
        >>> from tempfile import mkdtemp
        >>> path = Path(mkdtemp()) / "pets.csv"
        >>> _ = path.write_text("name;weight\\nRex;30,5\\nTom;4\\n")
        >>> (block,) = open_table(path, TableOptions(decimal=",")).blocks(numbers={"weight"})
        >>> block.table.to_pydict(), block.source.where(1)
        ({'name': ['Rex', 'Tom'], 'weight': [30.5, 4.0]}, 'line 3')
    """
    options = options or TableOptions()
    kind = check_file(path, options)
    if not options.header and kind not in (".csv", ".xlsx"):
        raise file_problem(path, f"a {kind} file names its columns itself. Leave --no-header out.")
    return _READERS[kind](path, options)
