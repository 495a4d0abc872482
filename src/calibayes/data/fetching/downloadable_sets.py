"""The data sets that can be downloaded: their addresses, their sizes, and how to unpack them."""

from __future__ import annotations

import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from calibayes.data.fetching.completeness import DataSetState, cifar10_state, glove_state, newsgroups_state, resnet20_state
from calibayes.data.fetching.download import Remote
from calibayes.errors import DownloadError, InvalidArgumentError

__all__ = ["SETS", "DataSet", "data_set", "unpack_tar", "unpack_zip_member"]

_GLOVE_FILE = "glove.6B.100d.txt"


@dataclass(frozen=True)
class DataSet:
    """A data set on the web."""

    name: str  # for ``calibayes data get``
    title: str
    what: str
    licence: str
    archive: str  # the name of the downloaded file
    remote: Remote
    place: str  # of its folder or its one file within the folder of data sets
    unpacked: int  # its size there in bytes, roughly
    prepare: Callable[[Path, Path], Path]  # unpacks the downloaded file into an empty folder, and returns its path
    state: Callable[[Path], DataSetState]  # checks that it is complete


def data_set(name: str) -> DataSet:
    """Return a data set by its name."""
    if name not in SETS:
        raise InvalidArgumentError(f"Expected the name of a data set to be one of {', '.join(SETS)}, but got {name!r}.")
    return SETS[name]


def unpack_tar(archive: Path, target: Path) -> None:
    """Unpack a ``.tar.gz`` into a folder; raise on members that would end up outside it, and on special files."""
    with _named_errors(archive), tarfile.open(archive, "r:gz") as members:
        members.extractall(target, filter="data")


def unpack_zip_member(archive: Path, name: str, target: Path) -> Path:
    """Unpack one file of a ``.zip`` into a folder, and return its path."""
    with _named_errors(archive), zipfile.ZipFile(archive) as members:
        return Path(members.extract(name, target))


@contextmanager
def _named_errors(archive: Path) -> Iterator[None]:
    """Name the archive in errors: the standard library's say neither which file it was nor what to do."""
    try:
        yield
    except tarfile.FilterError as error:
        raise DownloadError(f"{str(archive)!r} was not unpacked: {error}. Remove it; it is not the official file.") from error
    except (tarfile.TarError, zipfile.BadZipFile, KeyError, EOFError, zlib.error) as error:
        raise DownloadError(f"{str(archive)!r} is damaged ({error}). Remove it and download it again.") from error


def _newsgroups(archive: Path, scratch: Path) -> Path:
    unpack_tar(archive, scratch / "20news-bydate")
    return scratch / "20news-bydate"


def _cifar10(archive: Path, scratch: Path) -> Path:
    unpack_tar(archive, scratch / "unpacked")
    return scratch / "unpacked" / "cifar-10-batches-bin"


def _glove(archive: Path, scratch: Path) -> Path:
    return unpack_zip_member(archive, _GLOVE_FILE, scratch / "unpacked")


def _resnet20(checkpoint: Path, scratch: Path) -> Path:
    """Write the weights of a PyTorch checkpoint to a safetensors file."""
    import torch
    from safetensors.torch import save_file

    try:
        loaded = torch.load(checkpoint, map_location="cpu", weights_only=True)  # so that no code in it is run
        weights = {
            name.removeprefix("module."): value.detach().float().contiguous()
            for name, value in loaded["state_dict"].items()
            if not name.endswith("num_batches_tracked")
        }
    except Exception as error:  # whatever PyTorch raises for a file that is not a checkpoint
        what = f"{str(checkpoint)!r} is not a checkpoint of weights ({type(error).__name__})"
        raise DownloadError(f"{what}. Remove it.") from error
    path = scratch / "resnet20-cifar10.safetensors"
    save_file(weights, path)
    return path


SETS = {
    each.name: each
    for each in (
        DataSet(
            name="newsgroups",
            title="20 Newsgroups",
            what="18,846 Usenet articles of twenty groups, split by date",
            licence="none stated: articles of their authors, published for research",
            archive="20news-bydate.tar.gz",
            remote=Remote(
                urls=(
                    "http://qwone.com/~jason/20Newsgroups/20news-bydate.tar.gz",
                    "https://ndownloader.figshare.com/files/5975967",
                ),
                sha256="8f1b2514ca22a5ade8fbb9cfa5727df95fa587f4c87b786e15c759fa66d95610",
                size=14_464_277,
            ),
            place="20news-bydate",
            unpacked=90_000_000,
            prepare=_newsgroups,
            state=newsgroups_state,
        ),
        DataSet(
            name="cifar10",
            title="CIFAR-10",
            what="60,000 colour images of 32×32 pixels in ten classes",
            licence="none stated: cite Krizhevsky 2009",
            archive="cifar-10-binary.tar.gz",
            remote=Remote(
                urls=("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",),
                sha256="c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
                size=170_052_171,
            ),
            place="cifar-10-batches-bin",
            unpacked=184_380_000,
            prepare=_cifar10,
            state=cifar10_state,
        ),
        DataSet(
            name="glove",
            title="GloVe 6B, 100d",
            what="word vectors of length 100 for 400,000 English words",
            licence="PDDL 1.0",
            archive="glove.6B.zip",
            remote=Remote(
                urls=("https://nlp.stanford.edu/data/glove.6B.zip", "https://downloads.cs.stanford.edu/nlp/data/glove.6B.zip"),
                sha256="617afb2fe6cbd085c235baf7a465b96f4112bd7f7ccb2b2cbd649fed9cbcf2fb",
                size=862_182_613,
            ),
            place=f"glove.6B/{_GLOVE_FILE}",
            unpacked=347_116_733,
            prepare=_glove,
            state=glove_state,
        ),
        DataSet(
            name="resnet20",
            title="ResNet-20 for CIFAR-10",
            what="weights trained by Yerlan Idelbayev, 91.7 % accuracy",
            licence="BSD 2-clause",
            archive="resnet20-12fca82f.th",
            remote=Remote(
                urls=("https://github.com/akamaster/pytorch_resnet_cifar10/raw/master/pretrained_models/resnet20-12fca82f.th",),
                sha256="12fca82f0bebc4135bf1f32f6e3710e61d5108578464b84fd6d7f5c1b04036c8",
            ),
            place="resnet20/resnet20-cifar10.safetensors",
            unpacked=1_092_520,
            prepare=_resnet20,
            state=resnet20_state,
        ),
    )
}
