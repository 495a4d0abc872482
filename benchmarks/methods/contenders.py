"""The methods that are compared, each with the four settings that it may choose from on validation data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from calibayes.objective import CrossEntropy, Focal

__all__ = ["CONTENDERS", "Contender", "loss_of"]

Start = Literal["scratch", "point", "members"]


@dataclass(frozen=True)
class Contender:
    """A method in the comparison.

    Attributes:
        name: in records and files.
        title: in tables.
        start: whether it is trained from scratch, from a trained point of the base, or made of members that are trained.
        tries: the settings to choose from, each of them plain values.
        bases: the bases that it is tried on.
        trainings: epochs that one member is trained for, in trainings of the plain network.
    """

    name: str
    title: str
    start: Start
    tries: tuple[dict[str, Any], ...] = ({},)
    bases: tuple[str, ...] = ("plain", "regularised")
    trainings: float = 1.0


def _each(name: str, *values: Any) -> tuple[dict[str, Any], ...]:
    return tuple({name: value} for value in values)


_PRECISIONS = ("marginal-likelihood", "validation", 1.0, 10.0)
_WARM = tuple(
    {"beta": beta, "prior_std": prior, "init_std": 0.03} for beta, prior in ((0.03, 0.1), (0.1, 0.1), (0.3, 0.1), (0.1, 0.3))
)
_PRIORS = tuple({"beta": beta, "prior_std": prior} for beta in (0.01, 0.1) for prior in (0.1, 0.3))

CONTENDERS = (
    Contender("fnn", "the network itself", "scratch"),
    Contender("ema", "average of weights (EMA)", "scratch", _each("ema", 0.95, 0.98, 0.99, 0.995), bases=("plain",)),
    Contender("focal", "focal loss", "scratch", _each("gamma", 1.0, 2.0, 3.0, "flsd")),
    Contender("label-smoothing", "label smoothing", "scratch", _each("smoothing", 0.02, 0.05, 0.1, 0.2)),
    Contender("ca-fnn", "CA-FNN", "scratch", _each("lam", 1.0, 3.0, 10.0, 30.0)),
    Contender("bnn", "BNN", "scratch", _PRIORS),
    Contender("ca-bnn", "CA-BNN", "scratch", _each("lam", 1.0, 3.0, 10.0, 30.0)),
    Contender("natural-gradient", "natural gradient", "scratch", _each("natural_rate", 0.001, 0.003, 0.01, 0.03)),
    Contender("mc-dropout", "MC dropout (of inputs)", "scratch", _each("input_dropout", 0.05, 0.1, 0.2, 0.3)),
    Contender("laplace", "last-layer Laplace", "point", _each("prior_precision", *_PRECISIONS)),
    Contender("swag", "SWAG", "point", _each("swag_rate", 0.0003, 0.001, 0.003, 0.01), trainings=1.5),
    Contender("warm-mean-field", "warm mean field", "point", _WARM, trainings=1.5),
    Contender(
        "warm-natural-gradient",
        "natural gradient, warm",
        "point",
        _each("natural_rate", 0.001, 0.003, 0.01, 0.03),
        trainings=1.5,
    ),
    Contender("ensemble", "ensemble", "members"),
    Contender("dropout-ensemble", "ensemble, dropout at prediction", "members", bases=("regularised",)),
    Contender("mixture", "mixture (ensemble of warm mean fields)", "members", trainings=1.5),
)


def loss_of(settings: dict[str, Any]) -> Any:
    """The loss that plain settings ask for, or ``None`` for the usual one."""
    if "gamma" in settings:
        return Focal(schedule="flsd") if settings["gamma"] == "flsd" else Focal(gamma=settings["gamma"])
    if "smoothing" in settings:
        return CrossEntropy(label_smoothing=settings["smoothing"])
    return None
