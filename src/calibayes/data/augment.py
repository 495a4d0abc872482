"""Images that are randomly shifted and mirrored in every epoch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from calibayes.checks import non_negative_integer
from calibayes.data.sources import Batch, TensorSource
from calibayes.data.sources.batches import choice, shuffled
from calibayes.distributed import ALONE, Processes
from calibayes.errors import DataError
from calibayes.randomness import generator_for

__all__ = ["Augmented", "AugmentedSource", "crop_and_flip"]


class Augmented:
    """Images and labels for `calibayes.fit`, where every epoch sees different crops and mirror images.

    This is the usual augmentation for CIFAR: the image gets a border of zeros, a window of its size is cut out at random,
    and half of them are mirrored. The result depends only on the seed of ``fit``, the epoch and the image's place in the
    data. Augment images as they are stored (bytes, where zero is black) and put `calibayes.networks.Normalize` first in
    the network.

    Args:
        data: a pair ``(x, y)`` of images ``[n, channels, height, width]`` and labels.
        padding: the width of the border, and so the largest shift in each direction; 0 for no shift.
        flip: mirror images from left to right.

    Examples:
        >>> x, y = torch.randint(256, (64, 3, 32, 32), dtype=torch.uint8), torch.arange(64) % 10
        >>> from calibayes.networks import CIFAR10, Normalize
        >>> net = torch.nn.Sequential(Normalize(*CIFAR10), torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 10))
        >>> history = calibayes.fit(calibayes.Point(net), Augmented((x, y)), calibayes.Objective(), epochs=1)
    """

    def __init__(self, data: tuple[Tensor, Tensor], padding: int = 4, flip: bool = True) -> None:
        self.data, self.flip = data, flip
        self.padding = non_negative_integer("padding", padding)

    def source(self, batch_size: int, name: str) -> AugmentedSource:
        """Return them as batches."""
        return AugmentedSource(*self.data, batch_size, name, padding=self.padding, flip=self.flip)


class AugmentedSource(TensorSource):
    """`Augmented` as batches; only training sees changed images, ``ordered`` gives them as they are."""

    def __init__(self, inputs: Any, targets: Any, batch_size: int, name: str, *, padding: int, flip: bool) -> None:
        super().__init__(inputs, targets, batch_size, name)
        self.padding, self.flip = padding, flip
        if not isinstance(self.inputs, Tensor) or self.inputs.dim() != 4:
            shape = list(self.inputs.shape) if isinstance(self.inputs, Tensor) else type(self.inputs).__name__
            raise DataError(f"Expected `{name}` to augment to have images [n, channels, height, width], but got {shape}.")

    def epoch(self, seed: int, epoch: int, skip: int = 0, *, processes: Processes = ALONE) -> Iterator[Batch]:
        """Yield the batches of an epoch, without the first ``skip``."""
        moves = self._moves(seed, "augment", epoch)
        for index in shuffled(self.size, self.steps(), seed, epoch)[skip:]:
            yield self._changed(index, moves, processes)

    def draw(self, count: int, seed: int, *place: int | str, processes: Processes = ALONE) -> Batch:
        """Return ``count`` examples at random (with repetition only if there are too few)."""
        return self._changed(choice(self.size, count, seed, *place), self._moves(seed, "augment", *place), processes)

    def _changed(self, index: Tensor, moves: Tensor, processes: Processes) -> Batch:
        batch = self.take(index, processes)
        own = index[processes.rows(batch.total)]
        return batch._replace(inputs=crop_and_flip(batch.inputs, moves[own], self.padding))

    def _moves(self, seed: int, *place: int | str) -> Tensor:
        """Return how far down and right the window of every image starts, and whether it is mirrored."""
        generator = generator_for(torch.device("cpu"), seed, *place)
        shifts = torch.randint(2 * self.padding + 1, (self.size, 2), generator=generator)
        mirrored = torch.randint(2, (self.size, 1), generator=generator)
        return torch.cat([shifts, mirrored if self.flip else torch.zeros_like(mirrored)], dim=1)


def crop_and_flip(images: Tensor, moves: Tensor, padding: int) -> Tensor:
    """Cut a window out of each image within a border of zeros, and mirror it or not.

    Args:
        images: ``[n, channels, height, width]``, of any type.
        moves: ``[n, 3]``: the window's first row and column within the border, ``0 … 2 · padding``, and 1 to mirror it.
        padding: the width of the border.

    Examples:
        >>> crop_and_flip(torch.tensor([[[[1, 2], [3, 4]]]]), torch.tensor([[1, 0, 1]]), padding=1)
        tensor([[[[1, 0],
                  [3, 0]]]])
    """
    _, _, height, width = images.shape
    moves = moves.to(images.device)
    windows = F.pad(images, (padding, padding, padding, padding)).unfold(2, height, 1).unfold(3, width, 1)
    cut = windows[torch.arange(len(images), device=images.device), :, moves[:, 0], moves[:, 1]]
    return torch.where(moves[:, 2, None, None, None] == 1, cut.flip(-1), cut)
