"""Boosted trees as a method: LightGBM grows them, calibayes predicts with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from calibayes.checks import positive, positive_integer
from calibayes.extras import require_package
from calibayes.methods.learner import Examples
from calibayes.methods.registry import Method
from calibayes.networks.boosted_trees import BoostedTrees
from calibayes.networks.table_inputs import TableInputs
from calibayes.posterior import Point
from calibayes.posterior.abstract_posterior import Posterior

__all__ = ["BOOSTED_TREES", "BoostedTreesSettings", "BoostingLearner"]


@dataclass(frozen=True, kw_only=True)
class BoostedTreesSettings:
    """The settings of boosted trees.

    Attributes:
        rounds: trees of each class, at most.
        patience: rounds without a lower held-out NLL before growing stops.
        learning_rate: how much each tree counts.
        leaves: of a tree, at most.
        depth: of a tree, at most.
        min_rows: the fewest rows of a leaf.
    """

    rounds: int = 1000
    patience: int = 30
    learning_rate: float = 0.05
    leaves: int = 31
    depth: int = 10
    min_rows: int = 20

    def __post_init__(self) -> None:
        for name in ("rounds", "patience", "leaves", "depth", "min_rows"):
            positive_integer(name, getattr(self, name), 1_000_000)
        positive("learning_rate", self.learning_rate)


@dataclass(frozen=True)
class BoostingLearner:
    """Grows boosted trees on rows of numbers, missing values being NaN, until they get no better on the held-out rows.

    Attributes:
        settings: of the trees.
        categorical: the columns that hold codes of categories, from 0.
    """

    settings: BoostedTreesSettings = BoostedTreesSettings()
    categorical: tuple[int, ...] = ()

    @property
    def method(self) -> str:
        """The name of the method."""
        return BOOSTED_TREES.name

    @property
    def title(self) -> str:
        """The name that users see."""
        return BOOSTED_TREES.title

    def __call__(self, train: Examples, held_out: Examples, classes: int, seed: int) -> Posterior:
        """Grow the trees of one member."""
        lightgbm = require_package("lightgbm", "Growing boosted trees", "boosting")
        (x, y, weights), (other_x, other_y, other_weights) = (
            (None if each is None else each.numpy() for each in part) for part in (train, held_out)
        )
        own = lightgbm.Dataset(x, y, weight=weights, categorical_feature=list(self.categorical))
        other = own.create_valid(other_x, other_y, weight=other_weights)
        stop = lightgbm.early_stopping(self.settings.patience, verbose=False)
        arguments = self._arguments(len(train.targets), classes, seed)
        booster = lightgbm.train(arguments, own, self.settings.rounds, valid_sets=[other], callbacks=[stop])
        return Point(BoostedTrees.from_lightgbm(booster, classes)).eval()

    def _arguments(self, rows: int, classes: int, seed: int) -> dict[str, Any]:
        """Return LightGBM's names for the settings."""
        return {
            "objective": "binary" if classes == 2 else "multiclass",
            "num_class": 1 if classes == 2 else classes,
            "learning_rate": self.settings.learning_rate,
            "num_leaves": self.settings.leaves,
            "max_depth": self.settings.depth,
            "min_data_in_leaf": min(self.settings.min_rows, max(2, rows // 20)),
            "cat_smooth": 20,
            "seed": seed % 2**31,
            "deterministic": True,
            "force_row_wise": True,
            "num_threads": torch.get_num_threads(),
            "verbosity": -1,
        }


def _learner(features: nn.Module, settings: BoostedTreesSettings) -> BoostingLearner | None:
    if not isinstance(features, TableInputs):
        return None
    return BoostingLearner(settings, tuple(place for place, _ in features.categories))


BOOSTED_TREES = Method(
    "boosted-trees",
    "boosted trees",
    "Boosted trees by LightGBM, for tables; needs the extra boosting.",
    BoostedTreesSettings,
    learner=_learner,
    package="lightgbm",
)
