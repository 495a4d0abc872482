"""What is asked of predictions: sets of a coverage, and a threshold for an accuracy, a precision or a mean cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, final, get_args

from calibayes.acting.conformal_scores import ScoreName
from calibayes.acting.decisions import ABSTAIN
from calibayes.checks import fraction, is_real
from calibayes.errors import InvalidArgumentError
from calibayes.wording import did_you_mean, listed

__all__ = ["CertifyRequest", "CostTable", "GuaranteeRequest"]

Measure = Literal["accuracy", "precision", "cost"]
_CERTAINTY = "certainty"


@final
@dataclass(frozen=True)
class CertifyRequest:
    """A threshold to certify: that decisions reach an accuracy, a precision of each class, or stay below a mean cost.

    Args:
        measure: ``"accuracy"``, ``"precision"`` or ``"cost"``.
        target: the accuracy or precision to reach, or the mean cost not to exceed.
        certainty: of the guarantee.
    """

    measure: Measure
    target: float
    certainty: float = 0.9

    def __post_init__(self) -> None:
        if self.measure not in get_args(Measure):
            raise InvalidArgumentError(f"Unknown measure {self.measure!r}. {did_you_mean(self.measure, get_args(Measure))}")
        if self.measure != "cost":
            fraction(self.measure, self.target)
        elif not is_real(self.target) or not abs(self.target) < float("inf"):
            raise InvalidArgumentError(f"Expected `cost` to be a finite number, but got {self.target!r}.")
        fraction(_CERTAINTY, self.certainty)

    @classmethod
    def parsed(cls, text: str) -> CertifyRequest:
        """Read what is typed after ``--certify``.

        Examples:
            >>> CertifyRequest.parsed("accuracy=0.95,certainty=0.99")
            CertifyRequest(measure='accuracy', target=0.95, certainty=0.99)
        """
        example = "Write for example accuracy=0.95 or precision=0.9,certainty=0.95."
        values: dict[str, float] = {}
        for part in text.split(","):
            name, equals, number = (piece.strip() for piece in part.partition("="))
            known = (*get_args(Measure), _CERTAINTY)
            if not equals or name not in known:
                raise InvalidArgumentError(
                    f"Expected --certify to be one of {', '.join(known[:-1])}, '=' and a number, but got {part.strip()!r}. "
                    f"{example}"
                )
            try:
                number_value = float(number)
            except ValueError:
                raise InvalidArgumentError(f"Expected a number after '{name}=', but got {number!r}. {example}") from None
            if name in values:
                raise InvalidArgumentError(f"Expected {name!r} once after --certify, but got it twice: {text!r}.")
            values[name] = number_value
        measures: list[Measure] = [name for name in get_args(Measure) if name in values]
        if len(measures) != 1:
            raise InvalidArgumentError(
                f"Expected --certify to name one of {', '.join(get_args(Measure))}, but got {text!r}. {example}"
            )
        return cls(measures[0], values[measures[0]], values.get(_CERTAINTY, 0.9))

    def __str__(self) -> str:
        return f"{self.measure}={self.target!r},{_CERTAINTY}={self.certainty!r}"


@final
@dataclass(frozen=True)
class CostTable:
    """What each action costs for each true class.

    Args:
        actions: the names of the actions.
        costs: a row for each action, with a number for each class.
        abstain_cost: what abstaining costs; ``None`` if that is not an action.
    """

    actions: tuple[str, ...]
    costs: tuple[tuple[float, ...], ...]
    abstain_cost: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """All of it in plain values."""
        return {"actions": list(self.actions), "costs": [list(row) for row in self.costs], "abstain_cost": self.abstain_cost}


@final
@dataclass(frozen=True)
class GuaranteeRequest:
    """Everything that is asked of predictions.

    Args:
        sets: the coverage of prediction sets; ``None`` for no sets.
        score: of the sets; see `ConformalScore`.
        by_class: whether each class must be covered as often.
        certify: the threshold to certify; ``None`` for none.
        costs: of actions, to decide by instead of taking the most probable class.
    """

    sets: float | None = None
    score: ScoreName = "lac"
    by_class: bool = False
    certify: CertifyRequest | None = None
    costs: CostTable | None = None

    def __post_init__(self) -> None:
        if self.sets is not None:
            fraction("sets", self.sets)
        if self.score not in get_args(ScoreName):
            raise InvalidArgumentError(f"Unknown score of sets {self.score!r}. {did_you_mean(self.score, get_args(ScoreName))}")
        if self.certify is None:
            return
        if self.certify.measure == "cost" and self.costs is None:
            raise InvalidArgumentError("Expected --costs, a file of what each action costs, with --certify cost=….")
        if self.costs is not None and self.certify.measure != "cost":
            raise InvalidArgumentError(
                f"With --costs, decisions are not the most probable classes, so their {self.certify.measure} is not what "
                "--certify would certify. Certify their mean cost, --certify cost=…, or leave --costs out."
            )
        if self.costs is not None and self.costs.abstain_cost is not None:
            raise InvalidArgumentError(
                f"With --certify cost=…, the certified threshold says when to abstain. Leave the row {ABSTAIN!r} out of the "
                f"costs, which has the actions {listed(self.costs.actions)}."
            )

    @property
    def empty(self) -> bool:
        """True if no guarantee is asked for."""
        return self.sets is None and self.certify is None
