"""What methods learn from: a fixed first layer for some, networks for the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import nn

from calibayes.networks import MLP
from calibayes.networks.table_inputs import TableInputs
from calibayes.networks.table_network import HeadedMLP

__all__ = ["Representation", "table_representation"]

_BINS, _MOST_POSITIONS = 32, 512  # intervals of a number, and of all numbers together
_HIDDEN = (128, 128)
_HEADS = 4


@dataclass(frozen=True)
class Representation:
    """Examples as methods take them.

    Attributes:
        first_layer: fixed, fitted without the classes; for methods that train no network. ``None`` if they cannot learn this.
        network: makes a network for a method of this name.
        settings: of methods by their names, where the usual ones do not suit these examples.
        fit: further arguments of `NetworkLearner`.
        second_network: makes a network for the same examples, encoded in another way; ``None`` if there is no other.
        second_title: the name of that network.
    """

    first_layer: nn.Module | None
    network: Callable[[str], nn.Module]
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    fit: Mapping[str, Any] = field(default_factory=dict)
    second_network: Callable[[str], nn.Module] | None = None
    second_title: str = ""


def table_representation(
    rows: npt.NDArray[np.float32],
    numbers: Sequence[int],
    categories: Sequence[tuple[int, int]],
    classes: int,
    *,
    hidden: Sequence[int] | None = None,
) -> Representation:
    """Return a table's rows as methods take them: numbers by their quantiles, categories by their codes.

    A second network gets numbers standardised instead. Where distances mean something (measurements of one kind, say) it is the
    better one; where columns are skewed or have thresholds, the first is; and as they err in different ways, their average is
    often better than either.

    Args:
        rows: raw values, NaN where one is missing; those that quantiles are taken from.
        numbers: the places of the columns of numbers.
        categories: the places of the columns of category codes, with the number of categories of each.
        classes: how many there are.
        hidden: the width of each hidden layer of the networks.
    """
    bins = max(2, min(_BINS, _MOST_POSITIONS // max(len(numbers), 1)))
    layer = TableInputs(numbers, categories, bins=bins).fit(rows)
    make = partial(_table_network, hidden=tuple(hidden or _HIDDEN), classes=classes)
    return Representation(
        first_layer=layer,
        network=partial(make, layer),
        settings={"ema": {"learning_rate": 4e-3, "weight_decay": 1e-2, "ema": 0.98}},
        fit={"steps": 1500, "patience": 8},
        second_network=partial(make, TableInputs(numbers, categories, bins=0).fit(rows)) if numbers else None,
        second_title="network on standardised numbers",
    )


def _table_network(layer: TableInputs, method: str, *, hidden: Sequence[int], classes: int) -> nn.Module:
    """A perceptron; where weights are averaged over steps one with several heads, which costs as much."""
    if method == "ema":
        return nn.Sequential(layer, HeadedMLP(layer.width, hidden, classes, heads=_HEADS))
    return nn.Sequential(layer, MLP(layer.width, hidden, classes))
