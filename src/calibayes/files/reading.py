"""Files of any format as tables of texts: a part at a time, or whole."""

from __future__ import annotations

import codecs
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from calibayes.checks import positive_integer
from calibayes.data.predictions.csv_rows import is_utf8
from calibayes.data.predictions.texts import as_text
from calibayes.data.predictions.wording import shown, shown_path
from calibayes.errors import DataError, InvalidArgumentError
from calibayes.files.delimited import delimited_tables
from calibayes.files.folders import FILE, file_name, folder_tables, is_image
from calibayes.files.json_lines import json_tables
from calibayes.randomness import derived_seed

__all__ = ["FORMATS", "Read", "check_encoding", "read_table", "table_from", "tables"]

FORMATS = ".csv, .tsv, .txt, .jsonl or .ndjson (each also .gz), .parquet, or a folder with a folder for each class"
_TEXT, _JSON = (".csv", ".tsv", ".txt"), (".jsonl", ".ndjson")
Floats = npt.NDArray[np.float64]

_ROWS = 8192
_MOST_BYTES = 2 << 30


class Read(NamedTuple):
    """A file's rows as an Arrow table of texts, their numbers in the file, counted from 0, and how many the file has."""

    table: Any
    rows: npt.NDArray[np.int64]
    total: int


def tables(path: Path, *, encoding: str = "utf-8", delimiter: str | None = None) -> Generator[Any, None, None]:
    """The rows of a file as Arrow tables whose cells are texts (or null), a part at a time.

    Whatever the format, a cell is what a CSV file would say, so that all formats give the same answer.

    Args:
        path: a file, or a folder with a folder for each class.
        encoding: of the letters of texts.
        delimiter: of the cells of a CSV file; found from the first rows if None.
    """
    encoding = check_encoding(encoding)
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise InvalidArgumentError(f"Expected `delimiter` to be one character, like ',' or ';', but got {delimiter!r}.")
    if path.is_dir():
        yield from folder_tables(path, encoding=encoding)
        return
    if is_image(path) and path.exists():
        yield table_from({FILE: [file_name(path)]})
        return
    kind = _checked_format(path, encoding)
    try:
        if kind == ".parquet":
            yield from _parquet_tables(path)
        elif kind == ".jsonl":
            yield from json_tables(path, encoding=encoding)
        else:
            for table in delimited_tables(path, encoding=encoding, delimiter=delimiter):
                yield from (table.slice(begin, _ROWS) for begin in range(0, table.num_rows, _ROWS))
    except OSError as error:
        raise DataError(f"{shown_path(path)}: the file cannot be read ({shown(error.strerror or error)}).") from None


def read_table(
    path: Path, *, encoding: str = "utf-8", delimiter: str | None = None, max_rows: int | None = None, seed: int = 0
) -> Read:
    """A file whole, or some of its rows, as one table.

    Args:
        path: as in `tables`.
        encoding: as in `tables`.
        delimiter: as in `tables`.
        max_rows: keep at most so many rows, drawn by ``seed``; memory is that of the rows that are kept.
        seed: of the draw.
    """
    import pyarrow as pa

    most = None if max_rows is None else positive_integer("max_rows", max_rows)
    generator = np.random.default_rng(derived_seed(seed, "rows"))
    kept: list[Any] = []
    keys: list[Floats] = []
    rows: list[npt.NDArray[np.int64]] = []
    total = held = size = 0
    with closing(tables(path, encoding=encoding, delimiter=delimiter)) as parts:
        for table in parts:
            kept.append(table)
            keys.append(generator.random(table.num_rows))
            rows.append(np.arange(total, total + table.num_rows))
            total, held, size = total + table.num_rows, held + table.num_rows, size + table.nbytes
            if most is not None and held > 2 * most + _ROWS:
                kept, keys, rows = _drawn(kept, keys, rows, most)
                held, size = most, kept[0].nbytes
            if size > _MOST_BYTES:
                raise DataError(
                    f"{shown_path(path)}: more than {_MOST_BYTES >> 30} GiB after {total:,} rows, too much to train on at "
                    f"once. Train on {'fewer rows' if most else 'some of them, drawn at random'}: --max-rows {held // 2}, say."
                )
    if not total:
        raise DataError(f"{shown_path(path)}: there are no rows. Write one for each example.")
    if most is not None:
        kept, _, rows = _drawn(kept, keys, rows, most)
    return Read(pa.concat_tables(kept).combine_chunks(), np.concatenate(rows), total)


def table_from(frame: Any) -> Any:
    """A pandas frame, an Arrow table or a dict of columns as an Arrow table of texts."""
    import pyarrow as pa

    if isinstance(frame, pa.Table):
        return _as_texts(frame)
    try:
        if isinstance(frame, dict):
            return _as_texts(pa.table({str(name): pa.array(cells) for name, cells in frame.items()}))
        return _as_texts(pa.Table.from_pandas(frame, preserve_index=False))
    except (pa.ArrowException, AttributeError, TypeError) as error:
        raise DataError(
            f"Expected a pandas frame, an Arrow table or a dict of columns, but got {type(frame).__name__} ({shown(error)})."
        ) from None


def check_encoding(encoding: str) -> str:
    """The name of an encoding as Python has it, or an error that quotes it."""
    try:
        "".encode(encoding)  # refuses what is no encoding of texts, such as hex
        return codecs.lookup(encoding).name
    except (LookupError, ValueError):
        raise InvalidArgumentError(
            f"Expected `encoding` to be one like utf-8, latin-1, cp1252 or utf-16, but got {encoding!r}."
        ) from None


def _drawn(
    kept: list[Any], keys: list[Floats], rows: list[npt.NDArray[np.int64]], most: int
) -> tuple[list[Any], list[Floats], list[npt.NDArray[np.int64]]]:
    """The rows with the ``most`` smallest keys, in their order: those that are kept later would be the same."""
    import pyarrow as pa

    every = np.concatenate(keys)
    chosen = np.zeros(len(every), dtype=bool)
    chosen[np.argsort(every, kind="stable")[:most]] = True
    return [pa.concat_tables(kept).filter(pa.array(chosen)).combine_chunks()], [every[chosen]], [np.concatenate(rows)[chosen]]


def _checked_format(path: Path, encoding: str) -> str:
    """The format of a file that is there, by its name; what plainly is another is refused."""
    if not path.exists():
        raise DataError(f"{shown_path(path)}: there is no such file. Check the path.")
    suffixes = [suffix.lower() for suffix in path.suffixes]
    gzipped = suffixes[-1:] == [".gz"]
    suffix = next(iter(suffixes[-2:-1] if gzipped else suffixes[-1:]), "")
    kind = ".csv" if suffix in _TEXT else ".jsonl" if suffix in _JSON else suffix
    if kind not in (".csv", ".jsonl", ".parquet") or (gzipped and kind == ".parquet"):
        raise DataError(f"{shown_path(path)}: files with this ending cannot be read. Data are read from {FORMATS}.")
    try:
        with path.open("rb") as stream:
            start = stream.read(1 << 12)
    except OSError as error:
        raise DataError(f"{shown_path(path)}: the file cannot be read ({shown(error.strerror or error)}).") from None
    if not start:
        raise DataError(f"{shown_path(path)}: the file is empty.")
    if kind != ".parquet" and not start.startswith(b"\x1f\x8b"):
        if start[:2] in (b"\xff\xfe", b"\xfe\xff") and not encoding.startswith("utf-16"):
            raise DataError(f"{shown_path(path)}: this is a UTF-16 text. Name its encoding: --encoding utf-16.")
        if b"\0" in start and not encoding.startswith(("utf-16", "utf-32")):
            raise DataError(f"{shown_path(path)}: this is not a text file: there are zero bytes in it.")
    return kind


def _parquet_tables(path: Path) -> Iterator[Any]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(_ROWS):
                yield _as_texts(pa.Table.from_batches([batch]))
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{shown_path(path)}: this is not a whole Parquet file ({shown(error)}). Write it again.") from None


def _as_texts(table: Any) -> Any:
    """The cells of a table as a CSV file would have them."""
    import pyarrow as pa
    from pyarrow import compute, types

    table = table.select([place for place, name in enumerate(table.column_names) if name.strip()])  # others cannot be meant
    repeated = next((name for name in table.column_names if table.column_names.count(name) > 1), None)
    if repeated is not None:
        raise DataError(f"There is more than one column {shown(repeated)}. Rename all but one.")
    columns = {}
    for name in table.column_names:
        column = table.column(name)
        if types.is_nested(column.type):
            raise DataError(f"The column {shown(name)} holds {shown(column.type)}. Store one value in each row.")
        if types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if types.is_floating(column.type):
            column = compute.if_else(compute.is_nan(column), None, column)
        if types.is_null(column.type) or _is_bytes(column.type):
            values = [None if value is None else as_text(value) for value in column.to_pylist()]
            bad = next((value for value in values if value is not None and not is_utf8(value)), None)
            if bad is not None:
                raise DataError(
                    f"The column {shown(name)} holds bytes that are no UTF-8 text, {shown(bad)}. Store texts in it."
                )
            columns[name] = pa.array(values, pa.large_string())
        else:
            columns[name] = column.cast(pa.large_string())
    return pa.table(columns)


def _is_bytes(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind))
