"""How much trained networks leak about who was in their training data: attacks on every target, by scheme."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_args

import numpy as np
import torch
from torch import Tensor

from calibayes.acting import lira_scores, tpr_at_fpr
from calibayes.acting.detection import auroc
from calibayes.acting.membership_scores import LiraVariant, MembershipMethod
from reproduction.experiment_results import BySeed, PartResults, SeedDifference, between
from reproduction.membership_training import pair_of

__all__ = ["ATTACKS", "Leak", "leak_summary", "leaks", "mean_over_pairs"]

_LIRA: Mapping[str, LiraVariant] = {"LiRA": "online", "LiRA offline": "offline"}
ATTACKS = (*get_args(MembershipMethod), *_LIRA)
_LEAST_PAIRS = 3  # two others of each kind, for a variance


@dataclass(frozen=True)
class Leak:
    """The attacks on all targets of a scheme, of which only complete pairs are used."""

    name: str  # of the scheme, and of a scaling
    way: str  # "plain", or "scaled" by a temperature
    results: Mapping[int, dict[str, Any]]  # of each training, by seed

    def score(self, attack: str, measure: str) -> BySeed:
        """The ``"auc"`` or ``"tpr"`` of an attack, for each pair the mean of its two targets."""
        if attack in _LIRA:
            return self._lira[attack, measure]
        return self._by_pair(lambda result: float(result["attacks"][self.way][attack][measure]["value"]))

    def final(self, measure: str) -> BySeed:
        """A score on test examples, for each pair the mean of both."""
        part = "test" if self.way == "plain" else "scaled"
        return self._by_pair(lambda result: float(result["final"][part][measure]))

    def accuracy_on_members(self) -> BySeed:
        """The accuracy on the training examples, for each pair the mean of both."""
        return self._by_pair(lambda result: float(result["pool"]["members"]["accuracy"]))

    def target_scores(self, attack: str) -> Iterator[tuple[int, Tensor, Tensor]]:
        """The seed of each target, and the scores of its members and of the others, of LiRA or a threshold on the loss."""
        odds = torch.stack([result["log_odds"][self.way].double() for result in self.results.values()])
        members = torch.stack([result["members"] for result in self.results.values()])
        pairs = torch.tensor([pair_of(seed) for seed in self.results])
        for row, seed in enumerate(self.results):
            shadows = pairs != pair_of(seed)
            scores = odds[row]  # the loss falls as the log-odds rise
            if attack in _LIRA:
                scores = lira_scores(odds[row], odds[shadows], members[shadows], variant=_LIRA[attack])
            yield seed, scores[members[row]], scores[~members[row]]

    @cached_property
    def _lira(self) -> dict[tuple[str, str], BySeed]:
        scores: dict[tuple[str, str], BySeed] = {}
        for attack in _LIRA:
            targets = {seed: (inside, outside) for seed, inside, outside in self.target_scores(attack)}
            areas = {seed: auroc(outside.numpy(), inside.numpy()) for seed, (inside, outside) in targets.items()}
            scores[attack, "auc"] = _pair_means(areas)
            scores[attack, "tpr"] = _pair_means({seed: tpr_at_fpr(*sides) for seed, sides in targets.items()})
        return scores

    def _by_pair(self, number: Any) -> BySeed:
        return _pair_means({seed: number(result) for seed, result in self.results.items()})


def leaks(parts: Sequence[PartResults]) -> list[Leak]:
    """The attacks on every scheme with at least three complete pairs; on FNN, with a temperature too."""
    attacked = []
    for part in parts:
        results = {each.seed: result for each, result in zip(part.settings, part.results, strict=True)}
        complete = {seed: result for seed, result in sorted(results.items()) if seed ^ 1 in results}
        if len(complete) >= 2 * _LEAST_PAIRS:
            attacked.append(Leak(part.name, "plain", complete))
            if part.name == "FNN":
                attacked.append(Leak("FNN with temperature", "scaled", complete))
    return attacked


def mean_over_pairs(name: str, scores: BySeed) -> SeedDifference:
    """The mean over pairs of targets with Student's interval.

    A pair counts as one, since its trainings share the halves of the pool. The interval is about other halves of the same pool
    and other seeds. It does not take into account that the targets of LiRA share most of their shadow models.
    """
    return between(name, scores)


def leak_summary(parts: Sequence[PartResults]) -> list[dict[str, Any]]:
    """All scores of each pair as numbers."""
    return [
        {
            "name": leak.name,
            "seeds": list(leak.results),
            "test": {measure: list(leak.final(measure).values()) for measure in ("accuracy", "ece", "nll")},
            "accuracy_on_members": list(leak.accuracy_on_members().values()),
            **{
                measure: {attack: list(leak.score(attack, measure).values()) for attack in ATTACKS}
                for measure in ("auc", "tpr")
            },
        }
        for leak in leaks(parts)
    ]


def _pair_means(scores: Mapping[int, float]) -> BySeed:
    pairs: dict[int, list[float]] = {}
    for seed, value in scores.items():
        pairs.setdefault(pair_of(seed), []).append(value)
    return {pair: float(np.mean(values)) for pair, values in pairs.items()}
