"""Whether a file is what its name says, before anything is read from it."""

from __future__ import annotations

from pathlib import Path

from calibayes.data.predictions.wording import problem, shown

__all__ = ["check_file", "format_of", "model_name"]

_TEXT = (".csv", ".tsv", ".txt")
_FORMATS = ".csv, .tsv, .txt (also .gz), .parquet or .npz"
_SIGNATURES = (
    (b"PAR1", "a Parquet file", ".parquet"),
    (b"PK\x03\x04", "a ZIP archive (as .npz and .xlsx are)", ".npz"),
    (b"PK\x05\x06", "an empty ZIP archive", ".npz"),
    (b"\x93NUMPY", "a single NumPy array (.npy)", None),
    (b"\x89PNG", "a PNG image", None),
    (b"\xff\xd8\xff", "a JPEG image", None),
    (b"GIF8", "a GIF image", None),
    (b"%PDF", "a PDF document", None),
    (b"\xff\xfe", "a UTF-16 text", None),
    (b"\xfe\xff", "a UTF-16 text", None),
    (b"\xd0\xcf\x11\xe0", "an old Excel or Word file", None),
    (b"\x89HDF", "an HDF5 file", None),
    (b"BZh", "a bzip2 file", None),
    (b"\xfd7zXZ", "an xz file", None),
    (b"\x28\xb5\x2f\xfd", "a Zstandard file", None),
    (b"\x80\x02", "a pickle", None),
    (b"\x80\x04", "a pickle", None),
    (b"\x80\x05", "a pickle", None),
)


def format_of(path: Path) -> str:
    """The format that the name of a file stands for: ``.csv`` (any delimited text), ``.parquet`` or ``.npz``."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    suffix = suffixes[-1] if suffixes else ""
    if suffix in _TEXT:
        return ".csv"
    if path.suffix.lower() in (".parquet", ".npz"):
        return path.suffix.lower()
    what = f"files ending in {shown(path.suffix)} cannot be read" if path.suffix else "the name has no ending"
    raise problem(path, f"{what}. Write the predictions as {_FORMATS}.")


def model_name(path: Path) -> str:
    """The name of a file without its folder and ending: ``a`` for ``runs/a.csv.gz``."""
    name = path.name.removesuffix(path.suffix) if path.suffix.lower() == ".gz" else path.name
    return Path(name).stem


def check_file(path: Path) -> str:
    """The format of a file that is there, is not empty, and begins like a file of its format."""
    if path.is_dir():
        raise problem(path, "this is a folder. Name a file in it.")
    if not path.exists():
        raise problem(path, "there is no such file. Check the path.")
    kind = format_of(path)
    with path.open("rb") as stream:
        start = stream.read(1 << 16)
    if not start:
        raise problem(path, "the file is empty. Write a header line and one line for each example.")
    found = next(((what, fits) for signature, what, fits in _SIGNATURES if start.startswith(signature)), None)
    if found is not None and found[1] != kind:
        advice = (
            f"Give it the ending {found[1]}" if found[1] else "Save it as UTF-8 text" if "text" in found[0] else "Export it"
        )
        raise problem(path, f"this is {found[0]}, not a {kind} file. {advice}: predictions are read from {_FORMATS}.")
    if found is None and kind != ".csv":
        raise problem(path, f"this is not a {kind} file: it begins with {shown(start[:8])}. Write or copy it again.")
    if kind == ".csv" and not start.startswith(b"\x1f\x8b") and b"\0" in start:
        raise problem(path, "this is not a text file: there are zero bytes in it. Save it as UTF-8 text.")
    return kind
