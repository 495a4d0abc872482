"""The parts of a user-defined posterior: a network without values, the role of each weight, and groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor, nn

from calibayes.posterior.flat import Layout, Skeleton
from calibayes.posterior.group import Group
from calibayes.posterior.point_group import point_groups
from calibayes.posterior.weight_selection import WeightChoice, Where, choose, grouped

__all__ = ["Assembly", "assemble"]


class Assembly(NamedTuple):
    """The arguments of `NetworkPosterior`.

    Attributes:
        skeleton: the network's modules, with placeholders for weights.
        choices: what is done with each weight, and why.
        groups: the flat vectors.
    """

    skeleton: Skeleton
    choices: tuple[WeightChoice, ...]
    groups: list[Group]


def assemble(net: nn.Module, make_group: Callable[[str, Layout, Tensor], Group], where: Where = None) -> Assembly:
    """Choose which weights of a network are Bayesian, and make groups of all that are trained.

    Args:
        net: any ``nn.Module`` that returns logits; it is copied.
        make_group: makes the group of Bayesian weights of a name, a layout and the network's own weights ``[N]``; called once
            for every type and device among them. The other trainable weights become point values.
        where: which weights are Bayesian, as in `calibayes.MeanField`.

    Returns:
        The arguments of `calibayes.NetworkPosterior`, in its order.

    Examples:
        A posterior of one's own; it is random as soon as its group overrides ``draw``.

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
    choices = choose(skeleton, where, bayesian=True)
    chosen = [choice for choice in choices if choice.role == "bayesian"]
    groups = [make_group(name, layout, layout.flatten(values)) for name, layout, values in grouped(chosen, skeleton)]
    return Assembly(skeleton, choices, [*groups, *point_groups(choices, skeleton)])
