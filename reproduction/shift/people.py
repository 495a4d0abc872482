r"""CIFAR-10H: what about fifty people say each test image of CIFAR-10 is, and how far a classifier is from them.

Where a label says only "cat", people say that two in three see a cat and one in three a dog: nearly the true $p(y|x)$. So
calibration needs no bins: the share $h_i$ of people who agree with the classifier's decision on image $i$ stands beside the
confidence $r_i$ itself. See Peterson et al., "Human uncertainty makes classification more robust" (2019,
https://arxiv.org/abs/1908.07086).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from calibayes.data.data_folder import data_folder
from calibayes.errors import DataError, MissingDataError
from calibayes.metrics.confidence_cells import Cells
from calibayes.metrics.smooth_error import smooth_error, smooth_errors
from calibayes.randomness import derived_seed
from calibayes.recipes.training_scores import rounded
from reproduction.cifar10_training import cifar10_test_order

__all__ = ["PEOPLE_SCORES", "brier_to_people", "people_of_official_images", "people_of_test_images", "scores_by_people"]

PEOPLE_SCORES = {
    "kl": "KL(people‖model)",
    "brier": "Brier score to people",
    "gap": "|confidence − agreement|",
    "overconfidence": "confidence − agreement",
    "smooth_ece": "smooth ECE to people",
}
_IMAGES, _CLASSES = 10_000, 10
_FILE = "cifar10h-counts.npy"
_REPLICATES, _SMOOTH_REPLICATES = 1000, 200
_LEVEL = 0.95


def people_of_test_images(count: int | None = None) -> Tensor:
    """How many people chose each class, for the test part of `cifar10_parts` in its order, ``[n, 10]``."""
    return people_of_official_images()[cifar10_test_order(count)]


@lru_cache(maxsize=1)
def people_of_official_images() -> Tensor:
    """The same for the 10,000 official test images, in their order."""
    path = data_folder() / "cifar-10h" / _FILE
    if not path.is_file():
        raise MissingDataError(
            f"CIFAR-10H is not here: there is no {str(path)!r}. Get {_FILE} from https://github.com/jcpeterson/cifar-10h "
            "(folder data), and put it there."
        )
    counts = torch.from_numpy(np.load(path, allow_pickle=False).astype(np.float64))
    if counts.shape != (_IMAGES, _CLASSES) or not bool((counts >= 0).all() and (counts.sum(1) > 1).all()):
        raise DataError(f"Expected {str(path)!r} to hold counts [{_IMAGES}, {_CLASSES}], but got {list(counts.shape)}.")
    return counts


def scores_by_people(probs: Tensor, counts: Tensor, *, seed: int = 0) -> dict[str, Any]:
    r"""Scores of a classifier against the distribution of people's answers, with 95 % bootstrap intervals over images.

    With people's shares $q$ and the classifier's probabilities $p$ of an image, and its decision $\hat y$:

    - ``kl``: $\sum_y q_y \log (q_y / p_y)$;
    - ``brier``: $\sum_y (p_y - q_y)^2$, less what chance in asking $m$ people adds, $(1 - \sum_y q_y^2) / (m - 1)$;
    - ``gap``: $|r - h|$ of the confidence $r = p_{\hat y}$ and the agreement $h = q_{\hat y}$, and ``overconfidence``: $r - h$;
    - ``smooth_ece``: the smooth calibration error of $r$ with $h$ in the place of right or wrong.

    All but the last are means over images. Chance makes the smooth error larger, and its interval with it.

    Args:
        probs: ``[n, K]``.
        counts: how many people chose each class, ``[n, K]``.
        seed: of the bootstrap.
    """
    probs, counts = probs.double(), counts.double()
    people = counts / counts.sum(1, keepdim=True)
    confidence, decision = probs.max(1)
    agreement = people.gather(1, decision[:, None])[:, 0]
    each = {
        "kl": (torch.special.xlogy(people, people) - torch.special.xlogy(people, probs)).sum(1),
        "brier": brier_to_people(probs, counts),
        "gap": (confidence - agreement).abs(),
        "overconfidence": confidence - agreement,
    }
    generator = np.random.default_rng(derived_seed(seed, "people"))
    draws = torch.from_numpy(generator.multinomial(len(probs), np.full(len(probs), 1 / len(probs)), size=_REPLICATES)).double()
    result: dict[str, Any] = {}
    for name, values in each.items():
        result[name] = rounded(float(values.mean()))
        result[f"{name}_interval"] = _interval(draws @ values / len(probs))
    result["smooth_ece"] = rounded(smooth_error(_cells(confidence, agreement, torch.ones_like(confidence))))
    result["smooth_ece_interval"] = _interval(smooth_errors(_cells(confidence, agreement, draws[:_SMOOTH_REPLICATES])))
    return result


def brier_to_people(probs: Tensor, counts: Tensor) -> Tensor:
    """The squared distance from people's shares on each image, less what chance in asking some of them adds on average."""
    asked = counts.sum(1, keepdim=True)
    people = counts / asked
    by_chance = (1 - people.square().sum(1)) / (asked[:, 0] - 1)
    return (probs - people).square().sum(1) - by_chance


def _cells(confidence: Tensor, agreement: Tensor, weights: Tensor) -> Cells:
    """The images by their confidence, people who agree as right and all others as wrong; weights are ``[..., n]``."""
    r, order = confidence.sort()
    right = (weights * agreement)[..., order]
    return Cells(r, right, weights[..., order] - right)


def _interval(values: Tensor) -> list[float]:
    tail = (1 - _LEVEL) / 2
    return [rounded(float(end)) for end in values.quantile(torch.tensor([tail, 1 - tail], dtype=values.dtype))]
