"""The task of a comparison: a data set in three parts, and a network for it."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from calibayes.data import Splits, fashion_mnist
from calibayes.errors import InvalidArgumentError
from calibayes.networks import SmallCNN

__all__ = ["FASHION_MNIST", "PlainInputs", "Task", "check_portable", "digest"]

_SPLIT_SEED = 0


@dataclass(frozen=True, eq=False, kw_only=True)
class PlainInputs:
    """The inputs of a task in the form that scikit-learn takes; the examples are those of the task, in the same order.

    Attributes:
        kind: a table, texts as lists of words, or the pixels of images.
        train: a float array ``[n, d]``, NaN where a cell is missing, or a list of lists of words.
        validation: the same of the validation examples.
        test: the same of the test examples.
        categorical: the columns of a table that hold codes of categories, from 0.
    """

    kind: Literal["table", "texts", "pixels"]
    train: Any
    validation: Any
    test: Any
    categorical: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Task:
    """A data set and a network to compare methods on.

    ``load`` and ``network`` are sent to worker processes, so each is a function of a module, or a frozen dataclass with
    ``__call__``; both must return the same every time. The network's initial weights are drawn from torch's global
    generator, which is seeded before each call.

    Examples:
        >>> from calibayes.data import fashion_mnist
        >>> def small(train: int, validation: int, test: int) -> calibayes.data.Splits:
        ...     return fashion_mnist(train, validation, seed=1)
        >>> task = Task(name="again", title="Another split", examples="images", load=small, network=calibayes.networks.SmallCNN)
        >>> len(task.load(100, 50, 9850).test[1])
        9850
    """

    name: str  # a short name for files
    title: str  # of the data set, such as "Fashion-MNIST, which comes with calibayes"
    examples: str  # the word for its examples, such as "images"
    load: Callable[[int, int, int], Splits]  # the parts, given the numbers of training, validation and test examples
    network: Callable[[], nn.Module]  # a new network that returns logits, one column per class
    # The inputs for baselines, given the same numbers as ``load``; by default those of ``load``, if they are rows of numbers
    # or images. Like ``load``, it is sent to worker processes.
    plain_inputs: Callable[[int, int, int], PlainInputs] | None = None


def check_portable(task: Task) -> None:
    """Raise `InvalidArgumentError` unless the task can be sent to worker processes."""
    try:
        pickle.dumps(task)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise InvalidArgumentError(
            f"Expected `load` and `network` of the task {task.name!r} to be functions of a module, which worker processes "
            f"can import, but got one that cannot be sent to them: {error}. Or use `workers=1`."
        ) from error


def digest(*parts: tuple[Tensor, Tensor]) -> str:
    """A checksum of every number in parts of a data set, with shapes and types."""
    total = hashlib.sha256()
    for tensor in (tensor for part in parts for tensor in part):
        plain = tensor.detach().cpu().contiguous()
        total.update(f"{tuple(plain.shape)} {plain.dtype} ".encode())
        total.update(plain.reshape(-1).view(torch.uint8).numpy().data)
    return total.hexdigest()


def _fashion_mnist(train: int, validation: int, test: int) -> Splits:
    splits = fashion_mnist(train, validation, seed=_SPLIT_SEED)
    x, y = splits.test
    if test > len(x):
        raise InvalidArgumentError(f"Expected `test` to be at most {len(x)}, the images that are left, but got {test}.")
    first, second, third = (
        # Convolutions on a CPU take half the time in this layout.
        (images.to(memory_format=torch.channels_last), labels)
        for images, labels in (splits.train, splits.validation, (x[:test], y[:test]))
    )
    return Splits(train=first, validation=second, test=third, classes=splits.classes)


FASHION_MNIST = Task(
    name="fashion-mnist",
    title="Fashion-MNIST, which comes with calibayes",
    examples="images",
    load=_fashion_mnist,
    network=SmallCNN,
)
