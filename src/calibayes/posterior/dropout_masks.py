"""Masks of dropout layers that depend on a seed, not on the batch: one network for all examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd

from calibayes.randomness import derived_seed

__all__ = ["DropoutMasks", "MaskKeys", "MaskableLayer", "dropout_inside", "dropout_layers", "masked_layers"]

Keep = Callable[..., Tensor]
MaskKeys = Callable[[str, int], Iterable[int | Tensor]]
"""The keys of the mask of a layer, given by name, at its first, second, … call in a pass of the network."""

_PRIME = 2**31 - 1
_ROUNDS = 3
_CHANNELS = (nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.FeatureAlphaDropout)
_ALPHA = 1.0507009873554805 * 1.6732632423543772  # what a SELU tends to: scale times alpha, Klambauer et al. 2017


@runtime_checkable
class MaskableLayer(Protocol):
    """A dropout layer other than PyTorch's own, which leaves its inputs alone in evaluation mode."""

    p: float  # the probability that a unit is dropped

    def dropped(self, inputs: Tensor, keep: Keep) -> Tensor:
        """The inputs without the units that ``keep`` does not keep.

        ``keep`` is called with the units' coordinates, integer tensors that broadcast against each other; it returns true, with
        probability $1 - p$, for those that are kept: always the same for the same coordinates.
        """


def dropout_layers(network: nn.Module) -> dict[str, float]:
    """The probabilities, by name, of a network's dropout layers that drop anything."""
    layers = {n: part for n, part in network.named_modules() if isinstance(part, _DropoutNd | MaskableLayer)}
    return {name: float(layer.p) for name, layer in layers.items() if layer.p > 0}


def dropout_inside(network: nn.Module) -> dict[str, float]:
    """The probabilities, by name, of PyTorch's own parts that drop units within a computation, where no mask can be put."""
    parts = {
        name: part
        for name, part in network.named_modules()
        if isinstance(part, nn.MultiheadAttention) or (isinstance(part, nn.RNNBase) and part.num_layers > 1)
    }
    return {name: float(part.dropout) for name, part in parts.items() if part.dropout > 0}


@dataclass(frozen=True)
class DropoutMasks:
    """The masks of one sample: the names of the layers that drop units, and the seed of which ones."""

    layers: tuple[str, ...]
    seed: int

    def keys(self, layer: str, call: int) -> list[int]:
        """The keys of the mask of one layer at one of its calls."""
        seed = derived_seed(self.seed, "dropout", layer, call)
        return [derived_seed(seed, number) % _PRIME for number in range(_ROUNDS)]


@contextmanager
def masked_layers(network: nn.Module, layers: Iterable[str], keys: MaskKeys) -> Iterator[None]:
    """Let dropout layers, given by name, drop units in evaluation mode: the same ones in every batch.

    A unit is a feature of a table or sequence (at all positions alike), an element of a map of any other shape, a channel
    where the layer drops channels, or what a `MaskableLayer` says. Whether it is dropped depends on the keys, which are
    those of the layer's name and of how often it was called before in the same pass of the whole network, and on the unit's
    place.
    """
    calls: Counter[str] = Counter()
    noises: dict[tuple[Any, ...], tuple[Tensor, Tensor | None]] = {}

    def begin(module: nn.Module, args: Any) -> None:
        calls.clear()

    def masking(name: str) -> Callable[[Any, Any, Tensor], Tensor]:
        def hook(layer: Any, args: Any, output: Tensor) -> Tensor:
            call = calls[name]
            calls[name] += 1
            keep = _keep(float(layer.p), list(keys(name, call)))
            if isinstance(layer, MaskableLayer):
                return layer.dropped(output, keep)
            shape = _units(layer, output)
            key = (name, call, shape, output.dtype, output.device)
            if key not in noises:
                noises[key] = _noise(layer, keep(*_grid(shape, output.device)).to(output.dtype))
            factor, offset = noises[key]
            return output * factor if offset is None else output * factor + offset

        return hook

    handles = [network.register_forward_pre_hook(begin)]
    handles += [network.get_submodule(name).register_forward_hook(masking(name)) for name in layers]
    # PyTorch's fused transformer layers leave the layers inside them out.
    fused = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fused)
        for handle in handles:
            handle.remove()


def _keep(p: float, keys: Sequence[int | Tensor]) -> Keep:
    """Decide about units by their coordinates alone, so that batches of different lengths agree.

    The coordinates are enciphered by MiMC (Albrecht et al. 2016, https://eprint.iacr.org/2016/492) with these keys:
    $x \\leftarrow (x + k)^5$ modulo the prime $2^{31} - 1$, a bijection of plain integers that runs the same everywhere.
    """
    least = round(p * _PRIME)

    def keep(*coordinates: Tensor) -> Tensor:
        state: Tensor | int = 0
        for coordinate in coordinates:
            state = coordinate.long() + state
            for key in keys:
                x = (state + key) % _PRIME
                square = x * x % _PRIME
                state = square * square % _PRIME * x % _PRIME
        return torch.as_tensor(state) >= least

    return keep


def _units(layer: nn.Module, inputs: Tensor) -> tuple[int, ...]:
    """The shape of a mask, to broadcast against a batch."""
    if isinstance(layer, _CHANNELS):
        return (inputs.shape[1], *[1] * (inputs.dim() - 2))
    if inputs.dim() == 3:  # a sequence, with the batch first or second
        return (inputs.shape[-1],)
    return tuple(inputs.shape[1:])


def _grid(shape: Sequence[int], device: torch.device) -> list[Tensor]:
    """The coordinates along every axis; a single one where there is no axis."""
    axes = [torch.arange(size, device=device) for size in shape] or [torch.zeros((), dtype=torch.long, device=device)]
    return [axis.view(*axis.shape, *[1] * (len(axes) - 1 - k)) for k, axis in enumerate(axes)]


def _noise(layer: Any, kept: Tensor) -> tuple[Tensor, Tensor | None]:
    """Return the factor for activations, and the offset added to them, as the layer has them in training."""
    p = float(layer.p)
    if p == 1:
        return torch.zeros_like(kept), None
    if not isinstance(layer, nn.AlphaDropout | nn.FeatureAlphaDropout):
        return kept / (1 - p), None
    a = ((1 - p) * (1 + p * _ALPHA**2)) ** -0.5
    return a * kept, a * _ALPHA * (kept - 1 + p)
