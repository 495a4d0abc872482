"""Delimited text files (.csv, .tsv, .txt, also gzipped) as tables of texts, a part at a time."""

from __future__ import annotations

import zlib
from collections.abc import Generator
from gzip import BadGzipFile
from itertools import islice
from pathlib import Path
from typing import Any

from calibayes.data.predictions.csv_rows import Layout, find_layout, is_utf8, open_bytes, open_lines, records, unclosed_quote
from calibayes.data.predictions.lending import Lending
from calibayes.data.predictions.wording import counted, shown, shown_path
from calibayes.errors import DataError, PredictionFileError

__all__ = ["delimited_tables"]

_BLOCK = 1 << 23  # bytes that are read at a time; a row has to fit


def delimited_tables(path: Path, *, encoding: str = "utf-8", delimiter: str | None = None) -> Generator[Any, None, None]:
    """The rows of a delimited file as Arrow tables whose cells are texts, in constant memory.

    Args:
        path: the file.
        encoding: of its letters.
        delimiter: what stands between two cells; found from the first rows if None.
    """
    from pyarrow import ArrowException

    try:
        layout = find_layout(path, delimiter, encoding=encoding, least=1)
        try:
            yield from _tables(path, layout, encoding)
        except (ArrowException, UnicodeError) as error:
            raise _explained(path, layout, encoding, error) from None
    except (EOFError, BadGzipFile, zlib.error) as error:
        raise DataError(f"{shown_path(path)}: the gzip file is damaged or cut off ({shown(error)}).") from None
    except PredictionFileError as error:  # the reader is that of predictions, the file is not
        raise DataError(_with_encoding(str(error), encoding)) from None
    except UnicodeError as error:
        raise DataError(f"{shown_path(path)}: this is no {encoding} text ({error}). Name its encoding: --encoding.") from None


def _tables(path: Path, layout: Layout, encoding: str) -> Generator[Any, None, None]:
    import pyarrow as pa
    from pyarrow import csv

    places = [str(place) for place in range(len(layout.names))]  # names may be odd
    with Lending(open_bytes(path)) as file:
        reader = csv.open_csv(
            file.lend(),
            read_options=csv.ReadOptions(
                column_names=places, skip_rows=layout.lines, block_size=_BLOCK, encoding=encoding, use_threads=False
            ),
            parse_options=csv.ParseOptions(delimiter=layout.delimiter, newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(places, pa.large_string()), null_values=[], strings_can_be_null=False
            ),
        )
        try:
            while (batch := next(reader, None)) is not None:
                yield pa.Table.from_batches([batch]).rename_columns(list(layout.names))
        finally:
            del reader
        # Quotation marks come in pairs, but also alone inside a cell (5" of rain): that takes a closer look.
        suspect = file.quotes % 2 == 1
    if suspect and (line := unclosed_quote(path, layout, encoding)) is not None:
        raise DataError(f"{shown_path(path)}, line {line}: a quotation mark is opened and never closed. Close it.")


def _explained(path: Path, layout: Layout, encoding: str, error: Exception) -> DataError:
    """What Arrow refuses, with its line: the file is read again, row by row."""
    with open_lines(open_bytes(path), encoding) as lines:
        for _ in islice(lines, layout.lines):
            pass
        for line, cells in records(path, lines, layout.delimiter, layout.lines):
            bad = next((cell for cell in cells if not is_utf8(cell)), None)
            where = f"{shown_path(path)}, line {line}:"
            if bad is not None:
                what = f"{shown(bad)} is not {encoding}"
                return DataError(_with_encoding(f"{where} {what}. Save the file as UTF-8.", encoding))
            if len(cells) != len(layout.names):
                row, header = counted(len(cells), "cell"), counted(len(layout.names), "column")
                return DataError(
                    f"{where} the row has {row}, but the header has {header}. Put cells that hold a "
                    f"{shown(layout.delimiter)} in quotes, or name the delimiter: --delimiter."
                )
    return DataError(f"{shown_path(path)}: the file cannot be read ({shown(error)}).")


def _with_encoding(message: str, encoding: str) -> str:
    hint = "Save the file as UTF-8."
    other = "latin-1" if encoding.lower().replace("_", "-") in ("utf-8", "utf8") else "utf-8"
    return message.replace(hint, f"{hint[:-1]}, or name its encoding, like --encoding {other}.")
