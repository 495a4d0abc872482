"""A test whether new data are exchangeable with old ones: a two-sample test whose p-value is exact."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
import torch

from calibayes.acting.acting_inputs import as_tensor, coarser_type
from calibayes.checks import positive_integer
from calibayes.errors import InvalidArgumentError
from calibayes.metrics.prediction_arrays import Array
from calibayes.randomness import derived_seed
from calibayes.wording import did_you_mean

__all__ = ["ExchangeabilityTest", "TwoSampleStatistic", "same_distribution"]

TwoSampleStatistic = Literal["ks", "mmd"]
Floats = npt.NDArray[np.float64]

_MOST_ROWS = 2000  # of the kernel matrix
_BLOCK = 1 << 22  # numbers at a time


@dataclass(frozen=True)
class ExchangeabilityTest:
    """The result of a two-sample test.

    Attributes:
        p_value: the probability of a difference as large as this one, or larger, if old and new are exchangeable.
        value: of the statistic.
        statistic: ``"ks"`` or ``"mmd"``.
        permutations: how many shuffles it was compared with.
        rows: the number of old and of new examples that were used.
    """

    p_value: float
    value: float
    statistic: TwoSampleStatistic
    permutations: int
    rows: tuple[int, int]


def same_distribution(
    old: Array, new: Array, statistic: TwoSampleStatistic | None = None, *, permutations: int = 999, seed: int = 0
) -> ExchangeabilityTest:
    r"""Test whether new confidences, scores or features may come from where the old ones came from.

    Old and new are shuffled together many times: if they are exchangeable, the observed difference is as likely as any other
    to be the largest. The p-value $(1 + \#\{\text{shuffles at least as different}\}) / (1 + \#\text{shuffles})$ is exact for
    any sample, with ties too. A low one says that the model may be out of its depth; a high one does not say that labels
    still depend on inputs as before.

    Args:
        old: confidences or scores ``[n]``, or features ``[n, d]``, of examples that did not train the classifier: on
            training examples it is more confident.
        new: the same of new examples.
        statistic: ``"ks"``, the largest difference of the cumulative distributions, for one number per example (its default);
            ``"mmd"``, the squared maximum mean discrepancy of a Gaussian kernel, its width the median distance, for any. Of
            more than 2,000 old or new rows together, ``"mmd"`` takes 2,000 at random.
        permutations: the number of shuffles.
        seed: of the shuffles.

    Examples:
        >>> generator = torch.Generator().manual_seed(0)
        >>> old = torch.rand(300, generator=generator)
        >>> same_distribution(old, torch.rand(200, generator=generator)).p_value > 0.05
        True
        >>> same_distribution(old, torch.rand(200, generator=generator) ** 2).p_value
        0.001
    """
    # The float32 of a number differs from its float64, so in two types equal numbers would look shifted.
    common = coarser_type(old, new)
    first, second = _read("old", old, common), _read("new", new, common)
    if first.shape[1] != second.shape[1]:
        raise InvalidArgumentError(
            f"Expected as many columns in `new` as in `old`, {first.shape[1]}, but got {second.shape[1]}."
        )
    chosen = statistic or ("ks" if first.shape[1] == 1 else "mmd")
    if chosen not in get_args(TwoSampleStatistic):
        raise InvalidArgumentError(f"Unknown `statistic` {chosen!r}. {did_you_mean(chosen, get_args(TwoSampleStatistic))}")
    if chosen == "ks" and first.shape[1] > 1:
        raise InvalidArgumentError(f"'ks' compares one number per example, but there are {first.shape[1]}. Use 'mmd'.")
    positive_integer("permutations", permutations)
    generator = np.random.default_rng(derived_seed(seed, "exchangeability"))
    if chosen == "mmd" and len(first) + len(second) > _MOST_ROWS:
        keep = _MOST_ROWS / (len(first) + len(second))
        sizes = [max(2, min(len(part), round(keep * len(part)))) for part in (first, second)]
        first, second = (
            part[generator.permutation(len(part))[:size]] for part, size in zip((first, second), sizes, strict=True)
        )
    pooled = np.concatenate((first, second))
    values = (_ks if chosen == "ks" else _mmd)(pooled, len(second), permutations, generator)
    # Rounding must not make an equal shuffle look smaller.
    larger = int((values[1:] >= values[0] - 1e-12 * max(1.0, abs(values[0]))).sum())
    return ExchangeabilityTest(
        (1 + larger) / (1 + permutations), float(values[0]), chosen, permutations, (len(first), len(second))
    )


def _ks(pooled: Floats, new: int, permutations: int, generator: np.random.Generator) -> Floats:
    """The statistic of the data, and of each shuffle."""
    total = len(pooled)
    order = np.argsort(pooled[:, 0], kind="stable")
    ends = np.append(np.diff(pooled[order, 0]) > 0, True)  # differences count after all of a tie
    step = np.where(np.arange(total) >= total - new, 1 / new, -1 / (total - new))

    def largest(steps: Floats) -> Floats:
        cumulative = np.cumsum(steps, axis=-1)
        result: Floats = np.abs(cumulative[..., ends]).max(-1)
        return result

    values = [largest(step[order][None])]
    for count in _blocks(permutations, total):
        values.append(largest(generator.permuted(np.tile(step, (count, 1)), axis=1)))
    return np.concatenate(values)


def _mmd(pooled: Floats, new: int, permutations: int, generator: np.random.Generator) -> Floats:
    """The statistic of the data, and of each shuffle."""
    total = len(pooled)
    rows = torch.from_numpy(pooled - pooled.mean(0))
    squares = torch.cdist(rows, rows).square().numpy()
    squares[squares < 1e-12 * squares.max()] = 0.0  # equal rows, but for rounding: their distances must not be the median
    positive = squares[squares > 0]
    kernel = np.exp(-squares / (2 * np.median(positive))) if len(positive) else np.ones_like(squares)
    weights = np.where(np.arange(total) >= total - new, 1 / new, -1 / (total - new))

    def discrepancy(rows: Floats) -> Floats:
        result: Floats = ((rows @ kernel) * rows).sum(-1)
        return result

    values = [discrepancy(weights[None])]
    for count in _blocks(permutations, total):
        values.append(discrepancy(generator.permuted(np.tile(weights, (count, 1)), axis=1)))
    return np.concatenate(values)


def _blocks(permutations: int, total: int) -> list[int]:
    """How many shuffles to make at a time."""
    size = max(1, _BLOCK // total)
    return [min(size, permutations - start) for start in range(0, permutations, size)]


def _read(name: str, values: Array, dtype: torch.dtype) -> Floats:
    rows = as_tensor(name, values).to(dtype).double()
    rows = rows[:, None] if rows.dim() == 1 else rows
    if rows.dim() != 2 or len(rows) < 2 or not rows.numel():
        raise InvalidArgumentError(
            f"Expected `{name}` of shape [n] or [n, d] with two rows or more, but got {list(rows.shape)}."
        )
    if not math.isfinite(float(rows.abs().sum())):
        raise InvalidArgumentError(f"Expected `{name}` to be finite, but it has NaN or infinite values.")
    result: Floats = rows.numpy()
    return result
