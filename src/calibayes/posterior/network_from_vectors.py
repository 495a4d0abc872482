"""A network that is run with weights from flat vectors, with the frozen weights and buffers that it holds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase

from calibayes.data.input_structure import tensors_in
from calibayes.errors import UnsupportedNetworkError
from calibayes.posterior.flat import Call, Skeleton, split_inputs
from calibayes.posterior.group import Group
from calibayes.posterior.head import Features, Head
from calibayes.posterior.network_outputs import counted_tensors, explained
from calibayes.posterior.weight_selection import WeightChoice, tied_names

__all__ = ["NetworkFromVectors"]


class NetworkFromVectors(nn.Module, ABC):
    """A network that is run with weights from flat vectors: the part of a posterior that knows no distribution."""

    groups: Sequence[Group]
    choices: tuple[WeightChoice, ...]
    head: Head | None  # the part that holds all Bayesian weights, if that is not the whole network

    def __init__(self, skeleton: Skeleton, choices: tuple[WeightChoice, ...], groups: Iterable[Group]) -> None:
        super().__init__()
        self.choices = choices
        self.groups = nn.ModuleList(groups)  # type: ignore[assignment]
        # For every name of a tensor its first one.
        self._frozen_names = {name: c.name for c in choices if c.role == "frozen" for name in c.names}
        self._buffer_names = {name: names[0] for names, _ in tied_names(skeleton.buffers) for name in names}
        self.frozen, self.buffers_held = nn.Module(), nn.Module()  # so that they move and are saved with the posterior
        for name in dict.fromkeys(self._frozen_names.values()):
            self.frozen.register_buffer(_buffer_key(name), skeleton.parameters[name].detach().clone())
        for name in dict.fromkeys(self._buffer_names.values()):
            saved = name not in skeleton.transient
            self.buffers_held.register_buffer(_buffer_key(name), skeleton.buffers[name].detach().clone(), persistent=saved)
        skeleton.release()
        self._skeleton = skeleton
        super().train(skeleton.module.training)
        self._in_eval_mode = _parts_kept_in_eval_mode(skeleton.module, self.trained_names())
        self.head = Head.of(skeleton.module, [names for group in self.groups if group.bayesian for names in group.layout.names])

    @abstractmethod
    def mean_vectors(self) -> list[Tensor]:
        """The mean weights as flat vectors, one per group."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The network's output at the mean weights."""
        return self._run(self.mean_vectors(), [(args, kwargs)], None)[0]

    def call(self, vectors: Sequence[Tensor], inputs: Any, buffers: dict[str, Tensor] | None = None) -> Any:
        """The network's output for weights given as flat vectors, one per group.

        Args:
            vectors: what `draw` or `mean_vectors` returned.
            inputs: one argument, a tuple of arguments, or a dict of named ones; or what `features` returned.
            buffers: used, and updated, instead of the posterior's own; those of `buffer_values`.
        """
        if isinstance(inputs, Features) and self.head is not None:
            return self._run(vectors, inputs, buffers, self.head.name)[0]
        return self._run(vectors, [split_inputs(inputs)], buffers)[0]

    def features(self, inputs: Any) -> Any:
        """Return the inputs of the head, for `call` in place of the inputs, or the inputs if samples cannot share them.

        Samples share them if all that comes before the head is frozen and not random, and the head gives the network's output.
        """
        if self.head is None or not self.head.comes_after(self._skeleton.module, self._frozen_names):
            return inputs
        buffers = {name: value.clone() for name, value in self.buffer_values().items()}
        before = _random_state(inputs)
        with torch.no_grad(), self.head.recorded(self._skeleton) as recorded:
            output = self.call([vector.detach() for vector in self.mean_vectors()], inputs, buffers)
        drawn = any(not torch.equal(*pair) for pair in zip(before, _random_state(inputs), strict=True))
        return inputs if drawn else recorded.features([output]) or inputs

    def calls(self, vectors: Sequence[Tensor], inputs: Iterable[Any]) -> list[Any]:
        """`call` for many inputs with the same weights, which are put in place once."""
        return self._run(vectors, (split_inputs(each) for each in inputs), None)

    def network_at(self, vectors: Sequence[Tensor]) -> nn.Module:
        """A network for predictions that holds these weights themselves, in the mode of the posterior."""
        return self._skeleton.holding(self.values(vectors))

    def trained_names(self) -> list[str]:
        """All names of the weights that are not frozen."""
        return [name for choice in self.choices if choice.role != "frozen" for name in choice.names]

    def buffer_values(self) -> dict[str, Tensor]:
        """The network's buffers, by name (the first of several); these are the tensors themselves."""
        return {name: self.buffers_held._buffers[_buffer_key(name)] for name in self._buffer_names.values()}  # type: ignore[misc]

    def architecture(self) -> str:
        """The network's own description of its layers."""
        return repr(self._skeleton.module)

    def structure(self) -> nn.Module:
        """The network's modules as they are run, without their weights."""
        return self._skeleton.module

    def train(self, mode: bool = True) -> Self:
        """Set training or evaluation mode, for the network too, except for parts put into evaluation mode on purpose."""
        super().train(mode)
        self._skeleton.module.train(mode)
        for part in self._in_eval_mode:
            part.training = False
        return self

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Be in evaluation mode for a while; every part of the network gets its own mode back."""
        modes = [(part, part.training) for part in self._skeleton.module.modules()]
        training = self.training
        self.eval()
        try:
            yield
        finally:
            super().train(training)
            for part, mode in modes:
                part.training = mode

    def _run(
        self, vectors: Sequence[Tensor], calls: Iterable[Call], buffers: dict[str, Tensor] | None, part: str = ""
    ) -> list[Any]:
        if self._skeleton.module.training != self.training:
            self.train(self.training)  # the attribute was set without calling `train`, as Lightning does
        current = self.buffer_values() if buffers is None else buffers
        values = self.values(vectors, current)
        last: list[Call] = []

        def checked() -> Iterator[Call]:
            for each in calls:
                last[:] = [each]
                given = counted_tensors(each)
                versions = [tensor._version for tensor in given]
                yield each
                if versions != [tensor._version for tensor in given]:
                    raise UnsupportedNetworkError(
                        "The network changes its input in place, so every further run on the same data would see something "
                        "else. Start it with an operation that makes a new tensor (inplace=False in its first layer)."
                    )

        try:
            outputs = self._skeleton.calls(values, checked(), part)
        except (RuntimeError, ValueError) as error:
            raise explained(error, last, vectors[0].dtype) from error
        # Most networks update buffers in place; some put a new tensor in a buffer's place. A new shape is a cache for inputs
        # of another size, which the next call makes again.
        for name, before in current.items():
            if values[name] is not before and values[name].shape == before.shape:
                current[name] = values[name].detach()
                if buffers is None:
                    self.buffers_held._buffers[_buffer_key(name)] = current[name]
        return outputs

    def values(self, vectors: Sequence[Tensor], buffers: Mapping[str, Tensor] | None = None) -> dict[str, Tensor]:
        """Every parameter and buffer by all its names."""
        buffers = self.buffer_values() if buffers is None else buffers
        tied = {name: buffers[first] for name, first in self._buffer_names.items()}
        return {**self._views(vectors), **self._frozen_values(), **tied}

    def _views(self, vectors: Sequence[Tensor]) -> dict[str, Tensor]:
        views: dict[str, Tensor] = {}
        for group, vector in zip(self.groups, vectors, strict=True):
            views.update(group.layout.views(vector))
        return views

    def _frozen_values(self) -> dict[str, Tensor]:
        return {name: self.frozen._buffers[_buffer_key(first)] for name, first in self._frozen_names.items()}  # type: ignore[misc]


def _buffer_key(name: str) -> str:
    """A dotted name as the name of a buffer, which may have no dots."""
    return name.replace(".", "/")


def _parts_kept_in_eval_mode(part: nn.Module, trained: Collection[str], prefix: str = "") -> list[nn.Module]:
    """The parts in evaluation mode of a network in training mode that were put there on purpose.

    These are batch norms, whose statistics are to stay as they are, and parts without a trained weight: a frozen backbone, a
    dropout that was switched off. Any other is trained like the rest: ``from_pretrained`` gives networks in evaluation mode,
    and one that has been given a head or adapters since would be trained without its dropout.
    """
    if part.training:
        inner = part.named_children()
        return [each for name, child in inner for each in _parts_kept_in_eval_mode(child, trained, f"{prefix}{name}.")]
    if not prefix:
        return []  # the whole network is in evaluation mode
    learns = any(name.startswith(prefix) for name in trained)
    return [each for each in part.modules() if not each.training and (not learns or isinstance(each, _NormBase))]


def _random_state(inputs: Any) -> list[Tensor]:
    """Return the state of PyTorch's global generators, of the CPU and of the inputs' devices."""
    devices = {tensor.device for tensor in tensors_in(inputs) if tensor.device.type == "cuda"}
    return [torch.get_rng_state(), *(torch.cuda.get_rng_state(device) for device in sorted(devices, key=str))]
