"""Metrics of all that the processes of a Trainer have predicted, every example once."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from calibayes.distributed import Processes
from calibayes.lightning.loaders import flat, own_examples
from calibayes.metrics import Stream
from calibayes.metrics.score_table import Scores

__all__ = ["Evaluation"]


class Evaluation:
    """The predictions so far for the examples of each dataloader.

    Args:
        loaders: the Trainer's.
    """

    def __init__(self, loaders: Any) -> None:
        found = flat(loaders)
        self._left = [own_examples(loader) for loader in found]
        self._streams = [Stream() for _ in found]

    def update(self, probs: Tensor, targets: Tensor, loader: int) -> None:
        """Add a batch of a dataloader; what a sampler has added to make the processes' shares equal is left out."""
        left = self._left[loader]
        if left is not None:
            probs, targets = probs[:left], targets[:left]
            self._left[loader] = left - len(targets)
        if len(targets):
            self._streams[loader].update(probs, targets)

    def scores(self, processes: Processes) -> dict[str, Scores]:
        """Every metric of the examples of all processes; all of them must call this.

        Returns:
            Scores by what Lightning adds to the names of metrics: nothing, or each dataloader's number if there are several.
        """
        found = [stream.together(processes.group).scores(intervals=False) for stream in self._streams]
        return {f"/dataloader_idx_{number}" if len(found) > 1 else "": each for number, each in enumerate(found)}
