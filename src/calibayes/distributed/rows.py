"""Rows that processes have made of their shares of several batches, put back in order."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from calibayes.distributed.processes import Processes

__all__ = ["whole"]


def whole(own: Tensor, totals: Sequence[int], processes: Processes) -> Tensor:
    """All rows of all batches, in every process.

    Args:
        own: this process's rows, those of `Processes.rows` of the first batch, then of the second, and so on.
        totals: how many rows each batch has in all processes together.
        processes: whose rows they are.
    """
    if processes.size == 1:
        return own
    places: list[list[Tensor]] = [[] for _ in range(processes.size)]
    counted: list[Tensor] = []
    begin = 0
    for total in totals:
        sizes = processes.sizes(total)
        for found, part in zip(places, torch.arange(begin, begin + total).split(sizes), strict=True):
            found.append(part)
        mine = sizes[processes.rank]
        counted.append(torch.ones(mine, dtype=torch.bool) if mine else torch.zeros(1, dtype=torch.bool))
        begin += total
    kept = own[torch.cat(counted).to(own.device)]
    gathered = processes.gather(kept.movedim(0, -1), [sum(map(len, found)) for found in places]).movedim(-1, 0)
    order = torch.cat([part for found in places for part in found]).to(own.device)
    return torch.empty_like(gathered).index_copy_(0, order, gathered)
