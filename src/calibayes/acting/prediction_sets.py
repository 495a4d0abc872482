r"""Prediction sets: the classes that an example may have, with a coverage that holds for any classifier.

Split conformal prediction: on $n$ calibration examples that the classifier has not seen, take the
$\lceil (n+1) \, \text{level} \rceil$-th smallest score of the labels as threshold; the set of a new example are the classes
whose score does not exceed it. If old and new examples are exchangeable, the set holds the label with a probability of at
least the level. See Vovk, Gammerman and Shafer, "Algorithmic Learning in a Random World" (2005).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

import numpy as np
import torch
from torch import Tensor

from calibayes.acting.acting_inputs import ActingWarning, read_labelled, read_probabilities
from calibayes.acting.conformal_scores import LEAST, ConformalScore, ScoreName, chosen_score
from calibayes.checked_fields import Fields
from calibayes.checks import fraction, is_real
from calibayes.errors import InvalidArgumentError
from calibayes.metrics.intervals import Interval
from calibayes.metrics.prediction_arrays import Array
from calibayes.predictive import Predictive
from calibayes.wording import counted, did_you_mean, first_few, shown

__all__ = ["Per", "PredictionSets", "conformal_sets", "examples_needed"]

Per = Literal["all", "class", "group"]
_KIND = "prediction-sets"


def examples_needed(level: float) -> int:
    """The number of calibration examples below which a set must hold every class to reach the level.

    Examples:
        >>> examples_needed(0.9), examples_needed(0.99)
        (9, 99)
    """
    least = max(1, math.ceil(fraction("level", level) / (1 - level)))
    # Near 1 the quotient is rounded too far to tell this number from the one below.
    return least - 1 if least > 1 and _rank(least - 1, level) < least else least


@dataclass(frozen=True, eq=False)
class PredictionSets:
    """Calibrated thresholds, which turn probabilities into prediction sets; `conformal_sets` makes them.

    Attributes:
        level: the coverage that is guaranteed: of all examples, of those of each class, or of those of each group.
        thresholds: on the score; one, or one for each class or group; infinite where the sets hold every class.
        counts: the number of calibration examples behind each threshold.
        classes: the number of classes.
        score: the score and its settings.
        per: which examples share a threshold.
        groups: the names of the groups, in the order of the thresholds.
    """

    level: float
    thresholds: Tensor
    counts: tuple[int, ...]
    classes: int
    score: ConformalScore
    per: Per = "all"
    groups: tuple[str, ...] = ()

    @classmethod
    def fit(
        cls,
        probs: Array | Predictive,
        labels: Array,
        coverage: float = 0.9,
        score: ScoreName | ConformalScore = "lac",
        by_class: bool = False,
    ) -> PredictionSets:
        """Calibrate sets; `conformal_sets` has more settings."""
        level = fraction("coverage", coverage)
        return conformal_sets(probs, labels, level=level, score=score, per="class" if by_class else "all")

    def predict(self, probs: Array | Predictive, groups: Sequence[Any] | Array | None = None) -> Tensor:
        """The sets as booleans ``[n, K]``; no row is empty.

        Args:
            probs: class probabilities ``[n, K]``, from the classifier whose predictions were calibrated.
            groups: the group of each example, if there is a threshold for each.
        """
        values = read_probabilities(probs)
        if values.shape[1] != self.classes:
            raise InvalidArgumentError(f"These sets are for {self.classes} classes, but `probs` has {values.shape[1]} columns.")
        if (groups is not None) != (self.per == "group"):
            has = "one threshold for each group: pass `groups`" if self.per == "group" else "no groups: leave `groups` out"
            raise InvalidArgumentError(f"These sets have {has}.")
        thresholds = self.thresholds if groups is None else self._of_groups(groups, len(values))
        return self.score.of_classes(values) <= thresholds

    def coverage_range(self, certainty: float = 0.9) -> Interval:
        r"""The range in which the coverage lies for *this* calibration sample, with this certainty.

        Over calibration samples the coverage has a beta distribution of the parameters $k$ and $n + 1 - k$, where $k$ is the
        rank of the threshold. With ties among the scores it is higher: the lower end holds, the upper one may be exceeded.
        Where the most probable class alone is enough, the upper end is 1. With several thresholds the range goes from the
        lowest end to the highest; each of them has the certainty by itself.
        """
        from scipy.special import betaincinv

        tail = (1 - fraction("certainty", certainty)) / 2
        ends = []
        for n, threshold in zip(self.counts, self.thresholds.tolist(), strict=True):
            k = _rank(n, self.level)
            over = n + 1 - k
            low, high = (1.0, 1.0) if over < 1 else (float(betaincinv(k, over, p)) for p in (tail, 1 - tail))
            # At the lowest score of all, the coverage is the accuracy, however far above the level it is.
            ends.append((low, 1.0 if threshold <= LEAST else high))
        return Interval(min(low for low, _ in ends), max(high for _, high in ends))

    @property
    def statement(self) -> str:
        """What is guaranteed, in words."""
        which = {"all": "of new examples", "class": "of new examples of each class", "group": "of new examples of each group"}
        return (
            f"Sets hold the true class for at least {self.level:.4g} {which[self.per]}, on average over calibration samples, "
            f"if new examples come from where the {counted(sum(self.counts), 'calibration example')} came from."
        )

    def to_dict(self) -> dict[str, Any]:
        """All of it in plain values that JSON can hold; an infinite threshold is ``None``."""
        return {
            "kind": _KIND,
            "level": self.level,
            "thresholds": [each if math.isfinite(each) else None for each in self.thresholds.tolist()],
            "counts": list(self.counts),
            "classes": self.classes,
            "score": self.score.to_dict(),
            "per": self.per,
            "groups": list(self.groups),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Rebuild what `to_dict` described."""
        fields = Fields.described(values, _KIND)
        per: Per = fields.text("per", get_args(Per))  # type: ignore[assignment]
        classes, groups = fields.size("classes", 2), fields.texts("groups")
        parts = {"all": 1, "class": classes, "group": len(groups)}[per]
        thresholds, counts = fields.numbers("thresholds", none=math.inf), fields.sizes("counts", None, least=0)
        for name, each in (("thresholds", thresholds), ("counts", counts)):
            if len(each) != parts:
                raise fields.wrong(name, f"a list of {parts:,}, as {per!r} says")
        return cls(
            level=fields.fraction("level"),
            thresholds=torch.tensor(thresholds, dtype=torch.float64),
            counts=counts,
            classes=classes,
            score=ConformalScore.of(fields.inside("score")),
            per=per,
            groups=groups,
        )

    def _of_groups(self, groups: Sequence[Any] | Array, examples: int) -> Tensor:
        names = group_names(groups, examples)
        place = {name: index for index, name in enumerate(self.groups)}
        unknown = [name for name in names if name not in place]
        if unknown:
            raise InvalidArgumentError(
                f"There were no calibration examples of the group {shown(unknown[0])}, so nothing is known about its sets. "
                f"Known are {first_few(self.groups)}; calibrate with examples of every group."
            )
        return self.thresholds[torch.tensor([place[name] for name in names])][:, None]


def conformal_sets(
    calibration_probs: Array | Predictive,
    labels: Array,
    level: float = 0.9,
    score: ScoreName | ConformalScore = "lac",
    per: Per = "all",
    groups: Sequence[Any] | Array | None = None,
    *,
    seed: int | None = None,
) -> PredictionSets:
    """Calibrate prediction sets on examples that neither the classifier nor a scaling of its probabilities has seen.

    Args:
        calibration_probs: the classifier's probabilities of the calibration examples, ``[n, K]``.
        labels: their true classes.
        level: the coverage to guarantee.
        score: a name, or a `ConformalScore` with settings of its own. LAC has the smallest sets on average; APS and RAPS
            cover hard examples better.
        per: guarantee the level for ``"all"`` examples together, for those of each true ``"class"``, or of each ``"group"``.
        groups: the group of each example, numbers or names.
        seed: randomises APS, RAPS and top-k; see `ConformalScore`.

    Examples:
        >>> probs = torch.tensor([[0.7, 0.2, 0.1], [0.5, 0.4, 0.1], [0.1, 0.6, 0.3], [0.4, 0.35, 0.25]])
        >>> sets = conformal_sets(probs, torch.tensor([0, 1, 1, 1]), level=0.6)
        >>> round(float(sets.thresholds[0]), 2)
        0.6
        >>> sets.predict(torch.tensor([[0.55, 0.41, 0.04], [0.9, 0.05, 0.05]]))
        tensor([[ True,  True, False],
                [ True, False, False]])
    """
    level = fraction("level", level)
    if per not in get_args(Per):
        raise InvalidArgumentError(f"Unknown `per` {per!r}. {did_you_mean(per, get_args(Per))}")
    if (groups is not None) != (per == "group"):
        raise InvalidArgumentError(f"Expected `groups` with `per='group'` and only then, but `per` is {per!r}.")
    chosen = chosen_score(score, seed)
    probs, targets = read_labelled(calibration_probs, labels)
    scores, classes = chosen.of_labels(probs, targets), probs.shape[1]
    names: tuple[str, ...] = ()
    if per == "all":
        parts = [scores]
    elif per == "class":
        parts = [scores[targets == k] for k in range(classes)]
    else:
        of_rows = group_names(groups if groups is not None else [], len(scores))
        names = tuple(dict.fromkeys(of_rows))
        of_each = np.asarray(of_rows, dtype=object)
        parts = [scores[torch.from_numpy(of_each == name)] for name in names]
    counts = tuple(map(len, parts))
    _warn_of_few(level, per, counts, names)
    thresholds = torch.tensor([conformal_quantile(part, level) for part in parts], dtype=torch.float64)
    return PredictionSets(level, thresholds, counts, classes, chosen, per, names)


def conformal_quantile(scores: Tensor, level: float) -> float:
    """The score that a new one does not exceed with a probability of at least the level; infinite if they are too few."""
    rank = _rank(len(scores), level)
    return math.inf if rank > len(scores) else float(scores.kthvalue(rank).values)


def group_names(groups: Sequence[Any] | Array, examples: int) -> list[str]:
    """The group of each example as text, so that a file can hold it."""
    values = groups.tolist() if isinstance(groups, Tensor | np.ndarray) else list(groups)
    if len(values) != examples:
        raise InvalidArgumentError(f"Expected `groups` to have one entry for each of {examples} rows, but got {len(values)}.")
    for row, value in enumerate(values):
        if _is_missing(value):
            raise InvalidArgumentError(
                f"Expected `groups` to name the group of every row, but entry {row} is {value}. Give rows without a group "
                "one of their own, such as 'unknown', or leave them out."
            )
    return [str(value) for value in values]


def _is_missing(value: Any) -> bool:
    # pandas' NA cannot be compared, not even with itself.
    return value is None or type(value).__name__ in ("NAType", "NaTType") or (is_real(value) and value != value)


def _rank(n: int, level: float) -> int:
    # Rounding must not push a product such as 10 · 0.9 over the next integer.
    return max(1, math.ceil((n + 1) * level - 1e-9))


def _warn_of_few(level: float, per: Per, counts: Sequence[int], names: Sequence[str]) -> None:
    least = examples_needed(level)
    few = [index for index, count in enumerate(counts) if count < least]
    if not few:
        return
    if per == "all":
        who, where = f"There {'is' if counts[0] == 1 else 'are'} {counted(counts[0], 'calibration example')}", "all classes"
    else:
        listed = first_few([f"{names[index] if names else index} ({counts[index]})" for index in few])
        where = {"class": "these classes everywhere", "group": "all classes in these groups"}[per]
        several = {"class": "classes", "group": "groups"}[per]
        who = f"There are too few calibration examples of {len(few):,} {per if len(few) == 1 else several}: {listed}"
    warnings.warn(
        f"{who}. A level of {level:.4g} needs at least {least:,}"
        f"{'' if per == 'all' else f' for each {per}'}; with fewer, sets hold {where}.",
        ActingWarning,
        stacklevel=3,
    )
