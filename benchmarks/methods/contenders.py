"""The methods that are compared, each with the six settings that it may choose from on validation data."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
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


def _grid(**axes: tuple[Any, ...]) -> tuple[dict[str, Any], ...]:
    return tuple(dict(zip(axes, values, strict=True)) for values in product(*axes.values()))


# Written down before the comparison was run, six for each: ranges around what the papers and the library's defaults say.
_LAMBDAS = _grid(lam=(0.3, 1.0, 3.0, 10.0, 30.0, 100.0))
_PRECISIONS = _grid(prior_precision=("marginal-likelihood", "validation", 0.1, 1.0, 10.0, 100.0))
_WARM = tuple(
    {**each, "prior_std": prior, "init_std": width}
    for prior, width in ((0.3, 0.01), (0.3, 0.03), (0.1, 0.03))
    for each in _grid(beta=(0.01, 0.1))
)

CONTENDERS = (
    Contender("fnn", "the network itself", "scratch"),
    Contender("ema", "average of weights (EMA)", "scratch", _grid(ema=(0.9, 0.95, 0.98, 0.99, 0.995, 0.998)), bases=("plain",)),
    Contender("focal", "focal loss", "scratch", _grid(gamma=(0.5, 1.0, 2.0, 3.0, 5.0, "flsd"))),
    Contender("label-smoothing", "label smoothing", "scratch", _grid(smoothing=(0.01, 0.02, 0.05, 0.1, 0.15, 0.2))),
    Contender("ca-fnn", "CA-FNN", "scratch", _LAMBDAS),
    Contender("bnn", "BNN", "scratch", _grid(beta=(0.01, 0.1, 1.0), prior_std=(0.1, 0.3))),
    Contender("ca-bnn", "CA-BNN", "scratch", _LAMBDAS),
    Contender("natural-gradient", "natural gradient", "scratch", _grid(natural_rate=(0.005, 0.01, 0.02), beta=(0.01, 0.1))),
    Contender("mc-dropout", "MC dropout (of inputs)", "scratch", _grid(input_dropout=(0.02, 0.05, 0.1, 0.15, 0.2, 0.3))),
    Contender("laplace", "last-layer Laplace", "point", _PRECISIONS),
    Contender("swag", "SWAG", "point", _grid(swag_rate=(0.0003, 0.001, 0.002, 0.005, 0.01, 0.02)), trainings=1.5),
    Contender("warm-mean-field", "warm mean field", "point", _WARM, trainings=1.5),
    Contender(
        "warm-natural-gradient",
        "natural gradient, warm",
        "point",
        _grid(natural_rate=(0.0003, 0.001, 0.003), beta=(0.01, 0.1)),
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
