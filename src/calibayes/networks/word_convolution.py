"""A convolution over texts that meets each word of a batch once, however often it occurs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

__all__ = ["WordConvolution"]


class WordConvolution(nn.Conv1d):
    """``nn.Conv1d`` over the vectors of words, of stride 1 and without padding, called with words and an embedding.

    On a CPU, the weights are multiplied with the vector of every *different* word, and then looked up and summed: a batch
    of texts repeats its words many times over, so this takes a fraction of the multiplications. Elsewhere, inside
    ``torch.compile``, and inside ``torch.vmap`` over the texts, it is the usual convolution. The results agree to rounding.

    Examples:
        >>> embedding, tokens = torch.nn.Embedding(50, 8), torch.randint(50, (2, 30))
        >>> convolution = WordConvolution(8, 6, 5)
        >>> maps = convolution(tokens, embedding)
        >>> maps.shape
        torch.Size([2, 6, 26])
        >>> usual = torch.nn.functional.conv1d(embedding(tokens).mT, convolution.weight, convolution.bias)
        >>> bool(torch.allclose(maps, usual, atol=1e-5))
        True
    """

    def __init__(self, dim: int, channels: int, width: int) -> None:
        super().__init__(dim, channels, width)

    def forward(self, tokens: Tensor, embedding: nn.Embedding) -> Tensor:  # type: ignore[override]
        """Maps ``[n, channels, length - width + 1]`` of word indices ``[n, length]``."""
        if tokens.device.type != "cpu" or torch.compiler.is_compiling():
            return super().forward(embedding(tokens).transpose(1, 2))
        try:
            words, places = tokens.unique(return_inverse=True)  # the different words, and each place's row among them
        except RuntimeError:  # inside vmap over texts, whose lists of words would have different lengths
            return super().forward(embedding(tokens).transpose(1, 2))
        assert self.bias is not None
        taps = self.weight.permute(2, 0, 1)  # [width, channels, dim]
        bias = F.pad(self.bias, (0, taps[1:, :, 0].numel()))  # with the first tap, so that every sum gets it once
        table = F.linear(embedding(words), taps.flatten(0, 1), bias).unflatten(1, taps.shape[:2])
        return _sums(table, places).transpose(1, 2)


def _sums(table: Tensor, places: Tensor) -> Tensor:
    """The sums ``[n, length - width + 1, channels]`` of ``table [words, width, channels]`` along ``places [n, length]``.

    It is linear, and `_collected` is its adjoint; so each is the other's derivative, also of higher order.
    """
    sums: Tensor = _Sums.apply(table, places)  # type: ignore[no-untyped-call]
    return sums


def _collected(values: Tensor, places: Tensor, words: int, width: int) -> Tensor:
    """The sums ``[words, width, channels]`` of the ``values [n, length - width + 1, channels]`` of every word and tap."""
    collected: Tensor = _Collected.apply(values, places, words, width)  # type: ignore[no-untyped-call]
    return collected


class _Sums(torch.autograd.Function):
    @staticmethod
    def forward(table: Tensor, places: Tensor) -> Tensor:
        words, width, channels = table.shape
        rows = (places * width).unfold(1, width, 1) + torch.arange(width)
        sums: Tensor = F.embedding_bag(rows.flatten(0, 1), table.reshape(words * width, channels), mode="sum")
        return sums.view(*rows.shape[:2], channels)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        table, places = inputs
        ctx.save_for_backward(places)
        ctx.save_for_forward(places)
        ctx.words, ctx.width = table.shape[:2]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return _collected(gradient, ctx.saved_tensors[0], ctx.words, ctx.width), None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, _: None) -> Tensor:
        return _sums(tangent, ctx.saved_tensors[0])

    @staticmethod
    def vmap(info: Any, dims: tuple[int | None, ...], table: Tensor, places: Tensor) -> tuple[Tensor, int]:
        return _side_by_side(_sums, dims, table, places)


class _Collected(torch.autograd.Function):
    @staticmethod
    def forward(values: Tensor, places: Tensor, words: int, width: int) -> Tensor:
        length, margin = places.shape[1], width - 1
        order = places.flatten().argsort(stable=True)
        counts = torch.bincount(places.flatten(), minlength=words)
        starts = counts.cumsum(0) - counts
        padded = F.pad(values, (0, 0, margin, margin)).flatten(0, 1)
        last = order.div(length, rounding_mode="floor") * (length + margin) + order % length + margin
        return torch.stack([F.embedding_bag(last - tap, padded, starts, mode="sum") for tap in range(width)], 1)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, int, int], output: Tensor) -> None:
        _, places, ctx.words, ctx.width = inputs
        ctx.save_for_backward(places)
        ctx.save_for_forward(places)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        return _sums(gradient, ctx.saved_tensors[0]), None, None, None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *_: None) -> Tensor:
        return _collected(tangent, ctx.saved_tensors[0], ctx.words, ctx.width)

    @staticmethod
    def vmap(
        info: Any, dims: tuple[int | None, ...], values: Tensor, places: Tensor, words: int, width: int
    ) -> tuple[Tensor, int]:
        return _side_by_side(_collected, dims, values, places, words, width)


def _side_by_side(
    function: Callable[..., Tensor], dims: tuple[int | None, ...], values: Tensor, *others: Any
) -> tuple[Tensor, int]:
    """Several ``values`` at once, as more channels of one; the places, which vmap cannot list for each, are shared."""
    assert dims[0] is not None
    together = values.movedim(dims[0], -2)
    outcome = function(together.flatten(-2), *others)
    return outcome.unflatten(-1, together.shape[-2:]), outcome.dim() - 1
