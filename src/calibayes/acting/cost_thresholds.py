"""Thresholds with a guarantee on the mean cost of the decisions that are made."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from calibayes.acting.acting_inputs import read_labelled, read_numbers
from calibayes.acting.decisions import read_costs
from calibayes.acting.risk_tests import betting_p_value, binomial_p_value, walk_down
from calibayes.checked_fields import Fields
from calibayes.checks import fraction, is_real
from calibayes.errors import InvalidArgumentError
from calibayes.metrics.prediction_arrays import Array
from calibayes.predictive import Predictive
from calibayes.randomness import derived_seed
from calibayes.wording import counted

__all__ = ["CostThreshold", "certify_cost"]

_KIND = "cost-threshold"


@dataclass(frozen=True)
class CostThreshold:
    """A certified limit on the expected cost, or the answer that none can be certified; `certify_cost` makes it.

    Attributes:
        value: decisions of an expected cost *below* it are made, all others are left; ``None`` if none can be certified.
        cost: the mean cost of the decisions made that must not be exceeded.
        certainty: the probability, over calibration samples, that it is not.
        rows: the number of calibration rows.
        answered: how many of them are decided.
        mean_cost: of these; NaN if there are none.
    """

    value: float | None
    cost: float
    certainty: float
    rows: int
    answered: int
    mean_cost: float

    @property
    def certified(self) -> bool:
        """True if there is a threshold."""
        return self.value is not None

    @property
    def coverage(self) -> float:
        """The share of calibration rows that is decided; 0 without a threshold."""
        return self.answered / self.rows

    def answers(self, expected_cost: Array) -> Tensor:
        """True where a decision is made, for the expected costs that `decide_by_cost` returns.

        Take them from probabilities of the type that was calibrated: rounding to float32 can move those that tie with it.
        """
        costs = read_numbers("expected_cost", expected_cost)
        return torch.zeros_like(costs, dtype=torch.bool) if self.value is None else costs < self.value

    @property
    def statement(self) -> str:
        """What is certified, or what it would take, in words."""
        target = f"a mean cost of at most {self.cost:.4g} with certainty {100 * self.certainty:.4g} %"
        if self.value is None:
            return (
                f"No threshold can be certified for {target} on {counted(self.rows, 'calibration row')}. "
                "Take more rows, allow a higher cost, or bound the largest cost: one rare cost that is far above it needs many."
            )
        return (
            f"Decisions of an expected cost below {self.value:.4g} have {target}. In the calibration rows these are "
            f"{self.answered:,} of {self.rows:,} ({100 * self.coverage:.1f} %), with a mean cost of {self.mean_cost:.4g}."
        )

    def to_dict(self) -> dict[str, Any]:
        """All of it in plain values that JSON can hold."""
        return {"kind": _KIND, **asdict(self), "mean_cost": self.mean_cost if self.answered else None}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Rebuild what `to_dict` described."""
        fields = Fields.described(values, _KIND)
        rows = fields.size("rows", 1)
        return cls(
            value=None if fields.is_none("value") else fields.number("value"),
            cost=fields.number("cost"),
            certainty=fields.fraction("certainty"),
            rows=rows,
            answered=fields.size("answered", 0, rows),
            mean_cost=math.nan if fields.is_none("mean_cost") else fields.number("mean_cost"),
        )


def certify_cost(
    probs: Array | Predictive,
    labels: Array,
    costs: Array | Sequence[Sequence[float]],
    cost: float,
    certainty: float = 0.9,
    *,
    seed: int = 0,
) -> CostThreshold:
    """Find which decisions by cost can be made such that their mean cost stays below a limit, with a guarantee.

    For each row the action with the least expected cost is taken; rows are ordered by that expected cost, and as many are
    decided as can be certified. With costs of two values the tests are exact binomial ones; otherwise they bet
    (`calibayes.acting.risk_tests`), in a random order of the rows. The guarantee is that of `certify_threshold`.

    Args:
        probs: class probabilities ``[n, K]`` of calibration rows, which neither the classifier nor its scaling has seen.
        labels: the true classes.
        costs: what each action costs for each true class, ``[A, K]``.
        cost: the limit of the mean cost of the decisions made; above the smallest and below the largest of ``costs``.
        certainty: of the guarantee.
        seed: of the order of the rows.

    Examples:
        >>> p = torch.linspace(0.5, 1, 1000, dtype=torch.float64)
        >>> probs = torch.stack((p, 1 - p), -1)
        >>> threshold = certify_cost(probs, (p < 0.7).long(), costs=[[0, 10], [1, 0]], cost=0.3)
        >>> round(threshold.value, 2), threshold.mean_cost < 0.3
        (0.8, True)
    """
    certainty = fraction("certainty", certainty)
    values, targets = read_labelled(probs, labels)
    matrix, _ = read_costs(costs, values.shape[1], None, None)
    lowest, highest = float(matrix.min()), float(matrix.max())
    if not is_real(cost) or not lowest < cost < highest:
        raise InvalidArgumentError(
            f"Expected `cost` to lie between the smallest and the largest of `costs`, {lowest:g} and {highest:g}, "
            f"but got {cost!r}."
        )
    expected, action = (values @ matrix.T).min(-1)
    order = torch.randperm(len(values), generator=torch.Generator().manual_seed(derived_seed(seed, "certify cost")))
    span = highest - lowest
    losses = ((matrix[action, targets] - lowest) / span)[order].numpy()
    scores = (1 - (expected - lowest) / span).clamp(0, 1)[order].numpy()
    limit, budget = (cost - lowest) / span, 1 - certainty
    exact = bool(np.isin(losses, (0.0, 1.0)).all()) and len(matrix.unique()) == 2

    def p_value(threshold: float, answered: int, part: float) -> float:
        made = losses[scores > threshold]
        return binomial_p_value(int(made.sum()), answered, limit) if exact else betting_p_value(made, limit, part)

    def least(part: float) -> int:
        growth = -np.log1p(-limit) if exact else np.log1p(limit)
        return max(1, int(np.ceil(np.log(1 / part) / growth - 1e-9)))

    certified = walk_down(scores, p_value, least, limit, budget)
    if certified is None:
        return CostThreshold(None, float(cost), certainty, len(values), 0, float("nan"))
    mean = float(losses[scores > certified.threshold].mean())
    left = expected[order][torch.from_numpy(scores <= certified.threshold)]
    value = float(left.min()) if len(left) else highest
    return CostThreshold(value, float(cost), certainty, len(values), certified.answered, lowest + span * mean)
