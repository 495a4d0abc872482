"""Boosted decision trees as a network: its weights are the values of the leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self, final

import torch
from torch import Tensor, nn

from calibayes.errors import InvalidArgumentError
from calibayes.networks.size_checks import check_size

__all__ = ["BoostedTrees"]


@final
class BoostedTrees(nn.Module):
    r"""A forest of boosted trees: the logit of a class is the sum of its trees' leaves.

    It is a network like any other to `calibayes.Point`, `calibayes.Ensemble`, `calibayes.predict` and `calibayes.save`.
    `from_lightgbm` takes the trees that LightGBM has grown; their splits stay as they are, and only the values of the leaves
    are weights. All trees take one step down at a time, side by side, so a prediction takes as many steps as the deepest tree
    has levels.

    Args:
        features: the number of columns of the inputs ``[n, features]``; a missing value is NaN.
        classes: the number of classes, at least 2.
        trees: how many trees; one after the other for each class, or for two classes all for the second.
        nodes: the largest number of splits and leaves of a tree.
        depth: of the deepest tree.
        sets: how many different sets of categories go left at some split.
        categories: the largest number of categories of a column.

    Examples:
        >>> trees = BoostedTrees(features=3, classes=2, trees=4, nodes=7, depth=2)
        >>> calibayes.predict(calibayes.Point(trees), torch.zeros(5, 3)).probs[0]
        tensor([0.5000, 0.5000])
    """

    feature: Tensor
    threshold: Tensor
    child: Tensor
    missing_left: Tensor
    category_set: Tensor
    members: Tensor

    def __init__(
        self, features: int, classes: int, trees: int, nodes: int, depth: int, sets: int = 0, categories: int = 0
    ) -> None:
        super().__init__()
        self.features, self.classes = check_size("features", features), check_size("classes", classes, 2)
        self.depth, total = check_size("depth", depth, 0), check_size("trees", trees) * check_size("nodes", nodes)
        self.trees, self.nodes = trees, nodes
        own = torch.arange(total)
        self.register_buffer("feature", torch.zeros(total, dtype=torch.int64))
        self.register_buffer("threshold", torch.zeros(total, dtype=torch.float64))
        self.register_buffer("child", torch.stack([own, own], 1).flatten())  # right, left; a leaf leads to itself
        self.register_buffer("missing_left", torch.zeros(total, dtype=torch.bool))
        self.value = nn.Parameter(torch.zeros(total))
        self.register_buffer("category_set", torch.full((total if sets else 0,), -1, dtype=torch.int64))
        self.register_buffer("members", torch.zeros(sets, categories, dtype=torch.bool))

    @classmethod
    def from_lightgbm(cls, booster: Any, classes: int, iterations: int | None = None) -> Self:
        """The trees of a ``lightgbm.Booster`` trained with the objective ``binary`` or ``multiclass``.

        Args:
            booster: what LightGBM has trained.
            classes: the number of classes.
            iterations: how many rounds of boosting count; by default the best, where training was stopped early.
        """
        dump = booster.dump_model(num_iteration=iterations if iterations is not None else booster.best_iteration or -1)
        flat = [_flattened(each["tree_structure"]) for each in dump["tree_info"]] or [[{"value": 0.0}]]
        if len(flat) % (1 if classes == 2 else classes):
            raise InvalidArgumentError(f"Expected trees for {classes} classes, but got {len(flat)} trees.")
        sets = sorted({node["set"] for tree in flat for node in tree if "set" in node})
        found = cls(
            features=len(dump["feature_names"]),
            classes=classes,
            trees=len(flat),
            nodes=max(map(len, flat)),
            depth=max(node.get("depth", 0) for tree in flat for node in tree),
            sets=len(sets),
            categories=max((1 + max(each, default=0) for each in sets), default=0),
        )
        for row, each in enumerate(sets):
            found.members[row, list(each)] = True
        with torch.no_grad():
            for index, tree in enumerate(flat):
                found._put(index * found.nodes, tree, sets)
        return found

    def _put(self, start: int, tree: Sequence[Mapping[str, Any]], sets: list[tuple[int, ...]]) -> None:
        for place, node in enumerate(tree, start=start):
            if "value" in node:
                self.value[place] = node["value"]
                continue
            self.feature[place] = node["feature"]
            self.child[2 * place], self.child[2 * place + 1] = start + node["right"], start + node["left"]
            self.missing_left[place] = node["missing_left"]
            if "set" in node:
                self.category_set[place] = sets.index(node["set"])
            else:
                self.threshold[place] = node["threshold"]

    def forward(self, x: Tensor) -> Tensor:
        """Logits ``[n, classes]`` of rows ``[n, features]``."""
        if x.dim() != 2 or x.shape[1] != self.features:
            raise InvalidArgumentError(f"Expected rows of {self.features} columns, but got inputs of shape {list(x.shape)}.")
        x = x.double()
        at = (torch.arange(self.trees, device=x.device) * self.nodes).expand(x.shape[0], -1)
        for _ in range(self.depth):
            values = x.gather(1, self.feature[at])
            left = (values.isnan() & self.missing_left[at]) | (values <= self.threshold[at])  # NaN is never less
            if len(self.members):
                sets = self.category_set[at]
                left = ((sets < 0) & left) | ((sets >= 0) & self._in_set(values, sets))
            at = self.child[2 * at + left]
        leaves = self.value[at]
        if self.classes == 2:
            score = leaves.sum(1)
            logits = torch.stack([torch.zeros_like(score), score], 1)
        else:
            logits = leaves.reshape(x.shape[0], -1, self.classes).sum(1)
        return logits

    def _in_set(self, values: Tensor, sets: Tensor) -> Tensor:
        codes = values.nan_to_num(nan=-1.0).long()
        known = (codes >= 0) & (codes < self.members.shape[1])
        return known & self.members[sets.clamp_min(0), codes.clamp(0, self.members.shape[1] - 1)]


def _flattened(root: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the nodes of a tree as LightGBM dumps it, children by their places, each with its depth."""
    nodes: list[dict[str, Any]] = []

    def add(node: Mapping[str, Any], depth: int) -> int:
        place = len(nodes)
        if "leaf_value" in node:
            nodes.append({"value": node["leaf_value"], "depth": depth})
            return place
        nodes.append(_split(node))
        nodes[place]["left"], nodes[place]["right"] = (add(node[side], depth + 1) for side in ("left_child", "right_child"))
        return place

    add(root, 0)
    return nodes


def _split(node: Mapping[str, Any]) -> dict[str, Any]:
    if node["decision_type"] == "==":
        codes = tuple(sorted(int(code) for code in node["threshold"].split("||")))
        return {"feature": node["split_feature"], "set": codes, "missing_left": False}
    # Without missing values in training, LightGBM takes one for zero.
    left = node["default_left"] if node["missing_type"] == "NaN" else node["threshold"] >= 0
    return {"feature": node["split_feature"], "threshold": node["threshold"], "missing_left": left}
