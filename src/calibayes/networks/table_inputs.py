"""The first layer of networks for tables: raw numbers and category codes become what linear layers learn well from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, Self, final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from calibayes.errors import InvalidArgumentError
from calibayes.networks.size_checks import check_size

__all__ = ["TableInputs"]

Floats = npt.NDArray[np.float32]

_FURTHEST = 3.0  # standard deviations: where the smallest and the largest value go
_CUT_OFF = 4.0  # standard deviations of a number that is standardised
_LARGEST = float(np.finfo(np.float32).max)
_LEAST = 3  # rows with a value for it to have a place


@final
class TableInputs(nn.Module):
    r"""Numbers by their rank and category codes by their identity, as columns for a linear layer.

    A number becomes its position among the training rows' quantiles, piecewise linear in each of ``bins`` intervals
    (Gorishniy et al. 2022, https://arxiv.org/abs/2203.05556), and the normal score of its rank, so outliers and skewed columns
    do no harm. With ``bins=0`` it is standardised instead, and cut off at four standard deviations, which keeps distances as
    they are. Values of a number that occur often get a column of their own, and so does every category. A missing value, NaN,
    is zero everywhere but in a column that says so. Nothing here is trained.

    Args:
        numbers: the places of the columns of numbers.
        categories: the places of the columns of category codes, with the number of categories of each; other codes are zero
            everywhere.
        bins: intervals of a number; 0 to standardise numbers.
        frequent: values of a number that have columns of their own, at most.

    Examples:
        >>> layer = TableInputs(numbers=[0], categories=[(1, 3)], bins=2).fit(np.array([[0.0, 1], [2, 2], [4, 0]], np.float32))
        >>> layer(torch.tensor([[1.0, 2.0]]))  # half of the first interval; normal score; missing; the third category
        tensor([[ 0.5000,  0.0000, -0.4837,  0.0000,  0.0000,  0.0000,  1.0000]])
    """

    fixed: ClassVar[bool] = True  # networks that begin with the same one can share it

    starts: Tensor
    widths: Tensor
    rises: Tensor
    lowest: Tensor
    values: Tensor

    def __init__(
        self, numbers: Sequence[int], categories: Sequence[tuple[int, int]] = (), *, bins: int = 16, frequent: int = 0
    ) -> None:
        super().__init__()
        self.numbers = list(numbers)
        self.categories = [(int(place), check_size("categories", size)) for place, size in categories]
        if not self.numbers and not self.categories:
            raise InvalidArgumentError("Expected at least one column of numbers or categories, but got none.")
        self.bins, self.frequent = check_size("bins", bins, 0), check_size("frequent", frequent, 0)
        shape = (len(self.numbers), max(bins, 1))
        self.register_buffer("starts", torch.zeros(shape))
        self.register_buffer("widths", torch.ones(shape))
        self.register_buffer("rises", torch.zeros(shape))
        self.register_buffer("lowest", torch.zeros(len(self.numbers)))
        # Where there is no frequent value: a number that no column has.
        self.register_buffer("values", torch.full((len(self.numbers), frequent), torch.finfo(torch.float32).max))

    @property
    def width(self) -> int:
        """How many numbers a row becomes."""
        return len(self.numbers) * (self.bins + self.frequent + 2) + sum(size for _, size in self.categories)

    def fit(self, rows: Floats) -> Self:
        """Learn quantiles or means and deviations of the columns of numbers, and frequent values, from training rows."""
        for place, column in enumerate(self.numbers):
            known = rows[:, column][~np.isnan(rows[:, column])]
            if len(known):
                self._fit_number(place, known)
        return self

    def _fit_number(self, place: int, known: Floats) -> None:
        distinct, counts = np.unique(known, return_counts=True)
        if self.bins:
            self._fit_quantiles(place, known, _edges(known, distinct, counts, self.bins))
        else:
            self._fit_scale(place, known)
        if self.frequent and 2 < len(distinct) <= 256:
            often = np.argsort(-counts, kind="stable")[: self.frequent]
            often = often[counts[often] >= max(_LEAST, len(known) // 200)]
            self.values[place, : len(often)] = torch.from_numpy(distinct[often])

    def _fit_scale(self, place: int, known: Floats) -> None:
        mean, deviation = known.mean(dtype=np.float64), known.std(dtype=np.float64)
        if deviation > 0:
            self.starts[place] = max(float(mean - _CUT_OFF * deviation), -_LARGEST)
            self.widths[place] = min(float(2 * _CUT_OFF * deviation), _LARGEST)
            self.rises[place], self.lowest[place] = 2 * _CUT_OFF, -_CUT_OFF

    def _fit_quantiles(self, place: int, known: Floats, edges: npt.NDArray[np.float64]) -> None:
        ranks = (np.searchsorted(np.sort(known), edges, "left") + np.searchsorted(np.sort(known), edges, "right")) / 2
        score = torch.special.ndtri(torch.from_numpy(ranks / len(known)).clamp(1e-9, 1 - 1e-9)).clamp(-_FURTHEST, _FURTHEST)
        used = len(edges) - 1
        if used:
            self.starts[place, :used] = torch.from_numpy(edges[:-1].astype(np.float32))
            self.widths[place, :used] = torch.from_numpy(np.diff(edges).astype(np.float32))
            self.rises[place, :used] = score.diff().float()
        self.starts[place, used:] = float(edges[-1])
        self.rises[place, used:] = 0.0
        self.lowest[place] = float(score[0])

    def forward(self, x: Tensor) -> Tensor:
        """Inputs ``[n, width]`` of rows ``[n, columns]``."""
        parts = []
        if self.numbers:
            numbers = x[:, self.numbers]
            missing = numbers.isnan()
            known = numbers.nan_to_num(nan=-math.inf).unsqueeze(-1)  # below every interval, whose positions are zero then
            position = ((known - self.starts) / self.widths).clamp(0, 1)
            score = ((position * self.rises).sum(-1) + self.lowest).masked_fill(missing, 0)
            parts += [*([position.flatten(1)] if self.bins else []), score, missing.to(x.dtype)]
            if self.frequent:
                parts.append((numbers.unsqueeze(-1) == self.values).to(x.dtype).flatten(1))
        for place, size in self.categories:
            parts.append((x[:, place].unsqueeze(-1) == torch.arange(size, device=x.device)).to(x.dtype))
        return torch.cat(parts, 1)


def _edges(known: Floats, distinct: Floats, counts: npt.NDArray[np.int64], bins: int) -> npt.NDArray[np.float64]:
    """Return the ends of the intervals: values that fill an interval by themselves, and quantiles of all others."""
    if len(distinct) <= bins + 1:
        return distinct.astype(np.float64)
    filling = distinct[counts > len(known) / bins]
    others = known[~np.isin(known, filling)]
    quantiles = np.quantile(others, np.linspace(0, 1, max(2, bins + 1 - len(filling))))
    edges: npt.NDArray[np.float64] = np.unique(np.concatenate([filling, quantiles]))[: bins + 1]
    return edges
