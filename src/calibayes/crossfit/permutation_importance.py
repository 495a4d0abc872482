"""Permutation importance: how much worse a cross-fitted classifier gets when one column's values are shuffled."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from calibayes.checks import fraction, positive, positive_integer
from calibayes.crossfit.cross_fit import CrossFit
from calibayes.crossfit.folds import Fold
from calibayes.crossfit.selection import row_losses
from calibayes.errors import InvalidArgumentError
from calibayes.predictive import predict, samples_for
from calibayes.randomness import derived_seed

__all__ = ["ColumnImportance", "permutation_importance"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_MOST_NUMBERS = 20_000_000  # inputs looked at: a wide table has fewer rows
_BLOCK = 1_000  # inputs whose differences between classes are computed at a time


class ColumnImportance(NamedTuple):
    """How much the classifier relies on a column.

    Attributes:
        name: the column.
        increase: of the out-of-fold NLL, in nats, when the column's values are shuffled.
        low: the lower end of the interval of the increase.
        high: the upper end.
    """

    name: str
    increase: float
    low: float
    high: float

    @property
    def clear(self) -> bool:
        """True if the interval lies above zero: the classifier uses the column."""
        return self.low > 0


class _HeldOut(NamedTuple):
    """Rows that a fold has held out, and where they are among all rows looked at."""

    fold: int
    inputs: Tensor
    targets: Ints
    places: slice


def permutation_importance(
    parts: Sequence[CrossFit],
    columns: Mapping[str, Sequence[int]],
    *,
    repeats: int = 5,
    max_rows: int = 2000,
    seconds: float = 30.0,
    level: float = 0.95,
    seed: int = 0,
) -> tuple[ColumnImportance, ...]:
    r"""Measure how much the out-of-fold NLL rises when a column is shuffled, for each column; the largest increase first.

    Values are shuffled among the held-out rows of a fold, and predicted by the members that have not seen these rows. Of
    several repeats of folds, the first is used. A column whose information is in other columns too has a small increase.

    The interval is over rows, paired. Let $h_{ij}$ be the increase in the loss of row $i$ when it gets the value of row $j$.
    The same rows are scored and lend their values, so row $i$ counts with its mean $h_{i\cdot}$ over the shuffles plus the mean
    $h_{\cdot i}$ over the rows that got its value. The half-width is the standard error of the mean of these sums times the
    normal quantile. It speaks of the same members on other rows, and is a little too wide for few repeats.

    Columns are looked at until the time is up, those first whose values differ most between classes; the result holds the ones
    that were. Its numbers do not depend on the time: each column has a seed of its own.

    Args:
        parts: the cross-fitted learners whose probabilities are averaged, on the same folds; one, but for a blend.
        columns: the places of the inputs that each column became, which are shuffled together.
        repeats: how often each column is shuffled.
        max_rows: how many held-out rows are looked at, at most; fewer in tables of more than 10,000 inputs.
        seconds: the time limit; at least one column is looked at.
        level: the probability with which an interval holds the true increase.
        seed: of the rows and the shuffles.
    """
    positive_integer("repeats", repeats)
    positive_integer("max_rows", max_rows)
    positive("seconds", seconds)
    z = NormalDist().inv_cdf((1 + fraction("level", level)) / 2)
    folds, start = _first_repeat(parts), time.perf_counter()
    inputs, targets = parts[0].examples[:2]
    _check_places(columns, inputs.shape[1])
    rng = np.random.default_rng(derived_seed(seed, "rows"))
    groups = _chosen_rows(folds, inputs, targets.numpy(), min(max_rows, max(2, _MOST_NUMBERS // inputs.shape[1])), rng)
    if not groups or not columns:
        return ()
    losses = [_losses(parts, group) for group in groups]
    found: list[ColumnImportance] = []
    for name in _most_different_first(groups, columns):
        if found and time.perf_counter() - start > seconds:
            break
        shuffles = np.random.default_rng(derived_seed(seed, "column", name))
        found.append(_importance(name, list(columns[name]), parts, groups, losses, repeats, shuffles, z))
    return tuple(sorted(found, key=lambda each: -each.increase))


def _importance(
    name: str,
    places: list[int],
    parts: Sequence[CrossFit],
    groups: Sequence[_HeldOut],
    losses: Sequence[Floats],
    repeats: int,
    rng: np.random.Generator,
    z: float,
) -> ColumnImportance:
    received = np.zeros(groups[-1].places.stop)
    lent = np.zeros_like(received)
    for group, plain in zip(groups, losses, strict=True):
        own = group.inputs[:, places].clone()
        for _ in range(repeats):
            # Along one cycle through all rows, no row keeps its own value, and each value is used once.
            order = rng.permutation(len(own))
            donors = np.empty_like(order)
            donors[order] = np.roll(order, 1)
            group.inputs[:, places] = own[torch.from_numpy(donors)]
            increase = (_losses(parts, group) - plain) / repeats
            received[group.places] += increase
            lent[group.places][donors] += increase
        group.inputs[:, places] = own
    mean = float(received.mean())
    half = z * float((received + lent).std(ddof=1) / np.sqrt(len(received)))
    return ColumnImportance(name, mean, mean - half, mean + half)


def _losses(parts: Sequence[CrossFit], group: _HeldOut) -> Floats:
    """The loss of each row of a group under the average of the parts' members that have not seen it."""
    found = []
    for part in parts:
        member = part.members[group.fold]
        samples = samples_for(member, part.samples)
        found.append(predict(member, group.inputs, samples=samples, seed=part.seed, dtype=torch.float64).probs.numpy())
    return row_losses(np.mean(found, axis=0), group.targets)


def _first_repeat(parts: Sequence[CrossFit]) -> list[Fold]:
    """The folds up to the first one that holds out rows again."""
    if not parts:
        raise InvalidArgumentError("Expected `parts` to hold at least one cross-fitted learner, but got none.")
    seen = np.zeros(len(parts[0].examples.targets), dtype=bool)
    folds: list[Fold] = []
    for fold in parts[0].folds:
        if seen[fold.held_out].any():
            break
        seen[fold.held_out] = True
        folds.append(fold)
    for part in parts:
        if len(part.members) < len(folds):
            raise InvalidArgumentError(
                f"Expected `parts` to be trained, but {part.learner.title!r} has {len(part.members)} of {len(folds)} members. "
                "Call its `run()` first."
            )
        if not all(np.array_equal(own.held_out, fold.held_out) for own, fold in zip(part.folds, folds, strict=False)):
            raise InvalidArgumentError(f"Expected `parts` of the same folds, but those of {part.learner.title!r} differ.")
    return folds


def _check_places(columns: Mapping[str, Sequence[int]], width: int) -> None:
    for name, places in columns.items():
        if not len(places) or min(places) < 0 or max(places) >= width:
            raise InvalidArgumentError(
                f"Expected `columns` to map {name!r} to places from 0 to {width - 1}, but got {list(places)!r:.60}."
            )


def _chosen_rows(folds: Sequence[Fold], inputs: Tensor, targets: Ints, most: int, rng: np.random.Generator) -> list[_HeldOut]:
    """Copies of rows drawn from those held out; a fold with a single one has nothing to shuffle."""
    held_out = np.concatenate([fold.held_out for fold in folds])
    chosen = np.zeros(len(targets), dtype=bool)
    chosen[rng.permutation(held_out)[:most]] = True
    groups: list[_HeldOut] = []
    end = 0
    for place, fold in enumerate(folds):
        rows = fold.held_out[chosen[fold.held_out]]
        if len(rows) > 1:
            groups.append(_HeldOut(place, inputs[torch.from_numpy(rows)], targets[rows], slice(end, end + len(rows))))
            end += len(rows)
    return groups


def _most_different_first(groups: Sequence[_HeldOut], columns: Mapping[str, Sequence[int]]) -> list[str]:
    """The columns by the share of their variance that lies between classes: cheap, and a guess at what matters."""
    targets = torch.from_numpy(np.concatenate([group.targets for group in groups]))
    member = torch.nn.functional.one_hot(targets).double()
    counts = member.sum(0).clamp_min(1)
    width = groups[0].inputs.shape[1]
    shares = np.zeros(width)
    for begin in range(0, width, _BLOCK):
        values = torch.cat([group.inputs[:, begin : begin + _BLOCK] for group in groups]).double()
        values = values - values.nanmean(0).nan_to_num()
        values = values.nan_to_num()  # a missing value tells nothing here
        between = ((member.T @ values).square() / counts[:, None]).sum(0)
        total = values.square().sum(0)
        shares[begin : begin + _BLOCK] = torch.where(total > 0, between / total, 0.0).numpy()
    return sorted(columns, key=lambda name: -float(shares[list(columns[name])].max()))
