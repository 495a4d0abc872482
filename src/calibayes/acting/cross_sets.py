r"""Prediction sets without rows set aside: cross-conformal prediction, with its weaker guarantee.

Each of $K$ members is trained without its fold, and its scores of that fold are its calibration sample. A class has one
p-value from each member, and stays in the set if their mean is above $\alpha = 1 - \text{level}$. Twice the mean of p-values
that depend on each other in any way is a p-value (Vovk and Wang, 2020, https://arxiv.org/abs/1212.4966), so the coverage is at
least $1 - 2\alpha$; in practice it is near $1 - \alpha$. See Vovk, "Cross-conformal predictors" (2015,
https://arxiv.org/abs/1208.0806).

The members' scores are compared with their own: the average of the members, a different classifier, has no such guarantee. Nor
has a member that its fold had any part in: not in training, nor in when to stop it, a scaling, or the choice of the method.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from calibayes.acting.acting_inputs import as_tensor, read_labelled, read_probabilities
from calibayes.acting.conformal_scores import ConformalScore, ScoreName, chosen_score
from calibayes.checked_fields import Fields
from calibayes.checks import fraction
from calibayes.errors import InvalidArgumentError
from calibayes.metrics.prediction_arrays import Array

__all__ = ["CrossConformalSets", "cross_conformal_sets"]

_KIND = "cross-conformal-sets"


@dataclass(frozen=True, eq=False)
class CrossConformalSets:
    r"""Prediction sets from out-of-fold predictions; `cross_conformal_sets` makes them.

    Attributes:
        level: the coverage to expect, $1 - \alpha$.
        fold_scores: the scores of each fold's labels by the member that has not seen it, sorted.
        classes: the number of classes.
        score: the score and its settings.
    """

    level: float
    fold_scores: tuple[Tensor, ...]
    classes: int
    score: ConformalScore

    @property
    def guaranteed_level(self) -> float:
        r"""The coverage that is guaranteed, $1 - 2\alpha$."""
        return max(0.0, 2 * self.level - 1)

    @property
    def statement(self) -> str:
        """What is guaranteed, in words."""
        return (
            f"Sets hold the true class for at least {self.guaranteed_level:.4g} of new examples on average (guaranteed, if a "
            f"fold had no part in its member), and for about {self.level:.4g} in practice. "
            f"For a guarantee of {self.level:.4g}, set rows aside: `conformal_sets`."
        )

    def predict(self, member_probs: Array) -> Tensor:
        """The sets as booleans ``[n, K]``; no row is empty.

        Args:
            member_probs: the probabilities of each member, ``[M, n, K]``, in the order of the folds that they have not seen.
        """
        members = as_tensor("member_probs", member_probs)
        if members.dim() != 3 or len(members) != len(self.fold_scores) or members.shape[-1] != self.classes:
            raise InvalidArgumentError(
                f"Expected `member_probs` of shape [{len(self.fold_scores)}, n, {self.classes}], but got {list(members.shape)}."
            )
        total = 0.0 * members[0].double()
        every = [read_probabilities(probs, "member_probs") for probs in members]
        for probs, scores in zip(every, self.fold_scores, strict=True):
            candidates = self.score.of_classes(probs)
            total += 1 + len(scores) - torch.searchsorted(scores, candidates.contiguous())
        # Folds are weighted by their size plus one, so this is the weighted mean of their p-values.
        p_values = total / sum(len(scores) + 1 for scores in self.fold_scores)
        sets = p_values > 1 - self.level
        return sets.scatter(-1, torch.stack(every).mean(0).argmax(-1, keepdim=True), True)

    def sets(self, member_probs: Array) -> Tensor:
        """The same as `predict`."""
        return self.predict(member_probs)

    def to_dict(self) -> dict[str, Any]:
        """All of it in plain values that JSON can hold."""
        scores = [each.tolist() for each in self.fold_scores]
        return {
            "kind": _KIND,
            "level": self.level,
            "fold_scores": scores,
            "classes": self.classes,
            "score": self.score.to_dict(),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Rebuild what `to_dict` described."""
        fields = Fields.described(values, _KIND)
        scores = tuple(torch.tensor(each, dtype=torch.float64) for each in fields.number_rows("fold_scores", None, None))
        if len(scores) < 2 or any(not len(each) or bool((each.diff() < 0).any()) for each in scores):
            raise fields.wrong("fold_scores", "two lists or more, each of scores in ascending order")
        return cls(fields.fraction("level"), scores, fields.size("classes", 2), ConformalScore.of(fields.inside("score")))


def cross_conformal_sets(
    out_of_fold_probs: Array,
    labels: Array,
    folds: Array,
    level: float = 0.9,
    score: ScoreName | ConformalScore = "lac",
    *,
    seed: int | None = None,
) -> CrossConformalSets:
    """Calibrate prediction sets on out-of-fold predictions, where no rows were set aside.

    Args:
        out_of_fold_probs: for each example the probabilities by the member that was trained without it, ``[n, K]``. For the
            guarantee, the fold must not have stopped the training early either, as it does in `calibayes train`.
        labels: the true classes.
        folds: the fold of each example, 0 … M-1: the number of the member that was trained without it.
        level: the coverage to expect; what is guaranteed is ``2 * level - 1``.
        score: as in `conformal_sets`.
        seed: as in `conformal_sets`.

    Examples:
        >>> generator = torch.Generator().manual_seed(0)
        >>> probs = (2 * torch.randn(100, 3, generator=generator)).softmax(-1)
        >>> labels = torch.multinomial(probs, 1, generator=generator)[:, 0]
        >>> sets = cross_conformal_sets(probs, labels, torch.arange(100) % 5, level=0.9)
        >>> round(sets.guaranteed_level, 2), sets.predict(probs[:4].expand(5, 4, 3)).shape
        (0.8, torch.Size([4, 3]))
    """
    level = fraction("level", level)
    probs, targets = read_labelled(out_of_fold_probs, labels)
    fold = as_tensor("folds", folds)
    if fold.shape != targets.shape or fold.is_floating_point():
        raise InvalidArgumentError(
            f"Expected `folds` to be {len(targets)} integers, but got {fold.dtype} of shape {list(fold.shape)}."
        )
    count = int(fold.max()) + 1
    if count < 2 or int(fold.min()) < 0 or len(fold.unique()) != count:
        raise InvalidArgumentError(
            f"Expected `folds` to number two folds or more from 0 without gaps, but they are {fold.unique().tolist()[:8]}."
        )
    chosen = chosen_score(score, seed)
    scores = chosen.of_labels(probs, targets)
    parts = tuple(scores[fold == k].sort().values for k in range(count))
    return CrossConformalSets(level, parts, probs.shape[1], chosen)
