"""The methods that are compared, each with the four settings that it may choose from on validation examples."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

__all__ = ["CONTENDERS", "TRIES", "Contender", "contender_named"]

Start = Literal["scratch", "point", "members", "learner"]
TRIES = 4


@dataclass(frozen=True)
class Contender:
    """A method in the comparison.

    Attributes:
        name: in records and files.
        title: in tables.
        start: trained from scratch; from a trained point of the base; made of trained members; or a learner of its own, which
            trains no network and has no base.
        tries: the settings to choose from, each of them plain values.
        settings_of: the contender whose chosen settings it takes over, before its own tries.
        bases: the bases that it is tried on.
        trainings: epochs that one member is trained for, in trainings of the base.
    """

    name: str
    title: str
    start: Start
    tries: tuple[dict[str, Any], ...] = ({},)
    settings_of: str | None = None
    bases: tuple[str, ...] = ("plain", "regularised")
    trainings: float = 1.0


def _grid(**axes: tuple[Any, ...]) -> tuple[dict[str, Any], ...]:
    return tuple(dict(zip(axes, values, strict=True)) for values in product(*axes.values()))


# Written down before the comparison was run: ranges around what the papers and the library's defaults say. Ensembles have no
# settings of their own; those of a method with the calibration term come after those of the method without it, so it has four
# more; logistic regression searches for its penalty on the validation examples by itself.
_LAMBDAS = _grid(lam=(0.3, 1.0, 5.0, 25.0))
_PRIORS = tuple(
    {"beta": beta, "prior_std": prior} for beta, prior in ((0.1, 0.05), (0.1, 0.3), (0.01, 0.1), (0.01, 0.3))
)  # the first as in the paper
_WARM = tuple(
    {"beta": beta, "prior_std": prior, "init_std": width}
    for beta, prior, width in ((0.01, 0.3, 0.01), (0.1, 0.3, 0.03), (0.01, 0.1, 0.03), (0.1, 0.1, 0.03))
)
# As learning rates of SGD: fractions of a Newton step would depend on the number of examples.
_NATURAL = _grid(natural_rate=(0.3, 1.0, 3.0, 10.0), beta=(0.01,), rescale_rate=(True,), decay_rates=((0.9, 0.999),))
_ONE_AND_A_HALF = 1.5

CONTENDERS = (
    Contender("fnn", "FNN", "scratch"),
    Contender("bnn", "BNN", "scratch", _PRIORS),
    Contender("ca-fnn", "CA-FNN", "scratch", _LAMBDAS),
    Contender("ca-bnn", "CA-BNN", "scratch", _LAMBDAS, settings_of="bnn"),
    Contender("ema", "EMA", "scratch", _grid(ema=(0.95, 0.98, 0.99, 0.998)), bases=("plain",)),
    Contender("focal", "focal loss", "scratch", _grid(gamma=(0.5, 1.0, 2.0, "flsd"))),
    Contender("label-smoothing", "label smoothing", "scratch", _grid(smoothing=(0.01, 0.02, 0.05, 0.1))),
    Contender("mc-dropout", "MC dropout", "scratch", _grid(input_dropout=(0.05, 0.1, 0.2, 0.3))),
    Contender(
        "laplace", "last-layer Laplace", "point", _grid(prior_precision=("marginal-likelihood", "validation", 1.0, 10.0))
    ),
    Contender("swag", "SWAG", "point", _grid(swag_rate=(0.0005, 0.002, 0.005, 0.02)), trainings=_ONE_AND_A_HALF),
    Contender("natural-gradient", "natural gradient", "scratch", _NATURAL),
    Contender("warm-mean-field", "warm mean field", "point", _WARM, trainings=_ONE_AND_A_HALF),
    Contender("ensemble", "ensemble", "members"),
    Contender("mixture", "mixture", "members", settings_of="warm-mean-field", trainings=_ONE_AND_A_HALF),
    Contender("dropout-ensemble", "ensemble, dropout at prediction", "members", bases=("regularised",)),
    Contender("ca-laplace", "last-layer Laplace, λ", "point", _LAMBDAS, settings_of="laplace"),
    Contender("ca-natural-gradient", "natural gradient, λ", "scratch", _LAMBDAS, settings_of="natural-gradient"),
    Contender(
        "ca-warm-mean-field", "warm mean field, λ", "point", _LAMBDAS, settings_of="warm-mean-field", trainings=_ONE_AND_A_HALF
    ),
    Contender("ca-ensemble", "ensemble, λ", "members", settings_of="ca-fnn"),
    Contender("ca-mixture", "mixture, λ", "members", settings_of="ca-warm-mean-field", trainings=_ONE_AND_A_HALF),
    Contender("logistic-regression", "logistic regression", "learner", bases=("plain",)),
    Contender("boosted-trees", "boosted trees", "learner", _grid(learning_rate=(0.03, 0.1), leaves=(7, 31)), bases=("plain",)),
)


def contender_named(name: str) -> Contender:
    """The contender of this name."""
    return next(each for each in CONTENDERS if each.name == name)
