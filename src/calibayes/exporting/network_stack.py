"""Networks of one architecture with their weights stacked, run at once: the part of an exported graph that has weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from calibayes.calibration.scores import widened
from calibayes.posterior.abstract_posterior import Samples
from calibayes.posterior.dropout_masks import DropoutMasks, masked_layers
from calibayes.posterior.flat import split_inputs
from calibayes.posterior.network_posterior import NetworkPosterior
from calibayes.randomness import generator_for

__all__ = ["Aleatoric", "ClosedFormNetwork", "DrawnNetworks", "NetworkStack", "Repetition", "drawn_networks"]

Repetition = Literal["vectorized", "loop", "unrolled"]
"""How a graph runs networks that differ in their weights: side by side in larger operations, one after the other in a loop, or
by operations for each, where neither is possible; their weights are stacked in any case."""

Values = dict[str, Tensor]
Aleatoric = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class DrawnNetworks:
    """The networks of one member of the predictive ensemble: one for each sample of its weights.

    Attributes:
        structure: their modules, without weights.
        values: of each network, its weights and buffers by name.
        masks: of each network, the dropout that stays on at prediction; empty if it is off.
    """

    structure: nn.Module
    values: list[Values]
    masks: list[DropoutMasks]

    @property
    def layout(self) -> str:
        """A text that is the same for networks whose weights can be stacked, and differs where they compute other things."""
        shapes = {name: (tuple(value.shape), value.dtype) for name, value in self.values[0].items()}
        parts = {name: (type(part), _settings(part)) for name, part in self.structure.named_modules()}
        layers = [masks.layers for masks in self.masks[:1]]
        return repr((parts, shapes, len(self.values), layers))


def drawn_networks(member: NetworkPosterior, samples: Samples, seed: int) -> DrawnNetworks:
    """Draw the networks that `calibayes.predict` runs for one member, with the same seed."""
    structure = member.structure()
    names = [name for name, _ in [*structure.named_parameters(), *structure.named_buffers()]]  # tied weights once
    count = 1 if samples == "mean" or not member.random else int(samples)
    values, masks = [], []
    with torch.no_grad(), member.fixed():
        for s in range(count):
            generator = generator_for(member.device, seed, "predict", s)
            vectors = member.mean_vectors() if samples == "mean" else member.draw(generator)
            every = member.values(vectors)
            values.append({name: every[name].detach().clone().cpu() for name in names})
            drawn = None if samples == "mean" else member.masks(generator)
            masks += [] if drawn is None else [drawn]
    return DrawnNetworks(structure, values, masks)


class NetworkStack(nn.Module):
    """Members of one architecture; weights that differ between members or samples have a leading axis for them.

    What is the same for all is stored, and where nothing before it differs also computed, once: the backbone of a last-layer
    posterior does not depend on the sample.

    Args:
        members: with the same `DrawnNetworks.layout`.
        inputs: a few examples, to find out which dropout layers are called how often.
        aleatoric: the aleatoric uncertainty of logits and their probabilities, as the members' posterior has it.
    """

    def __init__(self, members: Sequence[DrawnNetworks], inputs: Any, aleatoric: Aleatoric) -> None:
        super().__init__()
        self.aleatoric = aleatoric
        first = members[0]
        self._structure = (first.structure,)  # not a part of this module: it has no weights
        self.members = len(members)
        names: dict[str, list[str]] = {"shared": [], "by_member": [], "by_sample": []}
        for name in first.values[0]:
            tensors = [[values[name] for values in member.values] for member in members]
            level, value = _stacked(tensors)
            names[level].append(name)
            self.register_buffer(_key(name), value)
        self._names = names
        self.mask_keys: Tensor | None
        self._places, keys = _masks(members, inputs)
        self.register_buffer("mask_keys", keys)
        sampled = names["by_sample"] or keys is not None
        self.samples = len(first.values) if sampled else 1
        self.different = self.members if sampled or names["by_member"] else 1
        self.repetition: Repetition = "vectorized"

    def forward(self, inputs: Any) -> Tensor:
        """Logits ``[members, samples, n, K]``; a single axis stands for members or samples that are all the same."""
        args, kwargs = split_inputs(inputs)
        of_member = {name: self.get_buffer(_key(name)) for name in self._names["by_member"]}
        of_sample = {name: self.get_buffer(_key(name)) for name in self._names["by_sample"]}
        if self.mask_keys is not None:
            of_sample[_MASKS] = self.mask_keys

        def one(member: Mapping[str, Tensor], sample: Mapping[str, Tensor]) -> Tensor:
            values = {name: self.get_buffer(_key(name)) for name in self._names["shared"]}
            return self._logits({**values, **member, **sample}, args, kwargs)

        def samples_of(values: Mapping[str, Tensor]) -> Tensor:
            own = {name: values[name] for name in of_member}
            if self.samples == 1:
                return one(own, {name: values[name].squeeze(0) for name in of_sample}).unsqueeze(0)
            return self._each(lambda sample: one(own, sample), {name: values[name] for name in of_sample})

        every = {**of_member, **of_sample}
        if self.different == 1:
            return samples_of({name: value.squeeze(0) for name, value in every.items()}).unsqueeze(0)
        return self._each(samples_of, every)

    def _logits(self, values: Values, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
        structure = self._structure[0]
        keys = values.pop(_MASKS, None)
        if keys is None:
            return _logits(functional_call(structure, values, args, kwargs, strict=True))
        places, layers = self._places, {layer for layer, _ in self._places}
        with masked_layers(structure, layers, lambda layer, call: keys[places[layer, call]].unbind()):
            return _logits(functional_call(structure, values, args, kwargs, strict=True))

    def _each(self, function: Callable[[Values], Tensor], stacked: Values) -> Tensor:
        """Call a function with each element of the leading axis of all values, and stack the results."""
        if self.repetition == "vectorized":
            results: Tensor = vmap(function)(stacked)
            return results
        if self.repetition == "unrolled":
            count = len(next(iter(stacked.values())))
            return torch.stack([function({name: value[k] for name, value in stacked.items()}) for k in range(count)])
        from torch._higher_order_ops.scan import scan  # becomes a loop of the graph

        def step(count: Tensor, values: Values) -> tuple[Tensor, Tensor]:
            return count + 1, function(values)

        _, looped = scan(step, torch.zeros((), dtype=torch.int64), stacked)
        assert isinstance(looped, Tensor)
        return looped


class ClosedFormNetwork(nn.Module):
    """A member that predicts without samples; its posterior computes the logits of the predictive probabilities."""

    members = 1

    def __init__(self, member: NetworkPosterior) -> None:
        super().__init__()
        self._member = (member,)
        self.aleatoric: Aleatoric = member.aleatoric

    def forward(self, inputs: Any) -> Tensor:
        """Logits ``[1, 1, n, K]``."""
        return self._member[0].closed_form(inputs)[None, None]


_MASKS = "dropout masks"
_OF_EVERY_MODULE = frozenset(vars(nn.Module()))


def _stacked(tensors: list[list[Tensor]]) -> tuple[str, Tensor]:
    """Return what a tensor depends on, and all its values: as they are, ``[members, …]``, or ``[members, samples, …]``."""
    firsts = [samples[0] for samples in tensors]
    if any(not torch.equal(sample, samples[0]) for samples in tensors for sample in samples[1:]):
        return "by_sample", torch.stack([torch.stack(samples) for samples in tensors])
    if any(not torch.equal(first, firsts[0]) for first in firsts[1:]):
        return "by_member", torch.stack(firsts)
    return "shared", firsts[0]


def _masks(members: Sequence[DrawnNetworks], inputs: Any) -> tuple[dict[tuple[str, int], int], Tensor | None]:
    """Return the places of dropout layers and their calls among the keys of masks, and the keys of all networks."""
    first = members[0]
    if not first.masks:
        return {}, None
    calls: list[tuple[str, int]] = []

    def recorded(layer: str, call: int) -> list[int]:
        calls.append((layer, call))
        return first.masks[0].keys(layer, call)

    args, kwargs = split_inputs(inputs)
    with torch.no_grad(), masked_layers(first.structure, first.masks[0].layers, recorded):
        functional_call(first.structure, first.values[0], args, kwargs, strict=True)
    keys = [[[masks.keys(*each) for each in calls] for masks in member.masks] for member in members]
    return {each: place for place, each in enumerate(calls)}, torch.tensor(keys, dtype=torch.int64)


def _logits(output: Any) -> Tensor:
    """The logits in a network's output, which `calibayes.predict` has checked."""
    return widened(output if isinstance(output, Tensor) else output.logits)


def _settings(part: nn.Module) -> list[str]:
    """What a module has besides weights and other modules; of what cannot be compared, where it is in memory."""
    own = {name: value for name, value in vars(part).items() if name not in _OF_EVERY_MODULE}
    if isinstance(part, nn.RNNBase):  # which lists its weights once more
        own = {name: value for name, value in own.items() if name[0] != "_"}
    return [f"{name}={_compared(value)}" for name, value in sorted(own.items())]


def _compared(value: Any) -> str:
    """A text that is the same for settings that are the same."""
    if isinstance(value, Tensor | np.ndarray):
        return f"{value.dtype} {value.tolist()}"
    if isinstance(value, tuple | list | set | frozenset):
        return f"{type(value).__name__}({', '.join(map(_compared, value))})"
    if isinstance(value, dict):
        return f"dict({', '.join(f'{key!r}: {_compared(each)}' for key, each in value.items())})"
    return repr(value)


def _key(name: str) -> str:
    """The name of a buffer, which may have no dots, and must not be that of an attribute."""
    return f"weights/{name.replace('.', '/')}"
