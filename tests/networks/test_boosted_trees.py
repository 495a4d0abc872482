"""Boosted trees as tensors: LightGBM's own predictions, missing values and unknown categories included."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import calibayes as cb
from calibayes.networks.boosted_trees import BoostedTrees

pytestmark = pytest.mark.boosting


def grown(classes: int, *, missing: bool) -> tuple[object, np.ndarray]:
    lightgbm = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(classes)
    x = rng.normal(size=(1500, 6)).astype(np.float32)
    x[:, 4] = rng.integers(0, 12, len(x))
    score = x[:, 0] + np.sin(2 * x[:, 4]) + rng.normal(size=len(x))
    labels = np.digitize(score, np.quantile(score, np.arange(1, classes) / classes))
    if missing:
        x[rng.random(x.shape) < 0.1] = np.nan
    settings = {"objective": "binary"} if classes == 2 else {"objective": "multiclass", "num_class": classes}
    own = {"verbosity": -1, "num_threads": 1, "seed": 0, "min_data_per_group": 20, "max_depth": 8}
    booster = lightgbm.train({**settings, **own}, lightgbm.Dataset(x, labels, categorical_feature=[4]), 20)
    new = 3 * rng.normal(size=(400, 6)).astype(np.float32)
    new[:, 4] = rng.integers(-2, 40, len(new))
    new[rng.random(new.shape) < 0.2] = np.nan
    return booster, new


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("missing", [False, True])
def test_predicts_what_lightgbm_does(classes: int, missing: bool) -> None:
    booster, new = grown(classes, missing=missing)
    found = cb.predict(cb.Point(BoostedTrees.from_lightgbm(booster, classes)), torch.from_numpy(new)).probs.numpy()
    theirs = booster.predict(new)  # type: ignore[attr-defined]
    assert np.allclose(found[:, 1] if classes == 2 else found, theirs, atol=2e-6)


def test_saved_and_loaded(tmp_path: Path) -> None:
    booster, new = grown(3, missing=True)
    trees = BoostedTrees.from_lightgbm(booster, 3)
    cb.save(cb.Point(trees), tmp_path / "trees.safetensors")
    empty = BoostedTrees(6, 3, trees.trees, trees.nodes, trees.depth, *trees.members.shape)
    loaded = cb.load(tmp_path / "trees.safetensors", empty)
    x = torch.from_numpy(new)
    assert torch.equal(cb.predict(loaded, x).probs, cb.predict(cb.Point(trees), x).probs)


def test_leaves_are_weights_that_can_be_trained_on() -> None:
    booster, new = grown(2, missing=False)
    x, y = torch.from_numpy(new), torch.arange(len(new)) % 2
    posterior = cb.Point(BoostedTrees.from_lightgbm(booster, 2))
    before = cb.metrics.nll(cb.predict(posterior, x).probs, y)
    cb.fit(posterior, (x, y), cb.Objective(), epochs=5)
    assert cb.metrics.nll(cb.predict(posterior, x).probs, y) < before
