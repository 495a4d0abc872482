"""Checks that a data set is present and complete."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Literal, NamedTuple

from calibayes.data.data_folder import visible
from calibayes.data.fetching.download import sha256_of

__all__ = ["DataSetState", "cifar10_state", "glove_state", "newsgroups_state", "resnet20_state"]


class DataSetState(NamedTuple):
    """The state of a data set on this machine; a partial one has less than was published, but can be used."""

    status: Literal["whole", "partial", "damaged", "missing"]
    note: str  # what was checked, or what is wrong


_MISSING = DataSetState("missing", "")

# The number of articles in each group for training and for testing.
_GROUPS = {
    "alt.atheism": (480, 319),
    "comp.graphics": (584, 389),
    "comp.os.ms-windows.misc": (591, 394),
    "comp.sys.ibm.pc.hardware": (590, 392),
    "comp.sys.mac.hardware": (578, 385),
    "comp.windows.x": (593, 395),
    "misc.forsale": (585, 390),
    "rec.autos": (594, 396),
    "rec.motorcycles": (598, 398),
    "rec.sport.baseball": (597, 397),
    "rec.sport.hockey": (600, 399),
    "sci.crypt": (595, 396),
    "sci.electronics": (591, 393),
    "sci.med": (594, 396),
    "sci.space": (593, 394),
    "soc.religion.christian": (599, 398),
    "talk.politics.guns": (546, 364),
    "talk.politics.mideast": (564, 376),
    "talk.politics.misc": (465, 310),
    "talk.religion.misc": (377, 251),
}

_CIFAR10_SHA256 = {
    "data_batch_1.bin": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
    "data_batch_2.bin": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
    "data_batch_3.bin": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
    "data_batch_4.bin": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
    "data_batch_5.bin": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
    "test_batch.bin": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
}

_GLOVE_SHA256 = "95dde4dfd627ab26608d33e76d1195ec059734bd29089ea52cadb08d07c64544"
_GLOVE_WORDS = 400_000

# Of the names, shapes and values of all weights, in alphabetical order: see `_weights_digest`.
_RESNET20_SHA256 = "8c335f485fbffbdf312ca735005b4a88d95d019993aa950f114341cfcb889e7b"


def newsgroups_state(path: Path) -> DataSetState:
    """Check ``20news-bydate`` by the number of articles of each group in each part."""
    if not path.is_dir():
        return _MISSING
    for place, part in enumerate(("train", "test")):
        folder = path / f"20news-bydate-{part}"
        if not folder.is_dir():
            return DataSetState("damaged", f"there is no folder {folder.name!r}")
        for group, counts in _GROUPS.items():
            articles = visible(folder / group) if (folder / group).is_dir() else []
            if len(articles) != counts[place]:
                return DataSetState("damaged", f"{folder.name}/{group} has {len(articles)} articles instead of {counts[place]}")
            if empty := [each.name for each in articles if not each.stat().st_size]:
                return DataSetState("damaged", f"{folder.name}/{group}/{empty[0]} is empty")
        others = [each.name for each in visible(folder) if each.name not in _GROUPS]
        if others:
            return DataSetState("damaged", f"{folder.name} has {others[0]!r}, which is not one of its groups")
    return DataSetState("whole", "number of articles in every group")


def cifar10_state(path: Path) -> DataSetState:
    """Check ``cifar-10-batches-bin`` by the SHA-256 of its files."""
    if not path.is_dir():
        return _MISSING
    for name, expected in _CIFAR10_SHA256.items():
        file = path / name
        if not file.is_file():
            return DataSetState("damaged", f"there is no file {name!r}")
        if sha256_of(file) != expected:
            return DataSetState("damaged", f"{name!r} does not have the SHA-256 of the official file")
    return DataSetState("whole", "SHA-256 of every file")


def glove_state(path: Path) -> DataSetState:
    """Check ``glove.6B.100d.txt`` by its SHA-256, or an extract of it by the form of its lines."""
    if not path.is_file():
        return _MISSING
    if sha256_of(path) == _GLOVE_SHA256:
        return DataSetState("whole", "SHA-256")
    words = 0
    with path.open("rb") as lines:
        for words, line in enumerate(lines, start=1):
            if line.count(b" ") != 100 or not line.endswith(b"\n"):
                return DataSetState("damaged", f"line {words} is not a word and 100 numbers")
    if not 0 < words < _GLOVE_WORDS:
        return DataSetState("damaged", f"it has {words:,} words, but not the SHA-256 of the official file")
    return DataSetState("partial", f"{words:,} of {_GLOVE_WORDS:,} words")


def resnet20_state(path: Path) -> DataSetState:
    """Check ``resnet20-cifar10.safetensors`` by the SHA-256 of its weights."""
    if not path.is_file():
        return _MISSING
    from safetensors import SafetensorError

    try:
        digest = _weights_digest(path)
    except (SafetensorError, OSError, ValueError) as error:
        return DataSetState("damaged", f"it cannot be read ({error})")
    if digest != _RESNET20_SHA256:
        return DataSetState("damaged", "its weights are not those of the published network")
    return DataSetState("whole", "SHA-256 of the weights")


def _weights_digest(path: Path) -> str:
    """Return the SHA-256 of every weight's name and shape in a line, followed by its values as little-endian float32."""
    from safetensors.numpy import load_file

    digest = hashlib.sha256()
    for name, values in sorted(load_file(path).items()):
        digest.update(f"{name} {list(values.shape)}\n".encode())
        digest.update(values.astype("<f4").tobytes())
    return digest.hexdigest()
