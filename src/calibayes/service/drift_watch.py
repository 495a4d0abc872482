"""Watch what a model says of the rows that it gets, and test whether they are still like those that it was calibrated on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np
import numpy.typing as npt

from calibayes.acting.shift_monitor import ShiftMonitor
from calibayes.files.set_aside_rows import SetAsideRows
from calibayes.service.row_predictor import PredictedRows

__all__ = ["DriftWatch"]

Floats = npt.NDArray[np.float64]

_DECIMALS = 5  # rows that are alike must tie, in whatever batch they are predicted
_AT_ONCE = 20  # rows in one call; each takes about 0.1 ms
_SOON = 10_000  # rows after which one in every second call is enough
_MOST = 1_000_000  # rows after which the memory would grow too large


@final
class DriftWatch:
    """A test for each kind of number, on a random sample of the rows; few enough that requests do not wait for it.

    Rows are drawn regardless of their values and in random order, so a file that is sorted by class raises no alarm.

    Args:
        reference: rows that nothing in training has seen.
        level: the probability of a false alarm by any of the tests, ever.
        seed: of the sample.
    """

    def __init__(self, reference: SetAsideRows, level: float, seed: int) -> None:
        numbers: dict[str, Any] = {"confidence": reference.probs.double().amax(1).numpy()}
        if reference.outsider_score == "epistemic":
            numbers["epistemic"] = reference.outsiders.double().numpy()
        self.monitors: Mapping[str, ShiftMonitor] = {
            name: ShiftMonitor(values.round(_DECIMALS), level / len(numbers), seed=seed) for name, values in numbers.items()
        }
        self._generator = np.random.default_rng(seed)
        self._turn = 0

    def take(self, parts: list[PredictedRows]) -> None:
        """Take in some of the rows that came since the last call."""
        self._turn += 1
        seen = next(iter(self.monitors.values())).seen
        count = _AT_ONCE if seen < _SOON else self._turn % 2
        if not parts or not count or seen >= _MOST:
            return
        values: dict[str, Floats] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in self.monitors}
        chosen = self._generator.permutation(len(values["confidence"]))[:count]
        for name, monitor in self.monitors.items():
            monitor.update(values[name][chosen].round(_DECIMALS))
