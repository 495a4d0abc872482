"""Classifiers of files with every kind of network; weights are random, so nothing has to be trained."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

import calibayes as cb
from calibayes.files import Model
from calibayes.files.image_coding import ImageCoding
from calibayes.files.networks import NetworkPlan
from calibayes.files.table_coding import TableCoding
from calibayes.files.table_columns import CategoryColumn, DateColumn, NumberColumn
from calibayes.files.text_coding import TextCoding
from calibayes.networks.boosted_trees import BoostedTrees
from calibayes.networks.table_inputs import TableInputs

__all__ = ["CLASSES", "COLUMNS", "NETWORKS", "model_of", "random_trees", "text_coding"]

CLASSES = ("ant", "bee", "cat")
COLUMNS = (
    NumberColumn("size", 3.0, 2.0, True),
    CategoryColumn("colour", ("blue", "red", "3"), unknown=True, missing=True),
    DateColumn("seen", (19900.0, 6.0, 3.0, 12.0), (100.0, 3.0, 2.0, 5.0), True),
    NumberColumn("weight", -1e6, 1e3, False),
    CategoryColumn("wild", ("false", "true"), unknown=False, missing=False),
)
_RAW = TableCoding(COLUMNS, raw=True)
_INPUTS = {
    "numbers": _RAW.numbers,
    "category_columns": [place for place, _ in _RAW.categories],
    "categories": [size for _, size in _RAW.categories],
    "bins": 4,
    "frequent": 2,
    "classes": 3,
}
_WORDS = ("the", "cat", "dog", "sat", "on", "don't", "zoë", "the cat", "cat sat")


def text_coding(once: bool, bigrams: bool) -> TextCoding:
    return TextCoding(("title", "body"), _WORDS if bigrams else _WORDS[:7], 40, once, bigrams)


_TEXT = {"words": 10, "classes": 3}
_IMAGE = {"channels": 1, "side": 12, "mean": [0.3], "std": [0.2], "classes": 3}
_COLOUR = {"channels": 3, "side": 16, "mean": [0.3, 0.4, 0.5], "std": [0.2, 0.2, 0.3], "classes": 3}
NETWORKS: dict[str, tuple[Any, dict[str, Any]]] = {
    "table-network": (_RAW, {**_INPUTS, "hidden": [8, 8], "heads": 3}),
    "table-mlp": (_RAW, {**_INPUTS, "hidden": [8]}),
    "table-linear": (_RAW, _INPUTS),
    "mlp": (TableCoding(COLUMNS), {"inputs": TableCoding(COLUMNS).width, "hidden": [8], "classes": 3}),
    "text-network": (text_coding(True, True), {**_TEXT, "dim": 8}),
    "text-linear": (text_coding(True, True), _TEXT),
    "word-bag": (text_coding(True, True), {**_TEXT, "dim": 8}),
    "text-cnn": (text_coding(False, False), {"words": 8, "classes": 3, "dim": 6, "pool": 2}),
    "image-linear": (ImageCoding(1, 12), _IMAGE),
    "small-cnn": (ImageCoding(1, 12), _IMAGE),
    "resnet20": (ImageCoding(3, 16), _COLOUR),
}


def random_network(name: str, seed: int) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = NetworkPlan(name, NETWORKS[name][1])()
        for each in [*network.parameters(), *(part for key, part in network.named_buffers() if key.endswith("rarity"))]:
            if each.dim() and each.is_floating_point():
                each.data += 0.3 * torch.rand(each.shape)
        for part in network.modules():
            if isinstance(part, TableInputs):
                part.fit(torch.randn(200, _RAW.width).numpy())
    return network.eval()


def random_trees(seed: int, trees: int = 6, depth: int = 3) -> BoostedTrees:
    """Full trees with random splits, some of them by sets of categories."""
    generator = np.random.default_rng(seed)
    nodes = 2 ** (depth + 1) - 1
    network = BoostedTrees(_RAW.width, 3, trees, nodes, depth, sets=2, categories=4)
    network.members.copy_(torch.tensor([[True, False, True, False], [False, False, True, True]]))
    codes = [place for place, _ in _RAW.categories]
    with torch.no_grad():
        network.value.copy_(torch.from_numpy(generator.normal(size=len(network.value))))
        for tree in range(trees):
            for node in range(2**depth - 1):
                place = tree * nodes + node
                network.feature[place] = int(generator.integers(_RAW.width))
                network.threshold[place] = float(generator.normal())
                network.missing_left[place] = bool(generator.integers(2))
                network.child[2 * place], network.child[2 * place + 1] = place + node + 2, place + node + 1
                if int(network.feature[place]) in codes:
                    network.category_set[place] = int(generator.integers(2))
    return network


def model_of(networks: Sequence[nn.Module], coding: Any, **others: Any) -> Model:
    """A model that averages networks."""
    points = [cb.Point(network) for network in networks]
    posterior = points[0] if len(points) == 1 else cb.Ensemble(points)
    settings: dict[str, Any] = {"target": "kind", "temperature": 1.3, "calibrated": True, "samples": 4, "seed": 0}
    about = {"examples": 100, "method": "network"}
    return Model(
        **{
            "posterior": posterior.eval(),
            "classes": CLASSES,
            "coding": coding,
            "plans": (),
            "about": about,
            **settings,
            **others,
        }
    )
