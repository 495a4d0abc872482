"""Any network's weights as flat vectors, and back; the network itself keeps its shape but holds no values."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedBuffer, UninitializedParameter

from calibayes.errors import UnsupportedNetworkError

__all__ = ["Call", "Layout", "Skeleton", "split_inputs"]


Call = tuple[tuple[Any, ...], dict[str, Any]]
TensorSlot = tuple[str, dict[str, Any], str]  # a tensor's name in the network, the dict that holds it, and its key there
# What transformers and timm call it when activations are computed again in the backward pass.
_RECOMPUTING = ("gradient_checkpointing", "grad_checkpointing")


@dataclass(frozen=True)
class Layout:
    """The position of each weight in a flat vector: its names in the network (several for tied weights) and its shape."""

    names: tuple[tuple[str, ...], ...]
    shapes: tuple[torch.Size, ...]

    @cached_property
    def sizes(self) -> list[int]:
        """The number of elements of each weight."""
        return [shape.numel() for shape in self.shapes]

    def flatten(self, values: Mapping[str, Tensor]) -> Tensor:
        """One vector of all the weights, which are looked up by their first name."""
        return torch.cat([values[names[0]].detach().reshape(-1) for names in self.names])

    def views(self, vector: Tensor) -> dict[str, Tensor]:
        """Every name's view into ``vector [..., N]``; leading axes are kept.

        One ``split``, so that the backward pass is one concatenation rather than a sum of padded vectors.
        """
        parts = torch.split_with_sizes(vector, self.sizes, dim=-1)
        lead = vector.shape[:-1]
        views: dict[str, Tensor] = {}
        for names, shape, part in zip(self.names, self.shapes, parts, strict=True):
            view = part.view(lead + shape)
            for name in names:
                views[name] = view
        return views


class Skeleton:
    """A copy of a network whose parameters and buffers are placeholders: it runs only with values given to it.

    The placeholders live on the ``meta`` device, so a value that is missing is an error, never a silent use of old weights.
    """

    def __init__(self, network: nn.Module) -> None:
        network = _checked(network)
        tensors = {id(t): t for t in chain(network.parameters(), network.buffers())}
        memo: dict[int, Any] = {key: _placeholder(tensor) for key, tensor in tensors.items()}
        originals = {id(memo[key]): tensor for key, tensor in tensors.items()}
        self.module = _copied(network, memo)
        self.parameters = {name: originals[id(p)] for name, p in self.module.named_parameters(remove_duplicate=False)}
        self.buffers = {name: originals[id(b)] for name, b in self.module.named_buffers(remove_duplicate=False)}
        self.transient = _transient_buffers(self.module)
        self._places = _places(self.module)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_places"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._places = _places(self.module)  # a module may copy itself in its own way, into other dicts

    def release(self) -> None:
        """Forget the original values; only the shape is needed from here on."""
        self.parameters, self.buffers = {}, {}

    def calls(self, values: dict[str, Tensor], inputs: Iterable[Call], part: str = "") -> list[Any]:
        """The output of the network, or of a ``part`` of it, for each input; updated buffers go back into ``values``.

        This is ``torch.func.functional_call`` with the places looked up once: on a small network the look-up takes as long as
        a layer.
        """
        placeholders = [owner[key] for _, owner, key in self._places]
        try:
            for name, owner, key in self._places:
                owner[key] = values[name]
            module = self.module.get_submodule(part)
            outputs = [module(*args, **kwargs) for args, kwargs in inputs]
            for name, owner, key in self._places:
                values[name] = owner[key]
        finally:
            for (_, owner, key), placeholder in zip(self._places, placeholders, strict=True):
                owner[key] = placeholder
        return outputs

    def holding(self, values: Mapping[str, Tensor]) -> nn.Module:
        """A network in the present mode that holds these very tensors, for predictions only: nothing in it is a parameter."""
        module = _copied(self.module, {})
        for name, owner, key in _places(module):
            owner[key] = values[name].detach()
        return module

    def filled(self, values: Mapping[str, Tensor], trainable: Iterable[str]) -> nn.Module:
        """An ordinary network with these values."""
        chosen = set(trainable)
        memo: dict[int, Any] = {id(buffer): values[name].detach().clone() for name, buffer in self.module.named_buffers()}
        for name, parameter in self.module.named_parameters():
            memo[id(parameter)] = nn.Parameter(values[name].detach().clone(), requires_grad=name in chosen)
        return _copied(self.module, memo)


def split_inputs(inputs: Any) -> Call:
    """Return a network's arguments: a tuple or list by position, a dict by keyword, anything else as the only one."""
    if isinstance(inputs, Mapping):
        return (), dict(inputs)
    if isinstance(inputs, Sequence) and not isinstance(inputs, str):
        return tuple(inputs), {}
    return (inputs,), {}


def _checked(network: nn.Module) -> nn.Module:
    if not isinstance(network, nn.Module):
        raise UnsupportedNetworkError(f"Expected `net` to be a torch.nn.Module, but got {type(network).__name__}.")
    while _is_compiled(network):
        network = network.get_submodule("_orig_mod")
    for name, part in network.named_modules():
        if isinstance(part, nn.DataParallel | nn.parallel.DistributedDataParallel | torch.jit.ScriptModule):
            raise UnsupportedNetworkError(
                f"Expected a plain network, but {name or 'it'!r} is wrapped in {type(part).__name__}. "
                "Pass the network inside it (`net.module`, or the one that was scripted)."
            )
        if isinstance(part, nn.Embedding | nn.EmbeddingBag) and (part.sparse or part.max_norm is not None):
            raise UnsupportedNetworkError(
                f"{name or 'it'!r} has sparse={part.sparse}, max_norm={part.max_norm}, but gradients here are dense and the "
                "forward pass may not change weights. Build it with sparse=False and max_norm=None."
            )
        for flag in _RECOMPUTING:
            if getattr(part, flag, None) is True:
                raise UnsupportedNetworkError(
                    f"{name or 'it'!r} has {flag}=True, but layers would run again after the sampled weights are gone. Turn it "
                    "off (`net.gradient_checkpointing_disable()` in transformers); to save memory, use smaller micro-batches."
                )
    for name, tensor in chain(network.named_parameters(), network.named_buffers()):
        if isinstance(tensor, UninitializedParameter | UninitializedBuffer):
            raise UnsupportedNetworkError(f"{name!r} has no shape yet. Did you forget to run one batch through the network?")
        if tensor.is_meta:
            raise UnsupportedNetworkError(f"{name!r} is on the meta device and has no values. Load its weights first.")
    return network


def _is_compiled(module: nn.Module) -> bool:
    """Return True for ``torch.compile``'s wrapper (whose class is not imported: that alone takes seconds)."""
    return type(module).__name__ == "OptimizedModule" and "_orig_mod" in module._modules


def _placeholder(tensor: Tensor) -> Tensor:
    empty = torch.empty_like(tensor, device="meta", requires_grad=False)
    return nn.Parameter(empty, tensor.requires_grad) if isinstance(tensor, nn.Parameter) else empty


def _copied(network: nn.Module, memo: dict[int, Any]) -> nn.Module:
    try:
        # A compiled part would be compiled again for every sample: its plain original takes its place. Inner parts first,
        # so that the originals of outer ones find them done.
        for part in reversed(list(network.modules())):
            if _is_compiled(part):
                memo[id(part)] = copy.deepcopy(part.get_submodule("_orig_mod"), memo)
        copied: nn.Module = copy.deepcopy(network, memo)
    except (RuntimeError, TypeError) as error:
        raise UnsupportedNetworkError(
            f"{type(network).__name__} cannot be copied: {error}. "
            "A tensor stored as a plain attribute must be a buffer or detached."
        ) from error
    return copied


def _places(module: nn.Module) -> tuple[TensorSlot, ...]:
    """Every place that holds a tensor: tied weights have several, a module with two names is only one."""
    return tuple(
        (f"{prefix}.{key}" if prefix else key, owner, key)
        for prefix, part in module.named_modules()
        for owner in (part._parameters, part._buffers)
        for key, tensor in owner.items()
        if tensor is not None
    )


def _transient_buffers(module: nn.Module) -> set[str]:
    """Names of the buffers that a state dict leaves out."""
    return {
        f"{prefix}.{name}" if prefix else name
        for prefix, part in module.named_modules()
        for name in part._non_persistent_buffers_set
    }
