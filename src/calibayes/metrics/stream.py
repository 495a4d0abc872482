"""The metrics of predictions that do not fit into memory, batch by batch."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch

from calibayes.distributed import Processes, ProcessGroupChoice
from calibayes.errors import DataError, InvalidProbabilitiesError
from calibayes.metrics.bins import DEFAULT_BINS, ReliabilityBins
from calibayes.metrics.bootstrap import draws
from calibayes.metrics.evaluate import EvaluationSettings, check_names, intervals_of, scores_of
from calibayes.metrics.kernel_errors import WIDTH
from calibayes.metrics.metric_values import EvaluationSample, values
from calibayes.metrics.prediction_arrays import Array, as_predictions
from calibayes.metrics.score_table import Scores
from calibayes.metrics.selective import RiskCoverage, curve
from calibayes.metrics.tally import BLOCKS, Tally, fixed_edges

__all__ = ["Stream"]


class Stream:
    """Every metric of a stream of predictions, in memory that does not grow with their number.

    It keeps sums only, about 50 MB for ten classes. The binned, classwise and proper scores are those of `evaluate`
    on all the data at once; equal-mass ECE, smooth ECE, MMCE, WMMCE, KCE with its p-value, AURC and coverage are computed
    from a thousand fine cells of confidence.

    Arguments as `evaluate`; ``seed`` also assigns examples to blocks.

    Examples:
        >>> stream = Stream()
        >>> for _ in range(3):
        ...     stream.update(torch.tensor([[0.9, 0.1], [0.3, 0.7]]), torch.tensor([0, 0]))
        >>> scores = stream.scores(intervals=False)
        >>> scores.n, scores.accuracy, round(scores.ece, 4)
        (6, 0.5, 0.4)
    """

    def __init__(
        self,
        bins: int = DEFAULT_BINS,
        *,
        class_names: Sequence[str] | None = None,
        seed: int = 0,
        target_accuracy: float = 0.95,
        k: int | None = None,
        kernel_width: float = WIDTH,
    ) -> None:
        self._settings = EvaluationSettings(bins, target_accuracy=target_accuracy, k=k, kernel_width=kernel_width, seed=seed)
        self._class_names = class_names
        self._tally: Tally | None = None

    def update(self, probs: Array, targets: Array, *, weights: Array | None = None, check: bool = True) -> None:
        """Add a batch; arguments as `evaluate`."""
        predictions = as_predictions(probs, targets, weights, check=check)
        if self._tally is None:
            check_names(self._class_names, predictions.classes)
            self._tally = self._settings.tally(predictions.classes, BLOCKS, fixed_edges(self._settings.bins))
        if predictions.classes != self._tally.classes:
            raise InvalidProbabilitiesError(
                f"Expected `probs` with {self._tally.classes} classes, as in the first batch, but got {predictions.classes}."
            )
        self._tally.update(predictions)

    def together(self, group: ProcessGroupChoice = "auto") -> Stream:
        """Return one stream of what all processes have seen, in each of them; this one is left as it is.

        Only sums are sent: the same number of bytes for any number of examples.

        Args:
            group: the processes: all that ``torchrun`` has started, or a process group. All must call this.
        """
        processes = Processes.of(group)
        whole = copy.deepcopy(self)
        if processes.size == 1:
            return whole
        classes = processes.counts(0 if self._tally is None else self._tally.classes, torch.device("cpu"))
        if not any(classes):
            return whole
        most = max(classes)
        if odd := [rank for rank, count in enumerate(classes) if count not in (0, most)]:
            raise InvalidProbabilitiesError(
                f"Expected all processes to have seen {most} classes, but process {odd[0]} has seen {classes[odd[0]]}."
            )
        if whole._tally is None:
            whole._tally = self._settings.tally(most, BLOCKS, fixed_edges(self._settings.bins))
        whole._tally.sum_over(processes)
        return whole

    def scores(self, *, intervals: bool = True, level: float = 0.95, replicates: int = 1000) -> Scores:
        """Every metric of the predictions so far; arguments as `evaluate`."""
        sample = self._sample()
        measured = values(sample)
        ends = {}
        if intervals:
            ends = intervals_of(sample, measured, draws(sample, measured, replicates, self._settings.seed), level)
        names = check_names(self._class_names, sample.tally.classes)
        return scores_of(sample, measured, ends, level if intervals else None, names)

    def reliability_bins(self) -> ReliabilityBins:
        """The bins of the predictions so far."""
        return self._sample().tally.reliability

    def risk_coverage(self) -> RiskCoverage:
        """The risk–coverage curve of the predictions so far, at the confidences of the cells."""
        sample = self._sample()
        return curve(sample.cells, sample.tally.n)

    def _sample(self) -> EvaluationSample:
        if self._tally is None:
            raise DataError("There is nothing to evaluate: call `update` with at least one batch first.")
        settings = self._settings
        return EvaluationSample(
            self._tally, self._tally.cells(), None, settings.kernel_width, settings.target_accuracy, settings.seed
        )
