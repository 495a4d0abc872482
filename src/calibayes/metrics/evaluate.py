"""Every score of a set of predictions, together."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from calibayes.checks import positive, positive_integer, share
from calibayes.errors import InvalidArgumentError
from calibayes.metrics.arrays import Array, Predictions, as_predictions
from calibayes.metrics.cells import Cells
from calibayes.metrics.intervals import Interval, wilson
from calibayes.metrics.kernel import WIDTH
from calibayes.metrics.measuring import Sample, draws, values
from calibayes.metrics.proper import default_k
from calibayes.metrics.scores import ClassScores, Scores
from calibayes.metrics.tally import BLOCKS, Tally, fitted_edges

__all__ = ["check_names", "evaluate", "intervals_of", "sample_of", "scores_of"]

_EXACT = BLOCKS  # up to this many examples, each is resampled on its own


def evaluate(
    probs: Array,
    targets: Array,
    bins: int = 15,
    *,
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
    and may lie below the estimate: see `calibayes.metrics.intervals`. They speak of other examples of the same kind, not
    of another training of the classifier.

    Args:
        probs: class probabilities, shape ``[n, K]`` or one column for two classes, torch or numpy.
        targets: the true classes, integers of shape ``[n]``.
        bins: the number of bins of the binned errors.
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

    Example:
        >>> probs = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6], [0.3, 0.7]])
        >>> scores = evaluate(probs, torch.tensor([0, 1, 1, 1]), class_names=["cat", "dog"])
        >>> scores.accuracy, round(scores.ece, 4), round(scores.intervals["accuracy"].low, 4)
        (0.75, 0.4, 0.3006)
        >>> scores.per_class[0].name, scores.per_class[0].share
        ('cat', 0.25)
    """
    found = as_predictions(probs, targets, weights, check=check)
    sample = sample_of(found, positive_integer("bins", bins), intervals, seed, target_accuracy, k, kernel_width)
    measured = values(sample)
    ends = intervals_of(sample, measured, level, replicates, seed) if intervals else {}
    names = check_names(class_names, found.classes)
    return scores_of(sample, measured, ends, level if intervals else None, names)


def sample_of(
    found: Predictions, bins: int, resample: bool, seed: int, target_accuracy: float, k: int | None, kernel_width: float
) -> Sample:
    """Predictions as a sample, ready to be resampled if asked: few examples one by one, many in blocks."""
    k = default_k(found.classes) if k is None else positive_integer("k", k)
    width, target = positive("kernel_width", kernel_width), share("target_accuracy", target_accuracy)
    exact = resample and len(found) <= _EXACT
    r, order = found.confidence.sort()
    tally = Tally(
        found.classes,
        bins,
        k=k,
        width=width,
        seed=seed,
        blocks=len(found) if exact else BLOCKS if resample else 1,
        edges=fitted_edges(r, bins) if resample and not exact else None,
    )
    tally.update(found, torch.arange(len(found)) if exact else None)
    mass = found.mass[order]
    right = mass * found.correct[order]
    return Sample(tally, Cells(r, right, mass - right), order if exact else None, width, target)


def intervals_of(sample: Sample, found: dict[str, float], level: float, replicates: int, seed: int) -> dict[str, Interval]:
    """An interval for every metric but the p-value; NaN where a single example leaves nothing to resample."""
    share("level", level)
    told = draws(sample, found, positive_integer("replicates", replicates), seed)
    ends = {name: each.interval(level) for name, each in told.items()}
    trials = sample.tally.effective
    ends |= {name: wilson(found[name], trials, level) for name in ("accuracy", "top_k")}
    if sample.tally.n < 2:
        ends |= {name: Interval(float("nan"), float("nan")) for name in told if name not in ("accuracy", "top_k")}
    return {name: ends[name] for name in found if name in ends}


def scores_of(
    sample: Sample,
    measured: dict[str, float],
    ends: dict[str, Interval],
    level: float | None,
    class_names: tuple[str, ...] | None,
) -> Scores:
    """Everything about a sample in one object."""
    tally, classes = sample.tally, sample.tally.classwise()
    columns = ((classes.observed / classes.total).sum(-1), (classes.predicted / classes.total).sum(-1), classes.ece_by_class)
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
        ),
        **measured,
    )


def check_names(class_names: Sequence[str] | None, classes: int) -> tuple[str, ...] | None:
    """The names as text, one for each class, or an error that says how many there should be."""
    if class_names is None:
        return None
    if isinstance(class_names, str) or len(class_names) != classes:
        raise InvalidArgumentError(f"Expected `class_names` to hold {classes} names, one per column, but got {class_names!r}.")
    return tuple(str(name) for name in class_names)
