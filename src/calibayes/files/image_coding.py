"""Images in files as inputs of a network: bytes of one size."""

from __future__ import annotations

import struct
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from calibayes.checked_fields import Fields
from calibayes.errors import DataError
from calibayes.files.read_rows import FILE
from calibayes.files.settings import DataSettings
from calibayes.tables import RowBlock
from calibayes.tables.formats import check_regular, file_problem
from calibayes.wording import shown

__all__ = ["ImageCoding", "fit_images", "network_for"]

_FORMATS = ("PNG", "JPEG")
_GREY = {"1", "L", "LA", "I", "I;16", "I;16B", "F"}
_MOST_BYTES = 4 << 30
_DAMAGE = (OSError, ValueError, SyntaxError, TypeError, AttributeError, LookupError, EOFError, ArithmeticError, struct.error)
_SMALL = 32  # pixels: up to this size a small network is enough


@dataclass(frozen=True)
class ImageCoding:
    """The conversion of images to bytes: upright, on white, resized to a square (whatever their shape), grey or in colour."""

    kind: ClassVar[str] = "images"
    channels: int  # 1 for grey, 3 for colour
    size: int  # height and width

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns that must be present."""
        return (FILE,)

    def encode(self, block: RowBlock) -> Tensor:
        """Return bytes ``[n, channels, size, size]`` of the images whose paths the rows have."""
        paths = block.table.column(FILE).to_pylist()
        size = len(paths) * self.channels * self.size**2
        if size > _MOST_BYTES:
            raise DataError(
                f"{len(paths):,} images of {self.size}×{self.size} take {size / 2**30:.1f} GiB, too much at once. "
                "Make them smaller, --image-size, or train on some of them, --max-rows."
            )
        pixels = np.empty((len(paths), self.channels, self.size, self.size), dtype=np.uint8)
        for row, path in enumerate(paths):
            if not path:
                raise block.problem("there is no image. Write its path, or leave the row out.", row, FILE)
            pixels[row] = self._pixels(Path(path))
        return torch.from_numpy(pixels)

    def to_dict(self) -> dict[str, Any]:
        """Return everything, for a file."""
        return {"kind": self.kind, "channels": self.channels, "size": self.size}

    @classmethod
    def of(cls, fields: Fields) -> Self:
        """Invert `to_dict`."""
        channels = fields.size("channels", 1, 3)
        if channels == 2:
            raise fields.wrong("channels", "1 or 3")
        return cls(channels, fields.size("size", 10, 512))

    def _pixels(self, path: Path) -> npt.NDArray[np.uint8]:
        from PIL import Image, ImageOps

        with _opened(path) as image:
            whole = ImageOps.exif_transpose(image)
            if whole.mode.startswith("I"):  # 16 bits, which a conversion would clip
                whole = Image.fromarray((np.asarray(whole, dtype=np.int64).clip(0, 65535) >> 8).astype(np.uint8))
            whole = _on_white(whole).convert("L" if self.channels == 1 else "RGB")
            pixels = np.asarray(whole.resize((self.size, self.size), Image.Resampling.BILINEAR), dtype=np.uint8)
        return pixels[None] if self.channels == 1 else pixels.transpose(2, 0, 1)


def _on_white(image: Any) -> Any:
    """Return an image with its transparent pixels made white, whatever colour they hide."""
    from PIL import Image

    if image.mode not in ("LA", "La", "PA", "RGBA", "RGBa") and "transparency" not in image.info:
        return image
    whole = image.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", whole.size, "white"), whole)


def fit_images(paths: Sequence[str], settings: DataSettings) -> ImageCoding:
    """Choose grey if all images are, 28×28 by default; otherwise colour, 32×32; and what the network takes."""
    grey = True
    for path in paths:
        with _opened(Path(path)) as image:
            grey = grey and image.mode in _GREY
        if not grey:
            break
    size = settings.image_size or (28 if grey and settings.network != "resnet20" else 32)
    return ImageCoding(1 if grey and network_for(size, settings) == "small-cnn" else 3, size)


def network_for(size: int, settings: DataSettings) -> Literal["small-cnn", "resnet20"]:
    """Return the name of the network that was set, or the one for this size of images."""
    return settings.network or ("small-cnn" if size <= _SMALL else "resnet20")


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open an image; errors name the file."""
    from PIL import Image

    check_regular(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path, formats=_FORMATS) as image:
                yield image
    except (*_DAMAGE, Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        reason = shown(" ".join(str(error).replace(str(path), path.name).split()))
        raise file_problem(path, f"this is not a complete PNG or JPEG image of a usual size ({reason}).") from None
