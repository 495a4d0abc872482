r"""A monitor that watches a stream of confidences or scores, and raises an alarm that is valid at any time.

Each new number gets a conformal p-value: its rank among all numbers so far, ties broken at random. As long as the stream is
exchangeable with the reference, these are independent and uniform, whatever the distribution. A gambler bets against that:
capital starts at 1, and a capital of $1/\alpha$ is reached with a probability of at most $\alpha$, ever. The bets are those of
Vovk's simple jumper, on ranks that drift up or down and on ranks that move to the ends or to the middle. See Vovk et al.,
"Retrain or not retrain: conformal test martingales for change-point detection" (2021, https://arxiv.org/abs/2102.10439).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from calibayes.acting.acting_inputs import read_numbers
from calibayes.checked_fields import Fields
from calibayes.checks import fraction, non_negative_integer
from calibayes.metrics.prediction_arrays import Array
from calibayes.randomness import derived_seed

__all__ = ["ShiftMonitor"]

_KIND = "shift-monitor"
_JUMPS = (1e-3, 1e-2, 1e-1)
_STAKES = np.array([-1.8, -0.9, 0.0, 0.9, 1.8])  # times a number in -0.5 … 0.5: capital stays positive
_MOST = 1e300  # of an account: what is beyond is given away, which keeps the game fair or worse, and the numbers finite


class ShiftMonitor:
    """An online test whether new numbers are exchangeable with a reference.

    Args:
        reference: confidences or scores of examples that did not train the classifier.
        level: the probability of a false alarm, over the whole future.
        seed: of the random order of ties.

    Attributes:
        capital: what the gambler has; high if the stream has changed.
        highest: the highest capital so far.
        seen: the number of new examples so far.
        alarm_at: the number of the example at which the alarm was raised, counted from 1; ``None`` without one.

    Examples:
        >>> generator = torch.Generator().manual_seed(0)
        >>> monitor = ShiftMonitor(torch.rand(500, generator=generator), level=0.01)
        >>> monitor.update(torch.rand(300, generator=generator))
        False
        >>> monitor.update(0.7 * torch.rand(300, generator=generator))
        True
    """

    def __init__(self, reference: Array, level: float = 0.01, *, seed: int = 0) -> None:
        self.level = fraction("level", level)
        self.seed = non_negative_integer("seed", seed)
        self._bag: list[float] = sorted(_rounded("reference", reference))
        # The capital on each stake, for each rate of jumps and each kind of bet.
        self._accounts = np.full((2, len(_JUMPS), len(_STAKES)), 1 / len(_STAKES))
        self.seen, self.highest = 0, 1.0
        self.alarm_at: int | None = None

    @property
    def capital(self) -> float:
        """The mean of all accounts, which is again a fair game."""
        return float(self._accounts.sum(-1).mean())

    @property
    def alarm(self) -> bool:
        """True once the capital has reached ``1 / level``."""
        return self.alarm_at is not None

    def update(self, values: Array) -> bool:
        """Take in new numbers, in the order in which they came; return True if there is or was an alarm."""
        for value in _rounded("values", values):
            self._bet(self._p_value(value))
            self.highest = max(self.highest, self.capital)
            if self.alarm_at is None and self.highest >= 1 / self.level:
                self.alarm_at = self.seen
        return self.alarm

    def to_dict(self) -> dict[str, Any]:
        """The state in plain values that JSON can hold."""
        plain = {"level": self.level, "seed": self.seed, "seen": self.seen, "highest": self.highest, "alarm_at": self.alarm_at}
        return {"kind": _KIND, **plain, "bag": list(self._bag), "accounts": self._accounts.tolist()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Rebuild a monitor from what `to_dict` returned; it goes on as if it had never stopped."""
        fields = Fields.described(values, _KIND)
        bag, seen = fields.numbers("bag"), fields.size("seen", 0)
        if len(bag) <= seen:
            raise fields.wrong("bag", f"a list of more numbers than the {seen:,} that the monitor has seen")
        monitor = cls(np.array(bag), fields.fraction("level"), seed=fields.seed("seed", 0))
        monitor._accounts = fields.array("accounts", monitor._accounts.shape)
        monitor.seen, monitor.highest = seen, fields.number("highest", positive=True)
        monitor.alarm_at = None if fields.is_none("alarm_at") else fields.size("alarm_at", 1, seen)
        return monitor

    def _p_value(self, value: float) -> float:
        """The rank of a number among all so far and itself, ties broken at random; it joins them."""
        self.seen += 1
        chance = derived_seed(self.seed, "shift monitor", self.seen) / 2**63
        below, upto = bisect_left(self._bag, value), bisect_right(self._bag, value)
        insort(self._bag, value)
        return (below + chance * (upto - below + 1)) / len(self._bag)

    def _bet(self, p: float) -> None:
        jumps: npt.NDArray[np.float64] = np.array(_JUMPS)[:, None]
        for account, offset in zip(self._accounts, (p - 0.5, abs(2 * p - 1) - 0.5), strict=True):
            mixed = (1 - jumps) * account + jumps * account.mean(-1, keepdims=True)
            account[:] = np.minimum(mixed * (1 + _STAKES * offset), _MOST)


def _rounded(name: str, values: Array) -> list[float]:
    """Numbers rounded to float32: a stream in another type than the reference would tie with none of it."""
    rounded: list[float] = read_numbers(name, values).float().tolist()
    return rounded
