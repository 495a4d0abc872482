"""The format of a file, by its name and first bytes; opening files as bytes and lines."""

from __future__ import annotations

import gzip
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import IO, cast

from calibayes.errors import DataError
from calibayes.tables.options import TableOptions
from calibayes.wording import shown, shown_path

__all__ = ["check_file", "check_regular", "file_problem", "is_utf8", "named_errors", "not_in_encoding", "open_lines"]

_ENDINGS = {".csv": ".csv", ".tsv": ".csv", ".txt": ".csv", ".jsonl": ".jsonl", ".ndjson": ".jsonl"}
_TEXT = frozenset(_ENDINGS.values())
_BINARY = (".parquet", ".xlsx")
_FORMATS = ".csv, .tsv, .txt, .jsonl, .ndjson (each also .gz), .parquet and .xlsx, predictions from .npz too"
_GZIP = b"\x1f\x8b"
_ZIP = "a ZIP archive (as .xlsx and .npz are)"
_SIGNATURES = (
    (b"PAR1", "a Parquet file", (".parquet",)),
    (b"PK\x03\x04", _ZIP, (".xlsx", ".npz")),
    (b"PK\x05\x06", _ZIP, (".xlsx", ".npz")),
    (b"\x93NUMPY", "a single NumPy array (.npy)", ()),
    (b"\x89PNG", "a PNG image", ()),
    (b"\xff\xd8\xff", "a JPEG image", ()),
    (b"GIF8", "a GIF image", ()),
    (b"%PDF", "a PDF document", ()),
    (b"\xd0\xcf\x11\xe0", "an old Excel or Word file (.xls, .doc)", ()),
    (b"\x89HDF", "an HDF5 file", ()),
    (b"BZh", "a bzip2 file", ()),
    (b"\xfd7zXZ", "an xz file", ()),
    (b"\x28\xb5\x2f\xfd", "a Zstandard file", ()),
    *((bytes([0x80, protocol]), "a pickle", ()) for protocol in (2, 3, 4, 5)),
)
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_NOT_FILES = ((stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"), (stat.S_ISCHR, "a device"), (stat.S_ISBLK, "a device"))


def file_problem(path: Path, what: str, where: str = "") -> DataError:
    """Return the error for what is wrong with a file, at ``where`` in it."""
    return DataError(f"{shown_path(path)}, {where}: {what}" if where else f"{shown_path(path)}: {what}")


def check_regular(path: Path) -> None:
    """Raise unless a path is a regular file: a pipe or a device might never end, and cannot be read twice."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise file_problem(path, "there is no such file. Check the path.") from None
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None
    if stat.S_ISDIR(mode):
        raise file_problem(path, "this is a folder. Name a file in it.")
    if not stat.S_ISREG(mode):
        kind = next((name for test, name in _NOT_FILES if test(mode)), "not a file")
        raise file_problem(path, f"this is {kind}. Write its output to a file, and name that file.")


def check_file(path: Path, options: TableOptions, also: tuple[str, ...] = ()) -> str:
    """Check that a file exists, is not empty and begins like a file of its format, and return the format.

    The format is ``".csv"`` for any delimited text, ``".jsonl"``, ``".parquet"``, ``".xlsx"``, or one of the endings ``also``.
    """
    check_regular(path)
    kind = _format_by_name(path, also)
    try:
        with path.open("rb") as stream:
            start = stream.read(1 << 16)
    except OSError as error:
        raise _unreadable(path, error) from None
    if not start:
        raise file_problem(path, "the file is empty. Write a header line and one line for each example.")
    wide = options.encoding.startswith(("utf-16", "utf-32"))
    if kind in _TEXT and start.startswith(_UTF16_MARKS) and not wide:
        raise file_problem(path, "this is a UTF-16 text. Name its encoding, --encoding utf-16, or save it as UTF-8.")
    known = next(((what, fits) for signature, what, fits in _SIGNATURES if start.startswith(signature)), None)
    if known is not None and kind not in known[1]:
        advice = f"Give it the ending {' or '.join(known[1])}" if known[1] else "Export it"
        raise file_problem(path, f"this is {known[0]}, not a {kind} file. {advice}: tables are read from {_FORMATS}.")
    if known is None and kind not in _TEXT:
        raise file_problem(path, f"this is not a {kind} file: it begins with {start[:8]!r}. Write or copy it again.")
    if kind in _TEXT and not wide and not start.startswith(_GZIP) and b"\0" in start:
        raise file_problem(path, "this is not a text file: there are zero bytes in it. Save it as UTF-8 text.")
    return kind


def _format_by_name(path: Path, also: tuple[str, ...]) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes[-1:] == [".gz"]:
        kind = _ENDINGS.get(suffixes[-2] if len(suffixes) > 1 else "")
    else:
        last = suffixes[-1] if suffixes else ""
        kind = last if last in (*_BINARY, *also) else _ENDINGS.get(last)
    if kind is None:
        what = f"files ending in {shown(path.suffix)} cannot be read" if path.suffix else "the name has no ending"
        raise file_problem(path, f"{what}. Tables are read from {_FORMATS}.")
    return kind


@contextmanager
def named_errors(path: Path, encoding: str = "utf-8") -> Iterator[None]:
    """Turn errors while a file is read into a `DataError` that names the file."""
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise file_problem(path, f"the gzip file is damaged or cut off ({shown(error)}). Write or copy it again.") from None
    except UnicodeError as error:
        raise file_problem(path, not_in_encoding("this", encoding, f" ({shown(error)})")) from None
    except OSError as error:
        raise _unreadable(path, error) from None


def not_in_encoding(what: str, encoding: str, reason: str = "") -> str:
    """Say that something is not text in the encoding of its file, and what to do."""
    example = "latin-1" if encoding == "utf-8" else "utf-8"
    return f"{what} is not {encoding} text{reason}. Save the file as UTF-8, or name its encoding, like --encoding {example}."


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file, unpacked if it is gzipped (whatever its name)."""
    stream = path.open("rb")
    if stream.read(2) == _GZIP:
        stream.close()
        return cast("IO[bytes]", gzip.open(path, "rb"))
    stream.seek(0)
    return stream


def open_lines(path: Path, encoding: str) -> TextIOWrapper:
    """Open a file as lines ended by LF, CRLF or CR. Undecodable bytes come as surrogates, for `is_utf8` to find."""
    return TextIOWrapper(open_bytes(path), encoding=encoding, errors="surrogateescape", newline="")


def is_utf8(text: str) -> bool:
    """Return True if a text can be written as UTF-8."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def _unreadable(path: Path, error: Exception) -> DataError:
    return file_problem(path, f"the file cannot be read ({shown(getattr(error, 'strerror', None) or error)}).")
