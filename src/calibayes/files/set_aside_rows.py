"""Predictions of rows that nothing in training has seen, kept with a model: sets and thresholds are calibrated on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, final, get_args

import numpy as np
import torch
from torch import Tensor

from calibayes.acting.guarantee_request import CertifyRequest, CostTable, GuaranteeRequest
from calibayes.acting.guarantees import Guarantees, calibrate_guarantees
from calibayes.acting.outsiders import outsider_scores
from calibayes.checked_fields import Fields
from calibayes.crossfit import MOST_SET_ASIDE
from calibayes.predictive import Predictive

__all__ = ["ROUNDING", "SetAsideRows"]

OutsiderScore = Literal["epistemic", "max-prob"]
_MOST_ACTIONS = 1000
ROUNDING = 1e-6  # of probabilities that are computed in another batch, or stored in float32


@final
@dataclass(frozen=True, eq=False)
class SetAsideRows:
    """Predictions of the rows that were set aside, and what the model was trained for.

    Attributes:
        probs: the model's final probabilities ``[n, K]``, float32.
        labels: the true classes ``[n]``.
        outsider_score: the name of the score of how unlike the training data an input is.
        outsiders: this score of the rows, in ascending order, float32.
        request: what was asked for in training.
    """

    probs: Tensor
    labels: Tensor
    outsider_score: OutsiderScore
    outsiders: Tensor
    request: GuaranteeRequest

    @classmethod
    def predicted(
        cls, predictive: Predictive, probs: Tensor, labels: np.ndarray[Any, Any], request: GuaranteeRequest
    ) -> SetAsideRows:
        """Keep the predictions of rows that were set aside.

        Args:
            predictive: of the rows, before the temperature.
            probs: with the temperature, if the model applies it.
            labels: the true classes.
            request: what was asked for.
        """
        # Members or samples that never disagree have no epistemic uncertainty to compare.
        score: OutsiderScore = "epistemic" if bool((predictive.epistemic > ROUNDING).any()) else "max-prob"
        scores = outsider_scores(predictive, score).float().sort().values
        return cls(probs.float(), torch.from_numpy(np.asarray(labels, dtype=np.int64)), score, scores, request)

    def guarantees(self, request: GuaranteeRequest | None = None, *, seed: int = 0) -> Guarantees:
        """Calibrate sets and a threshold; those of training if nothing else is asked for."""
        found = calibrate_guarantees(self.request if request is None else request, self.probs, self.labels, seed=seed)
        return found.widened(ROUNDING)

    def outsider(self, predictive: Predictive) -> Tensor:
        r"""Return how unlike the known rows each new row is, from 0 to 1, in float64.

        It is the share of set-aside rows with a lower outsider score, $\#\{s_i < s\} / (n + 1)$: one minus a conformal p-value.
        Of new rows that come from where these came from, at most a share of $\alpha$ has more than $1 - \alpha$. Scores that
        differ by rounding alone count as equal: many rows may be the same, and would be above themselves otherwise.
        """
        scores = outsider_scores(predictive, self.outsider_score).contiguous() - ROUNDING
        return torch.searchsorted(self.outsiders.double(), scores).double() / (len(self.outsiders) + 1)

    def to_dict(self) -> dict[str, Any]:
        """All of it in plain values and tensors."""
        request = self.request
        return {
            "probs": self.probs,
            "labels": self.labels,
            "outsider_score": self.outsider_score,
            "outsiders": self.outsiders,
            "sets": {} if request.sets is None else {"level": request.sets},
            "score": request.score,
            "by_class": request.by_class,
            "certify": "" if request.certify is None else str(request.certify),
            "costs": {} if request.costs is None else request.costs.to_dict(),
        }

    @classmethod
    def of(cls, fields: Fields, classes: int) -> SetAsideRows:
        """Check and return what `to_dict` described."""
        labels = fields.tensor("labels", torch.int64, (None,), most=MOST_SET_ASIDE)
        n = len(labels)
        probs = fields.tensor("probs", torch.float32, (n, classes), most=MOST_SET_ASIDE)
        outsiders = fields.tensor("outsiders", torch.float32, (n,), most=MOST_SET_ASIDE)
        if not n or bool(((labels < 0) | (labels >= classes)).any()):
            raise fields.wrong("labels", f"numbers of classes from 0 to {classes - 1}")
        if not bool(((probs >= 0) & (probs <= 1.001)).all()) or bool(((probs.sum(-1) - 1).abs() > 1e-3).any()):
            raise fields.wrong("probs", "probabilities that sum to 1")
        if bool((outsiders.diff() < 0).any()):
            raise fields.wrong("outsiders", "numbers in ascending order")
        score: OutsiderScore = fields.text("outsider_score", get_args(OutsiderScore))  # type: ignore[assignment]
        return cls(probs, labels, score, outsiders, _request(fields, classes))


def _request(fields: Fields, classes: int) -> GuaranteeRequest:
    sets, costs, certify = fields.inside("sets"), fields.inside("costs"), fields.text("certify")
    table = None
    if costs.has("actions"):
        actions = costs.texts("actions", _MOST_ACTIONS)
        rows = costs.number_rows("costs", len(actions), classes)
        if len(rows) != len(actions):
            raise costs.wrong("costs", f"{len(actions)} rows, one for each action")
        # Abstaining is what the certified threshold decides, so it has no cost here.
        table = CostTable(actions, rows)
    return GuaranteeRequest(
        sets=sets.number("level") if sets.has("level") else None,
        score=fields.text("score"),  # type: ignore[arg-type]
        by_class=fields.flag("by_class"),
        certify=CertifyRequest.parsed(certify) if certify else None,
        costs=table,
    )
