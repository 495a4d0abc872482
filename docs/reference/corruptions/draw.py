"""Draw every image corruption at every severity, beside this file; seconds.

python docs/reference/corruptions/draw.py [images] [file.png]

The images are fashion-mnist (the default, whose picture is on the page) or cifar10, which must be in the data folder and may
not be redistributed.
"""

from __future__ import annotations

import sys
from pathlib import Path

from matplotlib.figure import Figure
from torch import Tensor

from calibayes.data import cifar10, fashion_mnist
from calibayes.data.corrupt import CORRUPTIONS, SEVERITIES, corrupt_images

EXAMPLES = {"fashion-mnist": (0, 8), "cifar10": (18, 3)}  # which test images


def examples(name: str) -> Tensor:
    """Two test images from 0 to 1."""
    if name == "cifar10":
        images = cifar10().test[0].float() / 255
    else:
        images = fashion_mnist().test[0]
        images = (images - images.min()) / (images.max() - images.min())
    return images[list(EXAMPLES[name])]


def picture(images: Tensor) -> Figure:
    """A row for each corruption; for each image, the original and the five severities."""
    columns = len(images) * (1 + len(SEVERITIES))
    figure = Figure(figsize=(0.75 * columns + 1.6, 0.75 * len(CORRUPTIONS) + 0.3), layout="constrained")
    axes = figure.subplots(len(CORRUPTIONS), columns, squeeze=False)
    for row, name in zip(axes, CORRUPTIONS, strict=True):
        shown = [images, *(corrupt_images(images, name, severity, seed=0) for severity in SEVERITIES)]
        for place, ax in enumerate(row):
            image = shown[place % len(shown)][place // len(shown)]
            grey = image.shape[0] == 1
            ax.imshow(image[0] if grey else image.permute(1, 2, 0), cmap="gray" if grey else None, vmin=0, vmax=1)
            ax.set(xticks=[], yticks=[])
        row[0].set_ylabel(name.replace("_", " "), rotation=0, ha="right", va="center", fontsize="small")
    for place, ax in enumerate(axes[0]):
        severity = place % (1 + len(SEVERITIES))
        ax.set_title("original" if severity == 0 else str(severity), fontsize="small")
    return figure


if __name__ == "__main__":
    chosen = sys.argv[1] if len(sys.argv) > 1 else "fashion-mnist"
    file = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(__file__).with_name("corruptions.png")
    picture(examples(chosen)).savefig(file, dpi=80)
