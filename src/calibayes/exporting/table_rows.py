"""The first step of a graph for tables: raw numbers and category codes of rows become the inputs of the networks."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from calibayes.files.table_coding import TableCoding
from calibayes.files.table_columns import FAR, FURTHEST, CategoryColumn, DateColumn, NumberColumn

__all__ = ["TableRows"]


class TableRows(nn.Module):
    """Standardise the numbers of rows as a `TableCoding` does.

    A row has a number for each column, NaN where it is missing: four for a date (days since 1970, month, weekday and hour); for
    a category its place among those of the column, and the number of places for any other.

    Args:
        coding: of the model.
    """

    means: Tensor
    stds: Tensor

    def __init__(self, coding: TableCoding) -> None:
        super().__init__()
        means: list[float] = []
        stds: list[float] = []
        order: list[int] = []  # of the inputs among numbers, flags and categories
        flags: list[int] = []
        places: list[tuple[int, float]] = []  # a column and a code, for an input that is 1 there
        parts: list[tuple[str, int]] = []
        for column in coding.columns:
            start = len(means)
            if isinstance(column, CategoryColumn):
                means, stds = [*means, 0.0], [*stds, 1.0]
                codes = range(len(column.values) + column.unknown)
                parts += [("place", len(places) + k) for k in codes]
                places += [(start, float(k)) for k in codes]
            elif isinstance(column, DateColumn):
                means, stds = [*means, *column.means], [*stds, *column.stds]
                parts += [("number", start + k) for k in range(len(column.means))]
            else:
                assert isinstance(column, NumberColumn)
                means, stds = [*means, column.mean], [*stds, column.std]
                parts.append(("number", start))
            if column.missing:
                parts.append(("flag", len(flags)))
                flags.append(start)
        self.raw = coding.raw
        offsets = {"number": 0, "flag": len(means), "place": len(means) + len(flags)}
        order = [offsets[kind] + place for kind, place in parts]
        self.register_buffer("means", torch.tensor(means, dtype=torch.float64))
        self.register_buffer("stds", torch.tensor(stds, dtype=torch.float64))
        self.register_buffer("order", torch.tensor(order, dtype=torch.int64))
        self.register_buffer("flags", torch.tensor(flags, dtype=torch.int64))
        self.register_buffer("columns", torch.tensor([column for column, _ in places], dtype=torch.int64))
        self.register_buffer("codes", torch.tensor([code for _, code in places], dtype=torch.float64))

    @property
    def width(self) -> int:
        """The numbers of a row."""
        return len(self.means)

    def forward(self, rows: Tensor) -> Tensor:
        """Inputs of the networks, float32, for rows ``[n, width]`` in float64."""
        missing = rows.isnan()
        known = torch.where(missing, self.means, rows)
        scaled = (known - self.means) / self.stds
        if self.raw:
            return torch.where(missing, torch.nan, scaled.clamp(-FURTHEST, FURTHEST)).float()
        flags, columns = self.get_buffer("flags"), self.get_buffer("columns")
        hot = (rows[:, columns] == self.get_buffer("codes")).double()
        every = torch.cat([scaled.clamp(-FAR, FAR), missing[:, flags].double(), hot], 1)
        return every[:, self.get_buffer("order")].float()
