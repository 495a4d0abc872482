"""Trees of numbers and tensors as one file: safetensors with a JSON header, written atomically, never pickle."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save, save_file
from torch import Tensor

from calibayes.atomic_file import atomic_file

__all__ = ["NewerFileError", "TreeFileError", "read_tree", "tree_bytes", "tree_digest", "write_tree"]

_KEY = "calibayes"


class TreeFileError(Exception):
    """The file is truncated, or not one of ours; callers turn this into a named error."""


class NewerFileError(TreeFileError):
    """The file has a format that this version does not know."""


def write_tree(path: Path, kind: str, tree: Any) -> None:
    """Write ``tree`` atomically to ``path``."""
    tensors, metadata = _contents(kind, tree)
    with atomic_file(path) as unfinished:
        save_file(tensors, unfinished, metadata=metadata)


def tree_bytes(kind: str, tree: Any) -> bytes:
    """Return the bytes of the file that `write_tree` writes."""
    tensors, metadata = _contents(kind, tree)
    return save(tensors, metadata=metadata)


def tree_digest(tree: Any) -> str:
    """Return a hash of a tree: the same for the same values, whatever the order of the names.

    Examples:
        >>> tree_digest({"a": 1, "b": torch.ones(2)}) == tree_digest({"b": torch.ones(2), "a": 1})
        True
    """
    tensors: dict[str, Tensor] = {}
    body = json.dumps(_encoded(tree, tensors, ""), sort_keys=True)
    digest = hashlib.sha256(body.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data if tensor.numel() else b"")
    return digest.hexdigest()


def _contents(kind: str, tree: Any) -> tuple[dict[str, Tensor], dict[str, str]]:
    tensors: dict[str, Tensor] = {}
    body = json.dumps(_encoded(tree, tensors, ""))
    return tensors, {_KEY: json.dumps({"kind": kind, "format": 1, "crc32": _checksum(body, tensors), "tree": body})}


def read_tree(path: Path, kind: str) -> Any:
    """The tree in a file of this kind, on the CPU."""
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise TreeFileError(f"not a safetensors file, or truncated ({error})") from error
    except (OSError, ValueError, RuntimeError) as error:
        raise TreeFileError(f"it cannot be read ({error})") from error
    if _KEY not in metadata:
        raise TreeFileError("it was not written by calibayes")
    try:
        header = json.loads(metadata[_KEY])
        if header["kind"] != kind:
            raise TreeFileError(f"it holds a {header['kind']}, not a {kind}")
        if header["format"] != 1:
            raise NewerFileError(f"its format {header['format']} is not one that this version of calibayes reads")
        if header["crc32"] != _checksum(header["tree"], tensors):
            raise TreeFileError("its checksum does not fit its contents")
        return _decoded(json.loads(header["tree"]), dict(tensors))
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise TreeFileError(f"its header is damaged ({type(error).__name__}: {error})") from error


def _encoded(value: Any, tensors: dict[str, Tensor], place: str) -> Any:
    if isinstance(value, Tensor):
        name = place or "value"
        tensors[name] = value.detach().cpu().contiguous().clone()
        return {"$tensor": name}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, dict):
        pairs = [[key, _encoded(part, tensors, f"{place}.{key}".lstrip("."))] for key, part in value.items()]
        if isinstance(value, Counter):
            return {"$counter": pairs}
        if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return dict(pairs)
        return {"$pairs": pairs}
    if isinstance(value, list | tuple):
        parts = [_encoded(part, tensors, f"{place}.{k}".lstrip(".")) for k, part in enumerate(value)]
        return {"$tuple": parts} if isinstance(value, tuple) else parts
    raise TypeError(f"{place or 'the value'} is a {type(value).__name__}, which cannot be stored without pickle")


def _decoded(value: Any, tensors: dict[str, Tensor]) -> Any:
    if isinstance(value, list):
        return [_decoded(part, tensors) for part in value]
    if not isinstance(value, dict):
        return value
    if "$tensor" in value:
        return tensors.pop(value["$tensor"])  # at most once, so that it cannot be larger in memory than in the file
    if "$tuple" in value:
        return tuple(_decoded(part, tensors) for part in value["$tuple"])
    if "$pairs" in value:
        return {key: _decoded(part, tensors) for key, part in value["$pairs"]}
    if "$counter" in value:
        return Counter({key: _decoded(part, tensors) for key, part in value["$counter"]})
    return {key: _decoded(part, tensors) for key, part in value.items()}


def _checksum(body: str, tensors: dict[str, Tensor]) -> int:
    total = zlib.crc32(body.encode())
    for name in sorted(tensors):
        flat = tensors[name].contiguous().reshape(-1)
        total = zlib.crc32(name.encode(), total)
        if flat.numel():
            total = zlib.crc32(flat.view(torch.uint8).numpy().data, total)
    return total
