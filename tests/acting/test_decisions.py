"""Decisions by cost against loops, and their limits."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.metrics.simulated import classifier

from calibayes.acting import decide_by_cost
from calibayes.errors import InvalidArgumentError, InvalidProbabilitiesError


def test_the_least_expected_cost_by_loops() -> None:
    probs, _ = classifier(200, 1.0, seed=0, classes=3)
    costs = np.array([[0, 5, 1], [2, 0, 3], [4, 1, -1], [1.2, 1.1, 1.0]])
    decisions = decide_by_cost(probs, costs, 1.05)
    for row, action, expected in zip(probs.tolist(), decisions.action.tolist(), decisions.expected_cost.tolist(), strict=True):
        every = [sum(p * c for p, c in zip(row, each, strict=True)) for each in [*costs.tolist(), [1.05] * 3]]
        assert action == every.index(min(every))
        assert expected == pytest.approx(min(every))
    assert {"2", "abstain"} <= set(decisions.named)


def test_costs_in_lists_are_not_rounded() -> None:
    assert decide_by_cost(torch.tensor([[0.5, 0.5]]), [[0.1, 0.3]]).costs.tolist() == [[0.1, 0.3]]


def test_equal_costs_of_errors_are_the_most_probable_class() -> None:
    probs, _ = classifier(300, 1.0, seed=1)
    decisions = decide_by_cost(probs, 1 - torch.eye(4))
    assert torch.equal(decisions.action, probs.argmax(-1))
    assert torch.allclose(decisions.expected_cost, 1 - probs.amax(-1))


def test_abstaining_at_a_cost_is_a_threshold_on_confidence() -> None:
    """Chow's rule: with errors of cost 1 abstain below a confidence of one less the cost."""
    probs, labels = classifier(300, 1.0, seed=2)
    decisions = decide_by_cost(probs, 1 - torch.eye(4), abstain_cost=0.3)
    assert torch.equal(decisions.abstained, probs.amax(-1) < 0.7)
    incurred = decisions.incurred(labels)
    assert incurred[decisions.abstained].unique().tolist() == [pytest.approx(0.3)]
    assert not decide_by_cost(probs, 1 - torch.eye(4)).abstained.any()


def test_no_rule_is_cheaper_where_probabilities_are_true() -> None:
    probs, labels = classifier(50_000, 1.0, seed=3, classes=3)
    costs = torch.tensor([[0.0, 1, 4], [1, 0, 2], [8, 2, 0]])
    best = decide_by_cost(probs, costs)
    spent = best.incurred(labels).mean()
    assert float(spent) == pytest.approx(float(best.expected_cost.mean()), abs=0.02)
    assert float(spent) < float(costs[probs.argmax(-1), labels].mean())


@pytest.mark.parametrize(
    ("costs", "options", "message"),
    [
        ([[0, 1]], {}, r"shape \[actions, 3\], one column for each class, but got \[1, 2\]"),
        ([[0, 1, 2], [0, 1]], {}, "rows of the same length"),
        ([["a", "b", "c"]], {}, "rows of the same length"),
        ([[0, 1, float("inf")]], {}, "action 0 costs inf for class 2"),
        ([[0, 1, 2]], {"actions": ["a", "b"]}, "1 different names"),
        ([[0, 1, 2]], {"actions": ["abstain"]}, "other than 'abstain'"),
        ([[0, 1, 2], [1, 1, 1]], {"actions": ["a", "a"]}, "2 different names"),
        ([[0, 1, 2]], {"abstain_cost": float("nan")}, "`abstain_cost` to be a finite number, but got nan"),
    ],
)
def test_bad_costs_are_refused(costs: object, options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        decide_by_cost(torch.full((2, 3), 1 / 3), costs, **options)  # type: ignore[arg-type]


def test_bad_probabilities_and_labels_are_refused() -> None:
    with pytest.raises(InvalidProbabilitiesError):
        decide_by_cost(torch.ones(2, 3), [[0, 1, 2]])
    with pytest.raises(InvalidArgumentError, match="2 classes in 0 … 2"):
        decide_by_cost(torch.full((2, 3), 1 / 3), [[0, 1, 2]]).incurred(torch.tensor([0, 3]))
