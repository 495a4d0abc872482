"""The idx format, in which MNIST and its kin are stored: a header of big-endian integers, then bytes."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from pathlib import Path

import torch
from torch import Tensor

from calibayes.errors import DataError

__all__ = ["read_idx"]

_UNSIGNED_BYTE = 0x08


def read_idx(path: Path, dimensions: int) -> Tensor:
    """The array of unsigned bytes in a gzipped idx file.

    Args:
        path: the file.
        dimensions: how many dimensions it must have: 1 for labels, 3 for images.

    Examples:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "labels.gz"
        >>> _ = path.write_bytes(gzip.compress(struct.pack(">BBBBI", 0, 0, 8, 1, 3) + bytes([7, 8, 9])))
        >>> read_idx(path, dimensions=1)
        tensor([7, 8, 9], dtype=torch.uint8)
    """
    try:
        content = gzip.decompress(path.read_bytes())
    except FileNotFoundError:
        raise DataError(f"There is no file {str(path)!r}. Reinstall calibayes, or restore the file.") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{str(path)!r} is not a whole gzip file: {error}. Restore it.") from error
    expected = bytes([0, 0, _UNSIGNED_BYTE, dimensions])
    if content[:4] != expected:
        raise DataError(
            f"Expected {str(path)!r} to start with the bytes {expected.hex(' ')} (unsigned bytes in {dimensions} "
            f"dimensions), but got {content[:4].hex(' ') or 'nothing'}. Is it another file?"
        )
    start = 4 + 4 * dimensions
    if len(content) < start:
        raise DataError(f"{str(path)!r} ends inside its header, after {len(content)} of {start} bytes. Restore it.")
    shape = struct.unpack(f">{dimensions}I", content[4:start])
    if len(content) - start != math.prod(shape):
        raise DataError(
            f"Expected {str(path)!r} to hold {math.prod(shape)} bytes for its shape {list(shape)}, "
            f"but got {len(content) - start}. Restore it."
        )
    # A bytearray, because torch asks for memory that may be written to.
    return torch.frombuffer(bytearray(content), dtype=torch.uint8, offset=start).reshape(shape)
