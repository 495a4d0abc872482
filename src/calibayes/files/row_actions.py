"""What is decided for each predicted row: a class or an action, or nothing; a set of classes; how much of an outsider it is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import numpy.typing as npt
from torch import Tensor

from calibayes.acting.cost_thresholds import CostThreshold
from calibayes.acting.guarantee_request import GuaranteeRequest
from calibayes.acting.guarantees import AnyThreshold, Guarantees, decisions_by_cost
from calibayes.acting.thresholds import ClassThresholds, Threshold
from calibayes.checks import positive_integer
from calibayes.errors import InvalidArgumentError
from calibayes.files.guarantee_settings import request_of
from calibayes.files.model import Model
from calibayes.posthoc import TemperatureScaling
from calibayes.predictive import Predictive
from calibayes.tables import TableOptions
from calibayes.wording import shown

__all__ = ["RowActions", "RowDecisions", "joined_set"]


@final
@dataclass(frozen=True, eq=False)
class RowDecisions:
    """What is decided for some rows.

    Attributes:
        decisions: a class or an action for each; empty where there is none.
        abstained: whether there is none.
        by_cost: abstained because that has the least expected cost.
        below: abstained because the confidence is below a threshold by hand.
        sets: whether each class is in the set, ``[n, K]``; None without sets.
    """

    decisions: npt.NDArray[np.object_]
    abstained: npt.NDArray[np.bool_]
    by_cost: npt.NDArray[np.bool_]
    below: npt.NDArray[np.bool_]
    sets: npt.NDArray[np.bool_] | None


@final
class RowActions:
    """Decides for rows what a model and the user's options say.

    Args:
        model: a trained model.
        table_options: the format of the text of a file of costs.
        abstain_below: a confidence by hand, instead of a certified threshold.
        temperature: whether probabilities are scaled by the model's temperature; as the model says if None.
        samples: of the weights, if other than the model's own.
        asked: ``sets``, ``sets_score``, ``sets_by_class``, ``certify`` and ``costs``; what is left out is as in training.
    """

    def __init__(
        self,
        model: Model,
        table_options: TableOptions,
        *,
        abstain_below: float | None = None,
        temperature: bool | None = None,
        samples: int | None = None,
        **asked: Any,
    ) -> None:
        if abstain_below is not None and not 0 <= abstain_below <= 1:
            raise InvalidArgumentError(f"Expected `abstain_below` to lie between 0 and 1, but got {abstain_below!r}.")
        if samples is not None:
            positive_integer("samples", samples, 1_000_000)
        self.notes: list[str] = []
        self._model, self.below = model, abstain_below
        scaled = model.calibrated if temperature is None else temperature
        self._scaling = TemperatureScaling.of(model.temperature, len(model.classes)) if scaled else None
        typed = {name for name in ("sets", "certify") if asked.get(name) is not None}
        if abstain_below is not None and "certify" in typed:
            raise InvalidArgumentError(
                "Expected one of --abstain-below, a threshold by hand, and --certify, a certified one, but got both."
            )
        random = any(member.random for member in model.posterior.members)
        same_samples = not random or samples in (None, model.samples)
        same = same_samples and scaled == model.calibrated
        base = None if model.set_aside is None else model.set_aside.request
        if base is not None and abstain_below is not None:
            base = replace(base, certify=None, costs=None)
        if base is not None and not same:
            self._tell_what_is_left_out(base, typed)
            base = None
        request = request_of(model.classes, table_options, base, **asked)
        if not request.empty:
            _check_calibrated(model, same_samples, same, samples)
        self.costs = request.costs
        self.guarantees: Guarantees | None = None
        if model.set_aside is not None and not request.empty:
            self.guarantees = model.set_aside.guarantees(request, seed=model.seed)
            self.notes += [*self.guarantees.statements(model.classes), *self.guarantees.notes]
            if self.decides_nothing:
                self.notes.append(
                    "So every row is left without a decision. Ask for less with --certify, or set a threshold by hand: "
                    "--abstain-below."
                )
        self._outsiders = model.set_aside if same_samples else None
        if model.set_aside is not None and not same_samples:
            self.notes.append("No column 'outsider': it was calibrated for another number of samples.")

    @property
    def abstains(self) -> bool:
        """True if some rows may be left without a decision."""
        certified = self.guarantees is not None and self.guarantees.threshold is not None
        return self.below is not None or certified or (self.costs is not None and self.costs.abstain_cost is not None)

    @property
    def decides_nothing(self) -> bool:
        """True if every row is left without a decision, because no threshold could be certified."""
        return self.guarantees is not None and _certifies_nothing(self.guarantees.threshold)

    def probs(self, predictive: Predictive) -> Tensor:
        """Return the probabilities to decide by, with or without the temperature."""
        return predictive.probs if self._scaling is None else self._scaling.transform(predictive.probs)

    def decide(self, probs: Tensor) -> RowDecisions:
        """Decide for rows with these probabilities ``[n, K]``."""
        names: Any = np.array(self._model.classes, dtype=object)
        nobody = np.zeros(len(probs), dtype=bool)
        by_cost, below, uncertified, sets = nobody, nobody, nobody, None
        if self.costs is None:
            decisions = names[probs.argmax(1).numpy()]
        else:
            actions = decisions_by_cost(probs, self.costs)
            decisions = np.array(actions.named, dtype=object)
            by_cost = actions.abstained.numpy()
        if self.below is not None:
            below = probs.amax(1).numpy() < self.below
        if self.guarantees is not None:
            answers = self.guarantees.answers(probs)
            uncertified = nobody if answers is None else ~answers.numpy()
            sets = None if self.guarantees.sets is None else self.guarantees.sets.predict(probs).numpy()
        abstained = by_cost | below | uncertified
        decisions[abstained] = ""
        return RowDecisions(decisions, abstained, by_cost, below, sets)

    def columns(self, probs: Tensor) -> tuple[dict[str, Any], int]:
        """Return the columns ``decision``, ``abstain`` if rows may be left without one, and ``set`` if there are sets.

        Also return the number of rows without a decision.
        """
        rows = self.decide(probs)
        found = {"decision": rows.decisions}
        if self.abstains:
            found["abstain"] = np.where(rows.abstained, "true", "false").astype(object)
        if rows.sets is not None:
            names: Any = np.array(self._model.classes, dtype=object)
            found["set"] = np.array([joined_set(names[row]) for row in rows.sets], dtype=object)
        return found, int(rows.abstained.sum())

    def reason(self, rows: RowDecisions, row: int, probs: Tensor) -> str:
        """Say in a sentence why a row was left without a decision, given its own probabilities ``[K]``."""
        confidence = f"The confidence, {float(probs.amax()):.4g},"
        if rows.below[row]:
            return f"{confidence} is below {self.below:.4g}, the lowest that was asked for."
        if rows.by_cost[row]:
            return "Abstaining has the least expected cost."
        assert self.guarantees is not None
        threshold = self.guarantees.threshold
        if isinstance(threshold, ClassThresholds):
            threshold = threshold.thresholds[int(probs.argmax())]
            confidence = f"The confidence in {shown(self._model.classes[int(probs.argmax())])}, {float(probs.amax()):.4g},"
        assert threshold is not None
        if threshold.value is None:
            return threshold.statement
        if isinstance(threshold, CostThreshold):
            assert self.costs is not None
            cost = float(decisions_by_cost(probs[None], self.costs).expected_cost)
            return f"The expected cost, {cost:.4g}, is not below {threshold.value:.4g}, up to which {_target(threshold)}."
        return f"{confidence} is not above {threshold.value:.4g}, from which {_target(threshold)}."

    def outsider(self, predictive: Predictive) -> dict[str, Any]:
        """Return the column ``outsider``, if the model has rows to compare with."""
        return {} if self._outsiders is None else {"outsider": self._outsiders.outsider(predictive).numpy()}

    def _tell_what_is_left_out(self, base: GuaranteeRequest, typed: set[str]) -> None:
        names = {"sets": base.sets, "certify": base.certify}
        left = [name for name, value in names.items() if value is not None and name not in typed]
        if left:
            what = " and ".join({"sets": "sets", "certify": "certified threshold"}[name] for name in left)
            self.notes.append(f"Left out: the {what} of the training, valid only for its own samples and temperature.")


def joined_set(names: Any) -> str:
    r"""Join the names of the classes of a set by ``|``; one that has this sign in it gets a backslash before it.

    Examples:
        >>> joined_set(["cat", "dog"]), joined_set(["a|b", "c\\d"])
        ('cat|dog', 'a\\|b|c\\\\d')
    """
    return "|".join(str(name).replace("\\", "\\\\").replace("|", "\\|") for name in names)


def _certifies_nothing(threshold: AnyThreshold | None) -> bool:
    parts = threshold.thresholds if isinstance(threshold, ClassThresholds) else [threshold]
    return all(part is not None and part.value is None for part in parts)


def _target(threshold: Threshold | CostThreshold) -> str:
    if isinstance(threshold, CostThreshold):
        return f"a mean cost of at most {threshold.cost:.4g} is certified"
    article = "an" if threshold.measure == "accuracy" else "a"
    return f"{article} {threshold.measure} of {100 * threshold.accuracy:.4g} % is certified"


def _check_calibrated(model: Model, same_samples: bool, same: bool, samples: int | None) -> None:
    """Raise unless sets and thresholds can be calibrated for these predictions."""
    if model.set_aside is None:
        raise InvalidArgumentError(
            "This model has no rows that were set aside, so nothing can be guaranteed for its predictions. Train it again with "
            "--sets or --certify (or --set-aside 0.2). Or predict labelled rows that it has not seen, and certify a threshold "
            "on those: calibayes evaluate predictions.csv --certify accuracy=0.95"
        )
    if not same_samples:
        raise InvalidArgumentError(
            f"Sets and thresholds were calibrated for {model.samples} samples of the weights, but --samples is {samples}. "
            "Leave --samples out, or --sets and --certify."
        )
    if not same:
        kind = "with" if model.calibrated else "without"
        flag = "--no-temperature" if model.calibrated else "--temperature"
        raise InvalidArgumentError(
            f"Sets and thresholds were calibrated for probabilities {kind} the temperature. Leave {flag} out, or --sets and "
            "--certify."
        )
