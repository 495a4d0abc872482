"""What is decided for each predicted row: a class or an action, or nothing; a set of classes; how much of an outsider it is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, final

import numpy as np
from torch import Tensor

from calibayes.acting.guarantee_request import GuaranteeRequest
from calibayes.acting.guarantees import Guarantees, decisions_by_cost
from calibayes.errors import InvalidArgumentError
from calibayes.files.guarantee_settings import request_of
from calibayes.files.model import Model
from calibayes.predictive import Predictive
from calibayes.tables import TableOptions

__all__ = ["RowActions", "joined_set"]


@final
class RowActions:
    """Decides for rows what a model and the user's options say.

    Args:
        model: a trained model.
        table_options: the format of the text of a file of costs.
        abstain_below: a confidence by hand, instead of a certified threshold.
        temperature: whether probabilities are scaled by the model's temperature.
        samples: of the weights, if other than the model's own.
        asked: ``sets``, ``sets_score``, ``sets_by_class``, ``certify`` and ``costs``; what is left out is as in training.
    """

    def __init__(
        self,
        model: Model,
        table_options: TableOptions,
        *,
        abstain_below: float | None,
        temperature: bool,
        samples: int | None,
        **asked: Any,
    ) -> None:
        self.notes: list[str] = []
        self._model, self.below = model, abstain_below
        typed = {name for name in ("sets", "certify") if asked.get(name) is not None}
        if abstain_below is not None and "certify" in typed:
            raise InvalidArgumentError(
                "Expected one of --abstain-below, a threshold by hand, and --certify, a certified one, but got both."
            )
        random = any(member.random for member in model.posterior.members)
        same_samples = not random or samples in (None, model.samples)
        same = same_samples and temperature == model.calibrated
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
        self._outsiders = model.set_aside if same_samples else None
        if model.set_aside is not None and not same_samples:
            self.notes.append("No column 'outsider': it was calibrated for another number of samples.")

    @property
    def abstains(self) -> bool:
        """True if some rows may be left without a decision."""
        certified = self.guarantees is not None and self.guarantees.threshold is not None
        return self.below is not None or certified or (self.costs is not None and self.costs.abstain_cost is not None)

    def columns(self, probs: Tensor) -> tuple[dict[str, Any], int]:
        """Return the columns ``decision``, ``abstain`` if rows may be left without one, and ``set`` if there are sets.

        Also return the number of rows without a decision.
        """
        names: Any = np.array(self._model.classes, dtype=object)
        unsure = np.zeros(len(probs), dtype=bool)
        if self.costs is None:
            decisions = names[probs.argmax(1).numpy()]
        else:
            actions = decisions_by_cost(probs, self.costs)
            decisions = np.array(actions.named, dtype=object)
            unsure |= actions.abstained.numpy()
        if self.below is not None:
            unsure |= probs.amax(1).numpy() < self.below
        answers = None if self.guarantees is None else self.guarantees.answers(probs)
        if answers is not None:
            unsure |= ~answers.numpy()
        decisions[unsure] = ""
        found = {"decision": decisions}
        if self.abstains:
            found["abstain"] = np.where(unsure, "true", "false").astype(object)
        if self.guarantees is not None and self.guarantees.sets is not None:
            sets = self.guarantees.sets.predict(probs).numpy()
            found["set"] = np.array([joined_set(names[row]) for row in sets], dtype=object)
        return found, int(unsure.sum())

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
