"""Posteriors over the last part of a network: what comes before it is run once per input for any number of samples."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from torch import nn
from torch.nn.modules.batchnorm import _NormBase

from calibayes.data.input_structure import tensors_in
from calibayes.posterior.dropout_masks import dropout_inside, dropout_layers
from calibayes.posterior.flat import Call, Skeleton

__all__ = ["Features", "Head", "HeadCalls"]


class Features(tuple[Call, ...]):
    """The inputs of the head, for each batch."""


@dataclass
class HeadCalls:
    """The inputs and outputs of the head during runs of the whole network."""

    calls: list[Call] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)
    versions: list[list[int]] = field(default_factory=list)

    def features(self, outputs: Sequence[Any]) -> Features | None:
        """Return the inputs of the head, or ``None`` if the head alone does not give the network's outputs.

        The head must have run once per batch, returned what the network returned, and left its inputs unchanged.
        """
        if len(self.calls) != len(outputs):
            return None
        for call, before, mine, whole in zip(self.calls, self.versions, self.outputs, outputs, strict=True):
            if mine is not whole and mine is not getattr(whole, "logits", None):
                return None
            if before != _versions(call) or any(tensor.is_inference() for tensor in tensors_in(call)):
                return None
        return Features(self.calls)


@dataclass(frozen=True)
class Head:
    """The smallest part of a network that holds all its Bayesian weights, by its name there."""

    name: str

    @classmethod
    def of(cls, network: nn.Module, bayesian: Sequence[tuple[str, ...]]) -> Head | None:
        """The head of a network, given all names of every Bayesian weight, or ``None`` if these lie everywhere."""
        levels = zip(*(name.split(".")[:-1] for names in bayesian for name in names), strict=False)
        common = [level[0] for level in takewhile(lambda level: len(set(level)) == 1, levels)]
        # A list of layers has no forward of its own.
        while common and isinstance(network.get_submodule(".".join(common)), nn.ModuleList | nn.ModuleDict):
            common = common[:-1]
        name = ".".join(common)
        if all(weight.startswith(f"{name}.") for weight, _ in network.named_parameters()):
            return None  # no weights come before it
        return cls(name) if common else None

    def comes_after(self, network: nn.Module, frozen: Collection[str]) -> bool:
        """Return True if all that is not in the head is frozen, and neither random nor updating statistics in its mode."""
        for name, part in network.named_modules():
            if name == self.name or name.startswith(f"{self.name}."):
                continue
            own = [f"{name}.{key}" if name else key for key, _ in part.named_parameters(recurse=False)]
            if any(weight not in frozen for weight in own):
                return False
            if part.training and (isinstance(part, _NormBase) or dropout_layers(part) or dropout_inside(part)):
                return False
        return True

    def audit_line(self) -> str:
        """A line for the audit."""
        return (
            f"All Bayesian weights lie in {self.name!r}: prediction runs what comes before it once per input, where "
            f"{self.name!r} gives the network's output."
        )

    @contextmanager
    def recorded(self, skeleton: Skeleton) -> Iterator[HeadCalls]:
        """Record what reaches the head, and what it returns, while the whole network is run."""
        recorded = HeadCalls()
        part = skeleton.module.get_submodule(self.name)

        def before(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            recorded.calls.append((args, kwargs))
            recorded.versions.append(_versions((args, kwargs)))

        def after(module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
            recorded.outputs.append(output)

        handles = [part.register_forward_pre_hook(before, prepend=True, with_kwargs=True), part.register_forward_hook(after)]
        try:
            yield recorded
        finally:
            for handle in handles:
                handle.remove()


def _versions(call: Call) -> list[int]:
    return [tensor._version for tensor in tensors_in(call) if not tensor.is_inference()]
