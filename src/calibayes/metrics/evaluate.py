"""Every score of a set of predictions, together."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import torch
from torch import Tensor

from calibayes.checks import fraction, integer, positive, positive_integer
from calibayes.errors import InvalidArgumentError
from calibayes.metrics.agreement import CONFIDENCE_ERRORS, agreed, excludes_zero
from calibayes.metrics.bins import DEFAULT_BINS
from calibayes.metrics.bootstrap import draws
from calibayes.metrics.calibration_test import calibration_p_value
from calibayes.metrics.catalogue import METRICS
from calibayes.metrics.confidence_cells import Cells, sorted_cells
from calibayes.metrics.intervals import Draws, Interval, wilson, with_rare_errors, within_bounds
from calibayes.metrics.kernel_errors import WIDTH
from calibayes.metrics.metric_values import EvaluationSample, part_of, values
from calibayes.metrics.pairs import NEED_ALL_PROBABILITIES, as_pairs, as_values
from calibayes.metrics.prediction_arrays import Array, Predictions, as_predictions
from calibayes.metrics.proper_scores import default_k
from calibayes.metrics.score_table import ClassScores, Scores
from calibayes.metrics.tally import BLOCKS, PARTS, Tally, fitted_edges
from calibayes.randomness import generator_for
from calibayes.threads import in_one_thread
from calibayes.wording import joined

_ORDER = tuple(metric.name for metric in METRICS)
MOST_BINS = 10_000  # more would tell nothing, and fill the memory
_RARE = 10  # errors, or right decisions, below which resampling says little about how many there could have been

__all__ = [
    "MOST_BINS",
    "EvaluationSettings",
    "check_metric",
    "check_names",
    "confidence_interval",
    "evaluate",
    "intervals_of",
    "scores_of",
]


def evaluate(
    probs: Any = None,
    targets: Array | Sequence[int] | None = None,
    bins: int = DEFAULT_BINS,
    *,
    confidence: Array | Sequence[float] | None = None,
    correct: Array | Sequence[Any] | None = None,
    weights: Array | None = None,
    class_names: Sequence[str] | None = None,
    intervals: bool = True,
    level: float = 0.95,
    replicates: int = 1000,
    seed: int = 0,
    target_accuracy: float = 0.95,
    k: int | None = None,
    kernel_width: float = WIDTH,
    check: bool = True,
) -> Scores:
    """Every score of a classifier's probabilities at once, with intervals, so that none is read without the others.

    Intervals come from a bootstrap over the examples (accuracy and top-k accuracy have Wilson's). Those of calibration
    errors are corrected for what chance adds to such an error, so the interval of a calibrated classifier begins at 0
    and may lie below the estimate: see `calibayes.metrics.intervals`. None of them excludes 0 unless ``kce_p_value`` is at
    most ``1 - level``: see `calibayes.metrics.agreement`. They speak of other examples of the same kind, not
    of another training of the classifier.

    Args:
        probs: class probabilities, shape ``[n, K]`` or one column for two classes, torch, numpy or lists; or a `Predictive`.
        targets: the true classes, integers of shape ``[n]``.
        bins: the number of bins of the binned errors.
        confidence: instead of ``probs``, how sure the classifier is of each answer, where that is all there is. Metrics that
            need the probabilities of all classes are NaN then; NLL and Brier score are those of right and wrong.
        correct: instead of ``targets``, whether each answer is right.
        weights: how much each example counts; only ratios matter.
        class_names: what the classes are called, in the order of the columns.
        intervals: whether to compute them, which takes about a second.
        level: the probability with which an interval holds the true value.
        replicates: how many times the examples are resampled.
        seed: of the resampling.
        target_accuracy: of ``coverage_at_target``.
        k: of the top-k accuracy; 5 by default, fewer where there are at most 5 classes.
        kernel_width: of MMCE, WMMCE and KCE.
        check: look at the values first; ``False`` when they are known to be good.

    Examples:
        >>> probs = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6], [0.3, 0.7]])
        >>> scores = evaluate(probs, torch.tensor([0, 1, 1, 1]), class_names=["cat", "dog"])
        >>> scores.accuracy, round(scores.ece, 4), round(scores.intervals["accuracy"].low, 4)
        (0.75, 0.4, 0.3006)
        >>> scores.per_class[0].name, scores.per_class[0].share
        ('cat', 0.25)
        >>> evaluate(confidence=[0.9, 0.8, 0.6, 0.7], correct=[True, False, True, True]).accuracy
        0.75
    """
    found = _predictions(probs, targets, confidence, correct, weights, check)
    settings = EvaluationSettings(bins, target_accuracy=target_accuracy, k=k, kernel_width=kernel_width, seed=seed)
    sample = settings.sample(found, resample=intervals)
    measured = values(sample)
    ends = {}
    if intervals:
        ends = intervals_of(sample, measured, draws(sample, measured, replicates, seed), level)
    names = None if found.pairs else check_names(class_names, found.classes)
    return scores_of(sample, measured, ends, level if intervals else None, names, pairs=found.pairs)


def _predictions(probs: Any, targets: Any, confidence: Any, correct: Any, weights: Any, check: bool) -> Predictions:
    """What was given as predictions: all probabilities and the true classes, or pairs of confidence and correctness."""
    given = {"probs": probs, "targets": targets, "confidence": confidence, "correct": correct}
    names = [name for name, value in given.items() if value is not None]
    if names == ["confidence", "correct"]:
        return as_pairs(confidence, correct, weights)
    if names != ["probs", "targets"]:
        raise InvalidArgumentError(
            f"Expected `probs` and `targets`, or `confidence` and `correct`, but got {joined(names or ['none of them'])}."
        )
    return as_predictions(as_values(probs), as_values(targets), None if weights is None else as_values(weights), check=check)


def confidence_interval(
    metric: str,
    probs: Array,
    targets: Array,
    bins: int = DEFAULT_BINS,
    *,
    weights: Array | None = None,
    level: float = 0.95,
    replicates: int = 1000,
    seed: int = 0,
    target_accuracy: float = 0.95,
    k: int | None = None,
    kernel_width: float = WIDTH,
    check: bool = True,
) -> Interval:
    """The interval of a single metric, faster than those of all; the same as in ``evaluate(...).intervals``.

    Args:
        metric: a name of `METRICS`, such as ``"ece"``.
        probs: class probabilities, shape ``[n, K]`` or one column for two classes, torch or numpy.
        targets: the true classes, integers of shape ``[n]``.
        bins: the number of bins of the binned errors.
        weights: how much each example counts; only ratios matter.
        level: the probability with which the interval holds the true value.
        replicates: how many times the examples are resampled.
        seed: of the resampling.
        target_accuracy: of ``coverage_at_target``.
        k: of the top-k accuracy.
        kernel_width: of MMCE, WMMCE and KCE.
        check: look at the values first; ``False`` when they are known to be good.

    Examples:
        >>> probs = torch.tensor([[0.9, 0.1]]).expand(500, 2)
        >>> low, high = confidence_interval("ece", probs, torch.tensor([0] * 400 + [1] * 100))  # says 0.9, is right 0.8
        >>> 0.05 < low < 0.1 < high < 0.15
        True
    """
    part = frozenset({part_of(check_metric(metric))})
    found = as_predictions(probs, targets, weights, check=check)
    settings = EvaluationSettings(bins, target_accuracy=target_accuracy, k=k, kernel_width=kernel_width, seed=seed, parts=part)
    sample = settings.sample(found, resample=True)
    measured = values(sample, part)
    ends = intervals_of(sample, measured, draws(sample, measured, replicates, seed, part), level)
    if metric in CONFIDENCE_ERRORS and "kce_p_value" not in measured and excludes_zero(ends[metric]):
        cells = sorted_cells(found)[0]
        ends = agreed(ends, calibration_p_value(cells, cells.mass.square(), kernel_width, seed), level)
    return ends[metric]


@dataclass(frozen=True)
class EvaluationSettings:
    """The settings of the metrics; see `evaluate`."""

    bins: int = DEFAULT_BINS
    _: KW_ONLY
    target_accuracy: float = 0.95
    k: int | None = None
    kernel_width: float = WIDTH
    seed: int = 0
    parts: frozenset[str] = PARTS

    def __post_init__(self) -> None:
        positive_integer("bins", self.bins, MOST_BINS)
        integer("seed", self.seed)
        fraction("target_accuracy", self.target_accuracy)
        positive("kernel_width", self.kernel_width)
        if self.k is not None:
            positive_integer("k", self.k)

    def tally(self, classes: int, blocks: int, edges: Tensor | None) -> Tally:
        """Empty sums."""
        k = default_k(classes) if self.k is None else int(self.k)
        return Tally(
            classes,
            int(self.bins),
            k=k,
            seed=self.seed,
            blocks=blocks,
            edges=edges,
            parts=self.parts,
        )

    def sample(self, found: Predictions, *, resample: bool) -> EvaluationSample:
        """Predictions as a sample, ready to be resampled if asked: few examples one by one, many in blocks."""
        exact = resample and len(found) <= BLOCKS
        cells, order, edges = Cells(*torch.zeros(3, 1, dtype=torch.float64)), None, None
        if "cells" in self.parts:
            cells, order = sorted_cells(found)
            edges = fitted_edges(cells.r, int(self.bins)) if resample and not exact else None
        tally = self.tally(found.classes, len(found) if exact else BLOCKS if resample else 1, edges)
        # In random order, so that blocks which are folded for many classes do not follow the order of the data.
        own = torch.randperm(len(found), generator=generator_for(torch.device("cpu"), self.seed, "order")) if exact else None
        tally.update(found, own)
        block = own[order] if own is not None and order is not None else None
        alone = found if exact else None
        return EvaluationSample(tally, cells, block, self.kernel_width, self.target_accuracy, self.seed, alone)


@in_one_thread
def intervals_of(
    sample: EvaluationSample, found: dict[str, float], told: dict[str, Draws], level: float
) -> dict[str, Interval]:
    """An interval for every metric but the p-value; NaN where a single example leaves nothing to resample.

    Where the p-value is among the metrics found, no interval of a calibration error contradicts it.
    """
    fraction("level", level)
    nothing = Interval(math.nan, math.nan)
    ends = {name: each.interval(level) if sample.tally.n > 1 else nothing for name, each in told.items()}
    for name in ("accuracy", "top_k"):
        if name in found:
            ends[name] = wilson(found[name], sample.tally.effective, level)
    tally = sample.tally
    rare = min(tally.right, tally.weight - tally.right) / tally.unit
    if tally.n > 1 and rare < _RARE:
        gaps = [tally.confidence / tally.weight - rate for rate in wilson(tally.right / tally.weight, tally.effective, level)]
        ends |= {name: with_rare_errors(name, each, min(gaps), max(gaps)) for name, each in ends.items()}
    ends = {name: within_bounds(name, ends[name], tally.classes) for name in _ORDER if name in ends}
    return agreed(ends, found["kce_p_value"], level) if "kce_p_value" in found else ends


def scores_of(
    sample: EvaluationSample,
    measured: dict[str, float],
    ends: dict[str, Interval],
    level: float | None,
    class_names: tuple[str, ...] | None,
    *,
    pairs: bool = False,
) -> Scores:
    """Everything about a sample in one object; of pairs, what they can tell."""
    if pairs:
        measured = measured | dict.fromkeys(NEED_ALL_PROBABILITIES, math.nan)
        ends = {name: each for name, each in ends.items() if name not in NEED_ALL_PROBABILITIES}
    tally, classes = sample.tally, sample.tally.classwise()
    columns = (classes.frequency, (classes.predicted / classes.total).sum(-1), classes.ece_by_class)
    names = class_names or tuple(str(index) for index in range(tally.classes))
    return Scores(
        n=tally.n,
        classes=tally.classes,
        bins=tally.bins,
        k=tally.k,
        target_accuracy=sample.target_accuracy,
        level=level,
        intervals=ends,
        class_names=class_names,
        per_class=tuple(
            ClassScores(name=name, share=seen, probability=said, ece=error)
            for name, seen, said, error in zip(names, *(column.tolist() for column in columns), strict=True)
            if not pairs
        ),
        pairs=pairs,
        **measured,
    )


def check_metric(name: str) -> str:
    """``name`` itself, or an error that lists the metrics that have an interval."""
    known = [metric.name for metric in METRICS if metric.name != "kce_p_value"]
    if name not in known:
        raise InvalidArgumentError(f"Expected `metric` to be one of {', '.join(known)}, but got {name!r}.")
    return name


def check_names(class_names: Sequence[str] | None, classes: int) -> tuple[str, ...] | None:
    """The names as text, one for each class, or an error that says how many there should be."""
    if class_names is None:
        return None
    if isinstance(class_names, str) or not isinstance(class_names, Collection) or len(class_names) != classes:
        raise InvalidArgumentError(f"Expected `class_names` to hold {classes} names, one per column, but got {class_names!r}.")
    return tuple(str(name) for name in class_names)
