r"""Dropout that stays on at prediction: the distribution over networks that masks of units make."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, ClassVar, final

import torch
from torch import nn

from calibayes.errors import EmptySelectionError, UnsupportedNetworkError
from calibayes.posterior.dropout_masks import DropoutMasks, dropout_inside, dropout_layers
from calibayes.posterior.network_posterior import NetworkPosterior, trained_network
from calibayes.posterior.rebuilding import OtherArchitectureError, network_with_roles
from calibayes.posterior.weight_groups import assemble
from calibayes.wording import first_few

__all__ = ["MCDropout"]


@final
class MCDropout(NetworkPosterior):
    r"""A network whose own dropout stays on at prediction (Gal and Ghahramani 2016, https://arxiv.org/abs/1506.02142).

    Training is that of a `Point`. A prediction averages over samples of the dropout masks: $p(y|x) = \frac1S \sum_s
    p(y|x, \theta \circ z_s)$. A sample is one network for all examples: each layer draws one mask, a function of the seed and
    the sample's number alone, so that batches of any size agree. Masks are over the features of tables and sequences (at all
    positions alike: Gal and Ghahramani 2016, https://arxiv.org/abs/1512.05287), over the channels of ``Dropout2d`` and the
    like, and over columns, words and patches of a `calibayes.InputDropout`.

    PyTorch's dropout layers and `calibayes.InputDropout` can be sampled. Dropout inside attention and recurrent layers is off
    at prediction, as `audit` says, and so is ``F.dropout`` in a network's own code, which cannot be seen from outside.

    Args:
        net: any ``nn.Module`` that returns logits and has a dropout layer with ``p > 0``; it is copied.
        layers: glob patterns on the names of the dropout layers that stay on; by default all but those that were put into
            evaluation mode in a network in training mode. The attribute of this name has their probabilities, by name.

    Examples:
        >>> net = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 3))
        >>> posterior = MCDropout(net)
        >>> predictive = calibayes.predict(posterior, torch.randn(6, 4), samples=10)
        >>> posterior.layers, bool((predictive.epistemic > 0).all())
        ({'2': 0.5}, True)
    """

    kind: ClassVar[str] = "mc-dropout"

    def __init__(self, net: nn.Module, layers: str | Sequence[str] | None = None) -> None:
        super().__init__(*assemble(net, None))
        self.layers = _chosen(self.structure(), layers, self._in_eval_mode)

    @classmethod
    def from_point(cls, point: nn.Module, layers: str | Sequence[str] | None = None) -> MCDropout:
        """Keep the dropout on of a trained posterior such as a `Point`, or of a network; ``layers`` as for `MCDropout`."""
        return cls(trained_network(point), layers)

    @classmethod
    def from_config(cls, net: nn.Module, config: Mapping[str, Any]) -> MCDropout:
        net = network_with_roles(net, config)
        here = dropout_layers(net)
        for name, p in config["layers"].items():
            if here.get(name) != p:
                raise OtherArchitectureError(
                    f"the dropout layer {name!r} has p={p:g} in the file and p={here.get(name, 0.0):g} in the network"
                )
        return cls(net, list(config["layers"]))

    def settings(self) -> dict[str, Any]:
        return {"layers": dict(self.layers)}

    @property
    def random(self) -> bool:
        return True

    def masks(self, generator: torch.Generator) -> DropoutMasks:
        seed = int(torch.randint(2**62, (), generator=generator, device=generator.device))
        return DropoutMasks(tuple(self.layers), seed)

    def notes(self) -> list[str]:
        network = self.structure()
        off = {name: p for name, p in dropout_layers(network).items() if name not in self.layers}
        inside = dropout_inside(network)
        lines = [f"Dropout stays on at prediction, with one mask per sample for all examples: {_listed(self.layers)}."]
        if off:
            lines.append(f"Dropout is off at prediction: {_listed(off)}.")
        if inside:
            lines.append(f"Dropout inside these is off at prediction, since no mask can be put there: {_listed(inside)}.")
        return lines


def _chosen(network: nn.Module, patterns: str | Sequence[str] | None, in_eval_mode: Collection[nn.Module]) -> dict[str, float]:
    layers = dropout_layers(network)
    if not layers:
        inside = dropout_inside(network)
        hint = f" (that inside {_listed(inside)} cannot be sampled)" if inside else ""
        raise UnsupportedNetworkError(
            f"{type(network).__name__} has no dropout layer with p > 0{hint}, so all samples would be alike. Put a "
            "`calibayes.InputDropout` before it or an `nn.Dropout` into it, or use `Point` or `MeanField`."
        )
    if patterns is None:
        off = {id(part) for part in in_eval_mode}
        chosen = {name: p for name, p in layers.items() if id(network.get_submodule(name)) not in off}
        if not chosen:
            raise EmptySelectionError(
                f"All dropout layers ({_listed(layers)}) are in evaluation mode, so they are off in training too. Call "
                "`.train()` on them, or name those that should stay on at prediction: `layers='*'`."
            )
        return chosen
    patterns = [patterns] if isinstance(patterns, str) else list(patterns)
    for pattern in patterns:
        if not any(_matches(name, pattern) for name in layers):
            raise EmptySelectionError(f"`layers` pattern {pattern!r} matches none of the dropout layers {_listed(layers)}.")
    chosen = {name: p for name, p in layers.items() if any(_matches(name, pattern) for pattern in patterns)}
    if not chosen:
        raise EmptySelectionError(f"`layers` is empty, but the network has {_listed(layers)}. Choose some, or use `Point`.")
    return chosen


def _matches(name: str, pattern: str) -> bool:
    return name == pattern or fnmatchcase(name, pattern)


def _listed(layers: Mapping[str, float]) -> str:
    return first_few([f"{name!r} (p={p:g})" for name, p in layers.items()])
