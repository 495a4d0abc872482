"""Groups of a network's weights: one flat vector for all weights of the same role, type and device."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import torch
from torch import Tensor, nn

from calibayes.posterior.flat import Layout, Skeleton
from calibayes.posterior.group import Group
from calibayes.posterior.point_group import PointGroup
from calibayes.posterior.weight_selection import PatternSetting, WeightChoice, Where, choose

__all__ = ["assemble", "grouped", "point_groups"]

MakeGroup = Callable[[str, Layout, Tensor], Group]


def assemble(
    net: nn.Module, make_group: MakeGroup | None, where: Where = None, make_point: MakeGroup = PointGroup
) -> tuple[Skeleton, tuple[WeightChoice, ...], list[Group]]:
    """Choose which weights of a network are Bayesian, and make groups of all that are trained: what `NetworkPosterior` needs.

    Args:
        net: any ``nn.Module`` that returns logits; it is copied.
        make_group: makes the group of Bayesian weights from a name, a layout and the network's own weights ``[N]``; called once
            for every type and device among them. ``None`` if no weights are Bayesian.
        where: which weights are Bayesian, as in `calibayes.MeanField`.
        make_point: makes the groups of the other trainable weights, which are point values by default.

    Examples:
        A posterior of your own; it is random as soon as its group overrides ``draw``.

        >>> class Weights(calibayes.Group):
        ...     def __init__(self, name, layout, values):
        ...         super().__init__(name, layout)
        ...         self.mu = torch.nn.Parameter(values)
        ...     def mean(self):
        ...         return self.mu
        >>> class Mine(calibayes.NetworkPosterior):
        ...     kind = "example-of-assemble"
        ...     def __init__(self, net, where=None):
        ...         super().__init__(*calibayes.posterior.assemble(net, Weights, where))
        >>> Mine(torch.nn.Linear(4, 3), where="weight").num_bayesian
        12
    """
    skeleton = Skeleton(net)
    choices = choose(skeleton, where, bayesian=make_group is not None)
    groups = [] if make_group is None else _made(make_group, [c for c in choices if c.role == "bayesian"], skeleton)
    return skeleton, choices, [*groups, *point_groups(choices, skeleton, make_point)]


def point_groups(choices: Iterable[WeightChoice], skeleton: Skeleton, make: MakeGroup = PointGroup) -> list[Group]:
    """Groups of the weights that are trained without a distribution."""
    return _made(make, [choice for choice in choices if choice.role == "point"], skeleton)


def grouped(
    choices: Iterable[WeightChoice], skeleton: Skeleton, settings: Mapping[str, PatternSetting] | None = None
) -> Iterator[tuple[str, Layout, dict[str, Tensor]]]:
    """Gather weights into flat vectors: one for each pattern of ``settings``, type and device.

    Yields the pattern (``"*"`` without settings), the layout, and the weights' values by their first names.
    """
    members: dict[tuple[str, torch.dtype, torch.device], list[WeightChoice]] = {}
    for choice in choices:
        pattern = "*" if settings is None else settings[choice.name].pattern
        members.setdefault((pattern, choice.dtype, skeleton.parameters[choice.name].device), []).append(choice)
    for (pattern, _, _), part in members.items():
        layout = Layout(tuple(choice.names for choice in part), tuple(choice.shape for choice in part))
        yield pattern, layout, {choice.name: skeleton.parameters[choice.name] for choice in part}


def _made(make: MakeGroup, choices: Iterable[WeightChoice], skeleton: Skeleton) -> list[Group]:
    return [make(name, layout, layout.flatten(values)) for name, layout, values in grouped(choices, skeleton)]
