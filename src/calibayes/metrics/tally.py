"""Sums over the examples, in blocks that a bootstrap can resample, for data that does not fit into memory."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from calibayes.distributed import Processes
from calibayes.metrics.bins import ReliabilityBins, equal_width, place
from calibayes.metrics.classwise import ClassBins, class_places
from calibayes.metrics.confidence_cells import Cells
from calibayes.metrics.null_distribution import drawn_labels, random_signs
from calibayes.metrics.prediction_arrays import Predictions
from calibayes.metrics.proper_scores import losses, ranks
from calibayes.randomness import derived_seed

__all__ = ["BLOCKS", "PARTS", "Tally", "fitted_edges", "fixed_edges"]

BLOCKS = 2048
PARTS = frozenset({"means", "bins", "classes", "cells"})
_ROWS = 1 << 21  # probabilities processed at once
_CLASS_SUMS = 1 << 22  # sums of classes kept at most
_FINE = 512  # cells of equal width, and as many of equal mass


class Tally:
    r"""Sums of one set of predictions, added batch by batch.

    Every example is assigned to one of $G$ blocks at random. To resample the blocks is to resample the examples: the sums of
    a block are sums of independent examples, so the resampled totals have the right covariances, up to the noise of $G$
    draws (1.6 % of a standard deviation for $G = 2048$). One block is enough if nothing will be resampled; without the edges
    of cells of confidence, cells are not kept. ``parts`` are the sums to keep.

    For the null distribution of the classes, the residuals under labels drawn from the probabilities are kept too, unless each
    example has a block of its own.
    """

    def __init__(
        self,
        classes: int,
        bins: int,
        *,
        k: int,
        seed: int,
        blocks: int = 1,
        edges: Tensor | None = None,
        parts: frozenset[str] = PARTS,
    ) -> None:
        self.parts = parts
        self.classes, self.bins, self.k, self.blocks, self.edges = classes, bins, k, blocks, edges
        self.n = 0
        self.class_blocks = min(blocks, max(64, _CLASS_SUMS // (classes * bins)))
        self.sums = _zeros(blocks, 7)  # weight, and weighted: confidence, right, NLL, impossible, Brier score, in the top k
        self.by_bin = _zeros(2, blocks * bins)  # weight and residual
        self.by_class = _zeros(3, self.class_blocks * classes * bins)  # weight, predicted, observed
        self.null_by_class = _zeros(self.class_blocks, classes * bins)  # observed minus predicted, of labels drawn once
        self.counts = torch.zeros(bins, dtype=torch.int64)
        self.moments = _zeros(4, bins)  # of each bin: weight, weight², confidence, right
        self.own = _zeros(2)  # Σ w² (c - r)² and Σ w²
        self.weight = self.right = self.confidence = 0.0
        self.block_weight = _zeros(blocks)
        cells = 0 if edges is None else len(edges) - 1
        self.by_cell = _zeros(2, blocks * cells)  # right and wrong
        self.cell_confidence = _zeros(cells)
        self._cell_squares = _zeros(cells)  # Σ w²
        self._labels = np.random.Generator(np.random.PCG64(derived_seed(seed, "null labels")))
        self._assignment = np.random.Generator(np.random.PCG64(derived_seed(seed, "blocks")))

    def update(self, predictions: Predictions, block: Tensor | None = None) -> None:
        """Add predictions; ``block`` says where each example goes, at random by default."""
        in_blocks = block is None and self.blocks > 1
        if block is None:
            block = torch.from_numpy(self._assignment.integers(self.blocks, size=len(predictions)))
        r, c, w = predictions.confidence, predictions.correct, predictions.mass
        self.n += int(w.count_nonzero())
        self.weight += float(w.sum())
        self.right += float((w * c).sum())
        self.confidence += float((w * r).sum())
        self.block_weight.index_add_(0, block, w)
        self.own += torch.stack(((w * (c - r)).square().sum(), w.square().sum()))
        rows = max(1, _ROWS // predictions.classes)
        for part, where in zip(predictions.parts(rows), block.split(rows), strict=True):
            if "means" in self.parts:
                self._add_means(part, where)
            if "bins" in self.parts:
                self._add_bins(part, where)
            if "classes" in self.parts:
                self._add_classes(part, where % self.class_blocks, in_blocks)
            if self.edges is not None:
                self._add_cells(part, where, self.edges)

    def sum_over(self, processes: Processes) -> None:
        """Add what all processes have, in each of them."""
        # All draw the same numbers; signs of their own make the residuals of one block independent.
        signs = np.random.Generator(np.random.PCG64(derived_seed(processes.rank, "null signs")))
        self.null_by_class *= random_signs(signs, (self.class_blocks, 1))
        single = torch.tensor([self.n, self.weight, self.right, self.confidence], dtype=torch.float64)
        sums = (self.sums, self.by_bin, self.by_class, self.counts, self.moments, self.own, self.block_weight)
        processes.sum_([*sums, self.null_by_class, self.by_cell, self.cell_confidence, self._cell_squares, single])
        n, self.weight, self.right, self.confidence = single.tolist()
        self.n = int(n)

    def _add_means(self, part: Predictions, block: Tensor) -> None:
        nll, brier = losses(part)
        impossible = torch.isinf(nll)
        among = ranks(part) < self.k
        nll.masked_fill_(impossible, 0.0)
        values = torch.stack((part.confidence, part.correct, nll, impossible.double(), brier, among.double()), -1)
        weight = part.mass[:, None]
        self.sums.index_add_(0, block, torch.cat((weight, weight * values), -1))

    def _add_bins(self, part: Predictions, block: Tensor) -> None:
        r, c, w = part.confidence, part.correct, part.mass
        where = place(r, equal_width(self.bins), part.probs.dtype)
        _add_at(self.by_bin, block * self.bins + where, w, w * (c - r))
        self.counts += torch.bincount(where, minlength=self.bins)
        _add_at(self.moments, where, w, w.square(), w * r, w * c)

    def _add_cells(self, part: Predictions, block: Tensor, edges: Tensor) -> None:
        r, c, w = part.confidence, part.correct, part.mass
        cell = place(r, edges, part.probs.dtype)
        _add_at(self.by_cell, block * (len(edges) - 1) + cell, w * c, w * (1 - c))
        self.cell_confidence.index_add_(0, cell, w * r)
        self._cell_squares.index_add_(0, cell, w.square())

    def _add_classes(self, part: Predictions, block: Tensor, in_blocks: bool) -> None:
        where, true = class_places(part, self.bins)
        start = block * (self.classes * self.bins)
        where += start.repeat_interleave(self.classes)
        predicted = part.probs.double().reshape(-1)
        weight = torch.ones_like(predicted) if part.weights is None else part.weights.repeat_interleave(self.classes)
        if part.weights is not None:
            predicted = predicted * weight
        _add_at(self.by_class[:2], where, weight, predicted)
        _add_at(self.by_class[2:], true + start, part.mass)
        if in_blocks:
            drawn = drawn_labels(part.probs, torch.from_numpy(self._labels.random((len(part), 1))))
            null = self.null_by_class.view(-1)
            null.index_add_(0, where, predicted, alpha=-1)
            null.index_add_(0, where.view(len(part), -1).gather(1, drawn)[:, 0], part.mass)

    @property
    def reliability(self) -> ReliabilityBins:
        """The bins of all examples."""
        weight, squares, confidence, right = self.moments
        return ReliabilityBins(
            edges=equal_width(self.bins),
            count=self.counts.clone(),
            weight=weight.clone(),
            effective=weight.square() / squares,
            confidence=confidence / weight,
            accuracy=right / weight,
        )

    @property
    def effective(self) -> float:
        """The effective sample size: the number of examples of equal weight that would be worth as much."""
        return self.weight**2 / float(self.own[1])

    @property
    def unit(self) -> float:
        """The weight that stands for one example."""
        return float(self.own[1]) / self.weight

    @property
    def own_pairs(self) -> tuple[float, float]:
        """The weight of the pairs of an example with itself, as fractions of the squared total weight."""
        residual, weight = (self.own / self.weight**2).tolist()
        return residual, weight

    def means(self, counts: Tensor | None = None) -> dict[str, Tensor]:
        """The metrics that are means: of all examples, or of replicates that hold each block ``counts [B, G]`` times."""
        sums = self.sums.sum(0) if counts is None else counts @ self.sums
        _, confidence, right, nll, impossible, brier, top = (sums / sums[..., :1]).unbind(-1)
        nll = torch.where(impossible > 0, torch.inf, nll)
        gap = confidence - right
        return {"accuracy": right, "top_k": top, "confidence": confidence, "overconfidence": gap, "nll": nll, "brier": brier}

    def classwise(self, counts: Tensor | None = None) -> ClassBins:
        """The bins of every class: of all examples, or of replicates."""
        table = self.by_class.view(3, self.class_blocks, -1)
        sums: Tensor = table.sum(1) if counts is None else counts @ table
        return ClassBins(*sums.view(*sums.shape[:-1], self.classes, self.bins))

    def cells(self, counts: Tensor | None = None) -> Cells:
        """The cells that hold examples: of all of them, or of replicates."""
        table = self.by_cell.view(2, self.blocks, -1)
        mass = table.sum((0, 1))
        filled = mass > 0
        right, wrong = table[..., filled].sum(1) if counts is None else counts @ table[..., filled]
        return Cells(self.cell_confidence[filled] / mass[filled], right, wrong)

    @property
    def cell_squares(self) -> Tensor:
        """The squared weights added up in each of the `cells`."""
        return self._cell_squares[self.by_cell.view(2, self.blocks, -1).sum((0, 1)) > 0]


def fixed_edges(bins: int) -> Tensor:
    """Edges of cells for confidences that are not known yet: of equal width, and finer and finer towards 0 and 1."""
    towards_zero = 2.0 ** (torch.arange(0, -241, -1, dtype=torch.float64) / 8)
    edges: Tensor = torch.cat((_within(bins), towards_zero, 1 - towards_zero)).unique()
    return edges


def fitted_edges(r: Tensor, bins: int) -> Tensor:
    """Edges of cells for confidences in ascending order: of equal width, and of equal mass."""
    ranks = torch.linspace(0, len(r) - 1, 2 * _FINE, dtype=torch.float64).long()
    edges: Tensor = torch.cat((_within(bins), r[ranks].clamp(0, 1))).unique()
    return edges


def _within(bins: int) -> Tensor:
    """Edges of equal width, among them those of the bins."""
    return equal_width(bins * max(1, _FINE // bins))


def _zeros(*shape: int) -> Tensor:
    return torch.zeros(*shape, dtype=torch.float64)


def _add_at(rows: Tensor, index: Tensor, *values: Tensor) -> None:
    for row, value in zip(rows, values, strict=True):
        row.index_add_(0, index, value)
