"""The rows of a file as methods take them."""

from __future__ import annotations

from functools import partial

from torch import Tensor, nn

from calibayes.crossfit import Representation, image_representation, table_representation, text_representation
from calibayes.data.glove import glove
from calibayes.errors import InvalidArgumentError
from calibayes.files.image_coding import ImageCoding, network_for
from calibayes.files.model import Coding
from calibayes.files.networks import NetworkPlan
from calibayes.files.settings import DataSettings
from calibayes.files.table_coding import TableCoding
from calibayes.networks import TextCNN

__all__ = ["representation_of"]


def representation_of(coding: Coding, inputs: Tensor, classes: int, settings: DataSettings) -> Representation:
    """Return what methods learn from.

    Args:
        coding: of the rows.
        inputs: of rows that may have a part in fixed layers: quantiles, say.
        classes: how many there are.
        settings: of the data.
    """
    if isinstance(coding, TableCoding):
        return table_representation(inputs.numpy(), coding.numbers, coding.categories, classes, hidden=settings.hidden)
    if isinstance(coding, ImageCoding):
        return image_representation(inputs, classes, network_for(coding.size, settings))
    if coding.once:
        return text_representation(inputs, 1 + len(coding.vocabulary), classes)
    vectors = glove(coding.vocabulary)
    sizes = {"words": len(vectors), "dim": vectors.shape[1], "classes": classes, "pool": _pool(coding.length)}
    return Representation(None, partial(_with_vectors, NetworkPlan("text-cnn", sizes), vectors))


def _with_vectors(plan: NetworkPlan, vectors: Tensor, method: str) -> nn.Module:
    """A convolutional network with fixed vectors of words."""
    network = plan()
    assert isinstance(network, TextCNN)
    network.embedding.weight.requires_grad_(False).copy_(vectors)
    return network


def _pool(length: int) -> int:
    """Return the largest pooling of the network for texts that this length allows."""
    fitting = [pool for pool in (2, 3, 4, 5) if length >= TextCNN.shortest_for(pool)]
    if not fitting:
        raise InvalidArgumentError(f"Expected `length` to be at least {TextCNN.shortest_for(2)} with GloVe, but got {length}.")
    return fitting[-1]
