"""Forests of the same size: boosted trees that are filled up, so that their nodes can be stacked like weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from calibayes.exporting.network_stack import DrawnNetworks
from calibayes.networks.boosted_trees import BoostedTrees

__all__ = ["same_size"]


def same_size(members: Sequence[DrawnNetworks]) -> list[DrawnNetworks]:
    """Return the members with all forests filled up to the largest, by trees, leaves and sets that change nothing."""
    forests = [member.structure for member in members if isinstance(member.structure, BoostedTrees)]
    if len(forests) < 2 or len({(forest.features, forest.classes) for forest in forests}) > 1:
        return list(members)
    sizes = {
        "trees": max(forest.trees for forest in forests),
        "nodes": max(forest.nodes for forest in forests),
        "depth": max(forest.depth for forest in forests),
        "sets": max(len(forest.members) for forest in forests),
        "categories": max(forest.members.shape[1] for forest in forests),
    }
    with torch.device("meta"):
        structure = BoostedTrees(forests[0].features, forests[0].classes, **sizes).eval()
    return [_filled_up(member, structure) if isinstance(member.structure, BoostedTrees) else member for member in members]


def _filled_up(member: DrawnNetworks, structure: BoostedTrees) -> DrawnNetworks:
    before = member.structure
    assert isinstance(before, BoostedTrees)
    values = [_filled_up_values(each, before, structure) for each in member.values]
    return replace(member, structure=structure, values=values)


def _filled_up_values(values: dict[str, Tensor], before: BoostedTrees, after: BoostedTrees) -> dict[str, Tensor]:
    blank = BoostedTrees(
        after.features, after.classes, after.trees, after.nodes, after.depth, len(after.members), after.members.shape[1]
    )
    filled = {name: value.detach().clone() for name, value in blank.state_dict().items()}
    for name in ("feature", "threshold", "missing_left", "value"):
        _in_trees(filled[name], after)[: before.trees, : before.nodes] = _in_trees(values[name], before)
    child = _in_trees(values["child"], before)
    tree = torch.arange(before.trees)[:, None, None]
    _in_trees(filled["child"], after)[: before.trees, : before.nodes] = child + tree * (after.nodes - before.nodes)
    if values["category_set"].numel():
        _in_trees(filled["category_set"], after)[: before.trees, : before.nodes] = _in_trees(values["category_set"], before)
        filled["members"][: len(before.members), : before.members.shape[1]] = values["members"]
    return {name: filled[name] for name in values}


def _in_trees(values: Tensor, forest: BoostedTrees) -> Tensor:
    """A view of the numbers of all nodes, ``[trees, nodes]``, or of their two children, ``[trees, nodes, 2]``."""
    both = values.numel() == 2 * forest.trees * forest.nodes
    return values.view(forest.trees, forest.nodes, 2) if both else values.view(forest.trees, forest.nodes)
