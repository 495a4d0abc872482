"""The one reader of tables: CSV, JSON lines, Parquet and Excel files as blocks of rows, each cell with its place."""

from __future__ import annotations

from pathlib import Path

from calibayes.tables.delimited import DelimitedFile
from calibayes.tables.excel import ExcelFile
from calibayes.tables.formats import check_file, file_problem
from calibayes.tables.json_lines import JsonLinesFile
from calibayes.tables.options import TableOptions
from calibayes.tables.parquet import ParquetTable, frame_block
from calibayes.tables.table_file import RowBlock, RowSource, TableFile, UnnamedRows

__all__ = ["RowBlock", "RowSource", "TableFile", "TableOptions", "UnnamedRows", "frame_block", "open_table"]

_READERS: dict[str, type[DelimitedFile | JsonLinesFile | ParquetTable | ExcelFile]] = {
    ".csv": DelimitedFile,
    ".jsonl": JsonLinesFile,
    ".parquet": ParquetTable,
    ".xlsx": ExcelFile,
}
_WITHOUT_HEADER = (".csv", ".xlsx")


def open_table(path: Path, options: TableOptions | None = None) -> TableFile:
    """Open a table in a file; what is not one is refused with the reason.

    Args:
        path: a file ending in ``.csv``, ``.tsv``, ``.txt``, ``.jsonl``, ``.ndjson`` (each also with ``.gz``), ``.parquet`` or
            ``.xlsx``.
        options: how its text is written.

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
    if not options.header and kind not in _WITHOUT_HEADER:
        raise file_problem(path, f"a {kind} file has names of its own. Leave --no-header out.")
    return _READERS[kind](path, options)
