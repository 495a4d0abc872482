"""Decisions by cost: the action with the least expected cost, which may be to abstain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from calibayes.acting.acting_inputs import as_tensor, read_probabilities
from calibayes.checks import is_real
from calibayes.errors import InvalidArgumentError
from calibayes.metrics.prediction_arrays import Array
from calibayes.predictive import Predictive

__all__ = ["ABSTAIN", "CostDecisions", "decide_by_cost", "read_costs"]

ABSTAIN = "abstain"


@dataclass(frozen=True, eq=False)
class CostDecisions:
    """The action for each example.

    Attributes:
        action: its number, ``[n]``: a row of the costs, or the number after the last for abstention.
        expected_cost: its expected cost, ``[n]``, if the probabilities are calibrated.
        names: of the actions.
        costs: of each action for each true class, ``[A, K]``, with abstention as the last row if there is one.
    """

    action: Tensor
    expected_cost: Tensor
    names: tuple[str, ...]
    costs: Tensor

    @property
    def abstained(self) -> Tensor:
        """True where the action is to abstain."""
        return self.action == (self.names.index(ABSTAIN) if ABSTAIN in self.names else -1)

    @property
    def named(self) -> list[str]:
        """The names of the actions, one for each example."""
        return [self.names[index] for index in self.action.tolist()]

    def incurred(self, labels: Array) -> Tensor:
        """The cost of each decision once the true classes are known, ``[n]``."""
        targets = as_tensor("labels", labels).long()
        classes = self.costs.shape[1]
        if targets.shape != self.action.shape or bool(((targets < 0) | (targets >= classes)).any()):
            raise InvalidArgumentError(f"Expected `labels` to be {len(self.action)} classes in 0 … {classes - 1}.")
        return self.costs[self.action, targets]


def decide_by_cost(
    probs: Array | Predictive,
    costs: Array | Sequence[Sequence[float]],
    abstain_cost: float | None = None,
    *,
    actions: Sequence[str] | None = None,
) -> CostDecisions:
    r"""Choose for each example the action with the least expected cost, $\arg\min_a \sum_y p_y \, c_{ay}$.

    The expectation is only as good as the probabilities: calibrate them first. Of equal costs the first action wins.

    Args:
        probs: class probabilities ``[n, K]``.
        costs: what each action costs for each true class, ``[A, K]``; gains are negative costs. There may be more or fewer
            actions than classes.
        abstain_cost: what abstaining costs, whatever the class, as one more action named ``"abstain"``.
        actions: the names of the actions; their numbers by default.

    Examples:
        >>> probs = torch.tensor([[0.95, 0.05], [0.7, 0.3], [0.1, 0.9]])   # healthy, ill
        >>> costs = [[0, 100], [10, 1]]
        >>> decide_by_cost(probs, costs, abstain_cost=6, actions=["send home", "treat"]).named
        ['send home', 'abstain', 'treat']
    """
    values = read_probabilities(probs)
    matrix, names = read_costs(costs, values.shape[1], abstain_cost, actions)
    expected, action = (values @ matrix.T).min(-1)
    return CostDecisions(action, expected, names, matrix)


def read_costs(
    costs: Array | Sequence[Sequence[float]], classes: int, abstain_cost: float | None, actions: Sequence[str] | None
) -> tuple[Tensor, tuple[str, ...]]:
    """The costs ``[A, K]`` in float64, with abstention as the last row if it has a cost, and the actions' names."""
    try:
        matrix = as_tensor("costs", costs if isinstance(costs, Tensor) else torch.tensor(costs, dtype=torch.float64)).double()
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"Expected `costs` to be numbers in rows of the same length, but got {costs!r}.") from error
    if matrix.dim() != 2 or not len(matrix) or matrix.shape[1] != classes:
        raise InvalidArgumentError(
            f"Expected `costs` of shape [actions, {classes}], one column for each class, but got {list(matrix.shape)}."
        )
    if not bool(matrix.isfinite().all()):
        row, column = (~matrix.isfinite()).nonzero()[0].tolist()
        raise InvalidArgumentError(
            f"Expected finite `costs`, but action {row} costs {matrix[row, column].item()} for class {column}. "
            "An action that is out of the question: give it a large cost."
        )
    names = tuple(map(str, range(len(matrix)))) if actions is None else tuple(actions)
    if len(names) != len(matrix) or len({*names, ABSTAIN}) != len(names) + 1:
        raise InvalidArgumentError(
            f"Expected `actions` to be {len(matrix)} different names other than {ABSTAIN!r}, but got {list(names)}."
        )
    if abstain_cost is None:
        return matrix, names
    if not is_real(abstain_cost) or not abs(abstain_cost) < float("inf"):
        raise InvalidArgumentError(f"Expected `abstain_cost` to be a finite number, but got {abstain_cost!r}.")
    return torch.cat((matrix, matrix.new_full((1, classes), float(abstain_cost)))), (*names, ABSTAIN)
