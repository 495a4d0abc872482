"""One training on half of a pool of examples, and how well it gives away which half that was."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, get_args

import torch
from torch import Tensor, nn

from calibayes.acting import membership_attack, membership_scores, true_class_log_odds
from calibayes.acting.membership_scores import MembershipMethod
from calibayes.data import Splits
from calibayes.metrics import accuracy, nll
from calibayes.networks import SmallCNN
from calibayes.posterior.abstract_posterior import Posterior
from calibayes.posthoc import TemperatureScaling
from calibayes.predictive import predict, samples_for
from calibayes.randomness import generator_for
from calibayes.recipes.compare.comparison_task import FASHION_MNIST
from calibayes.recipes.fashion import FashionTraining
from calibayes.recipes.single_training import TrainingSettings, train_and_score
from calibayes.recipes.training_scores import rounded
from reproduction.newsgroups_training import NewsgroupsTraining, newsgroups_task

__all__ = ["check_fashion", "fashion_membership_trial", "members_of_pool", "newsgroups_membership_trial", "pair_of"]


def pair_of(seed: int) -> int:
    """The pair of trainings that a seed belongs to: the two are trained on complementary halves of the pool."""
    return seed // 2


def members_of_pool(pool: int, seed: int) -> Tensor:
    """Which examples of a pool are trained on, booleans ``[pool]``: a random half, the other one for the next odd seed.

    So of any number of pairs, each example is in half of the trainings. Without the target's pair, as many trainings have seen
    an example as have not, and their number says nothing about the target.

    Examples:
        >>> bool((members_of_pool(10, 4) ^ members_of_pool(10, 5)).all()), int(members_of_pool(10, 4).sum())
        (True, 5)
    """
    order = torch.randperm(pool, generator=generator_for(torch.device("cpu"), pair_of(seed), "membership"))
    chosen = torch.zeros(pool, dtype=torch.bool)
    chosen[order[: pool // 2]] = True
    return chosen if seed % 2 == 0 else ~chosen


def newsgroups_membership_trial(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Train on ``train`` of twice as many articles, test and attack; names are those of `NewsgroupsTraining`."""
    chosen = NewsgroupsTraining.of(settings)
    return _train_and_attack(chosen, *newsgroups_task(chosen, None if chosen.train is None else 2 * chosen.train))


def fashion_membership_trial(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Train on ``train`` of twice as many images, test and attack; names are those of `FashionTraining`."""
    chosen = FashionTraining.of(settings)
    return _train_and_attack(chosen, _images(2 * chosen.train, chosen.validation, chosen.test), SmallCNN)


def check_fashion(settings: Mapping[str, Any]) -> None:
    """Raise if the settings are wrong; the images come with calibayes."""
    FashionTraining.of(settings)


def _train_and_attack(settings: TrainingSettings, splits: Splits, network: Callable[[], nn.Module]) -> dict[str, Any]:
    """Train on half of the training part; the result has the attacks on its predictions for the whole of it, too."""
    x, y = splits.train
    members = members_of_pool(len(y), settings.seed)

    def attacked(posterior: Posterior, final: Mapping[str, Any]) -> dict[str, Any]:
        samples = samples_for(posterior, settings.predictive_samples)
        plain = predict(posterior, x, samples=samples, seed=settings.seed, dtype=torch.float64).probs.cpu()
        scaled = TemperatureScaling.of(final["temperature"], plain.shape[1]).transform(plain)
        ways = {"plain": plain, "scaled": scaled}
        return {
            "members": members,
            # Two bytes each, since there are thousands a record: they are precise to a thousandth.
            "log_odds": {way: true_class_log_odds(probs, y).half() for way, probs in ways.items()},
            "attacks": {way: _attacks(probs, y, members) for way, probs in ways.items()},
            "pool": {name: _scores(plain[part], y[part]) for name, part in (("members", members), ("others", ~members))},
        }

    return train_and_score(settings, replace(splits, train=(x[members], y[members])), network, examine=attacked)


def _attacks(probs: Tensor, labels: Tensor, members: Tensor) -> dict[str, dict[str, Any]]:
    """The success of every attack that needs no shadow models, with the interval over examples."""
    results = {}
    for method in get_args(MembershipMethod):
        scores = membership_scores(probs, labels, method)
        attack = membership_attack(scores[members], scores[~members])
        results[method] = {
            name: {
                "value": rounded(getattr(attack, name)),
                "interval": [rounded(end) for end in getattr(attack, f"{name}_interval")],
            }
            for name in ("auc", "tpr", "advantage")
        }
    return results


def _scores(probs: Tensor, labels: Tensor) -> dict[str, float]:
    return {metric.__name__: rounded(metric(probs, labels)) for metric in (accuracy, nll)}


@lru_cache(maxsize=1)
def _images(train: int, validation: int, test: int) -> Splits:
    return FASHION_MNIST.load(train, validation, test)
