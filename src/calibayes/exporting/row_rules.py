"""What is said about each row besides probabilities: a decision or none, a set of classes, how much of an outsider it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from calibayes.acting.acting_inputs import exceeds
from calibayes.acting.cost_thresholds import CostThreshold
from calibayes.acting.decisions import read_costs
from calibayes.acting.guarantee_request import CostTable, GuaranteeRequest
from calibayes.acting.guarantees import Guarantees, decisions_by_cost
from calibayes.acting.prediction_sets import PredictionSets
from calibayes.acting.thresholds import ClassThresholds, Threshold
from calibayes.errors import ExportError, InvalidArgumentError
from calibayes.files.set_aside_rows import ROUNDING, SetAsideRows
from calibayes.predictive import Predictive

__all__ = ["RowRules", "TracedRules"]

AnyThreshold = Threshold | ClassThresholds | CostThreshold


@dataclass(frozen=True, eq=False)
class RowRules:
    """What an exported graph says about rows, given their probabilities.

    Attributes:
        threshold: where decisions are made; by default everywhere.
        below: a confidence below which no decision is made, by hand.
        sets: calibrated prediction sets.
        costs: of each action for each class, to decide by the least expected cost.
        set_aside: rows to compare with, for the column ``outsider``.
    """

    threshold: AnyThreshold | None = None
    below: float | None = None
    sets: PredictionSets | None = None
    costs: CostTable | None = None
    set_aside: SetAsideRows | None = None

    def __post_init__(self) -> None:
        if self.threshold is not None and not isinstance(self.threshold, AnyThreshold):
            got = type(self.threshold).__name__
            raise InvalidArgumentError(f"Expected `threshold` to be certified by calibayes.acting, or a number, but got {got}.")
        if self.sets is not None and self.sets.per == "group":
            raise ExportError(
                "These prediction sets have a threshold for each group, but an exported graph does not know the groups of its "
                "inputs. Calibrate sets without groups: `PredictionSets.fit(probs, labels)`."
            )
        if self.sets is not None and self.sets.score.seed is not None:
            raise ExportError(
                f"These prediction sets are randomised (seed={self.sets.score.seed}) by the last digits of the probabilities, "
                "which another runtime does not reproduce. Calibrate sets without a seed."
            )
        if isinstance(self.threshold, CostThreshold) and self.costs is None:
            raise InvalidArgumentError("A threshold on the expected cost needs `costs`, from which that follows.")
        if self.below is not None and not 0 <= self.below <= 1:
            raise InvalidArgumentError(f"Expected a confidence between 0 and 1 to abstain below, but got {self.below!r}.")

    def check_classes(self, classes: int) -> None:
        """Raise unless everything is for this number of classes."""
        of_threshold = len(self.threshold.thresholds) if isinstance(self.threshold, ClassThresholds) else classes
        of_sets = classes if self.sets is None else self.sets.classes
        for name, count in (("threshold", of_threshold), ("sets", of_sets)):
            if count != classes:
                raise InvalidArgumentError(f"The network has {classes} classes, but `{name}` is for {count}.")
        self.actions([""] * classes)

    @property
    def abstains(self) -> bool:
        """True if some rows may be left without a decision."""
        by_cost = self.costs is not None and self.costs.abstain_cost is not None
        return self.threshold is not None or self.below is not None or by_cost

    def actions(self, classes: Sequence[str]) -> tuple[str, ...]:
        """The names of what ``decision`` counts: actions with costs, or the classes."""
        if self.costs is None:
            return tuple(classes)
        return read_costs(self.costs.costs, len(classes), self.costs.abstain_cost, self.costs.actions)[1]

    def expected(self, probs: Tensor, predictive: Predictive) -> dict[str, Tensor]:
        """Return the outputs as `calibayes` computes them, which those of a graph must equal."""
        decision = probs.argmax(-1)
        abstain = torch.zeros_like(decision, dtype=torch.bool)
        if self.costs is not None:
            actions = decisions_by_cost(probs, self.costs)
            decision, abstain = actions.action, actions.abstained
        if self.below is not None:
            abstain = abstain | (probs.amax(-1) < self.below)
        answers = Guarantees(GuaranteeRequest(costs=self.costs), 0, None, None, self.threshold).answers(probs)
        if answers is not None:
            abstain = abstain | ~answers
        found = {"decision": decision, "abstain": abstain}
        if self.sets is not None:
            found["set"] = self.sets.predict(probs)
        if self.set_aside is not None:
            found["outsider"] = self.set_aside.outsider(predictive)
        return found


class TracedRules(nn.Module):
    """The same rules as operations of a graph: no decision in Python depends on a probability."""

    below: Tensor | None  # as a plain number, ONNX would have it in float32
    limits: Tensor | None
    cost_limit: Tensor | None
    costs: Tensor | None
    set_limits: Tensor | None
    known: Tensor | None

    def __init__(self, rules: RowRules, classes: int) -> None:
        super().__init__()
        self.rules = rules
        limits = cost_limit = costs = None
        if isinstance(rules.threshold, ClassThresholds):
            limits = [_or(each, 2.0) for each in rules.threshold.values]  # no confidence is above 2
        elif isinstance(rules.threshold, Threshold):
            limits = [_or(rules.threshold.value, 2.0)] * classes
        elif rules.threshold is not None:
            cost_limit = _or(rules.threshold.value, -torch.inf)
        if rules.costs is not None:
            costs = read_costs(rules.costs.costs, classes, rules.costs.abstain_cost, rules.costs.actions)[0]
        self.register_buffer("below", None if rules.below is None else torch.tensor(rules.below, dtype=torch.float64))
        self.register_buffer("limits", None if limits is None else torch.tensor(limits, dtype=torch.float64))
        self.register_buffer("cost_limit", None if cost_limit is None else torch.tensor(cost_limit, dtype=torch.float64))
        self.register_buffer("costs", costs)
        self.register_buffer("set_limits", None if rules.sets is None else rules.sets.thresholds)
        self.register_buffer("known", None if rules.set_aside is None else rules.set_aside.outsiders.double())

    @property
    def outputs(self) -> list[str]:
        """The names of the outputs, in their order."""
        found = {"decision": True, "abstain": True, "set": self.set_limits is not None, "outsider": self.known is not None}
        return [name for name, there in found.items() if there]

    def forward(self, probs: Tensor, unscaled: Tensor, epistemic: Tensor) -> dict[str, Tensor]:
        """The outputs for probabilities in float64; those before a scaling and the uncertainty are for ``outsider``."""
        rules = self.rules
        confidence, decision = probs.max(-1)
        unknown = probs.isnan().any(-1)  # nothing is smaller than NaN, nor larger
        abstain = unknown
        if self.limits is not None:
            abstain = abstain | ~exceeds(confidence.clamp_max(1.0), self.limits[decision], torch.float64)
        if self.below is not None:
            abstain = abstain | (confidence < self.below)
        if self.costs is not None:
            expected, decision = (probs @ self.costs.T).min(-1)
            if rules.costs is not None and rules.costs.abstain_cost is not None:
                abstain = abstain | (decision == len(self.costs) - 1)
            if self.cost_limit is not None:
                abstain = abstain | (expected >= self.cost_limit)
        found = {"decision": decision, "abstain": abstain}
        if self.set_limits is not None and rules.sets is not None:
            found["set"] = (rules.sets.score.of_classes(probs) <= self.set_limits) | unknown.unsqueeze(1)
        if self.known is not None and rules.set_aside is not None:
            score = epistemic if rules.set_aside.outsider_score == "epistemic" else 1 - unscaled.amax(-1)
            found["outsider"] = (self.known < score.unsqueeze(1) - ROUNDING).sum(1).double() / (len(self.known) + 1)
        return found


def _or(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else value
