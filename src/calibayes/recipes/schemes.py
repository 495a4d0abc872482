"""The paper's four schemes by name."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from torch import nn

from calibayes.calibration import WMMCE
from calibayes.calibration.measures import Measure
from calibayes.errors import InvalidArgumentError
from calibayes.objective import SCHEMES, Objective
from calibayes.posterior import MeanField, Point
from calibayes.posterior.mean_field import PriorMean
from calibayes.schedules import Schedule

__all__ = ["build", "check_scheme", "combinations", "is_bayesian", "is_calibration_aware"]


def check_scheme(scheme: str) -> str:
    """``scheme`` itself, or an error that names the four when it is none of them."""
    if scheme not in SCHEMES:
        raise InvalidArgumentError(f"Expected `scheme` to be one of {', '.join(map(repr, SCHEMES))}, but got {scheme!r}.")
    return scheme


def is_bayesian(scheme: str) -> bool:
    """Whether the scheme learns a distribution over the weights."""
    return check_scheme(scheme).endswith("bnn")


def is_calibration_aware(scheme: str) -> bool:
    """Whether the scheme's loss has a calibration term."""
    return check_scheme(scheme).startswith("ca-")


def combinations(scheme: str, lams: Sequence[float], betas: Sequence[float]) -> list[tuple[float, float]]:
    r"""Every pair of $\lambda$ and $\beta$ that the scheme can tell apart: zero stands for what it does not have.

    Examples:
        >>> combinations("ca-fnn", [1.0, 10.0], [0.01, 0.1])
        [(1.0, 0.0), (10.0, 0.0)]
    """
    return list(product(lams if is_calibration_aware(scheme) else (0.0,), betas if is_bayesian(scheme) else (0.0,)))


def build(
    scheme: str,
    net: nn.Module,
    *,
    lam: Schedule = 10.0,
    beta: Schedule = 0.1,
    prior_std: float = 0.05,
    init_std: float = 0.01,
    prior_mean: PriorMean = None,
    calibration: Measure | None = None,
) -> tuple[Point | MeanField, Objective]:
    r"""The posterior and the objective of one of the paper's four schemes.

    What a scheme does not have is left out whatever its value is: $\lambda$ without ``ca-``, and $\beta$ and the two
    widths without ``bnn``. So one call in a loop over `calibayes.SCHEMES` makes all four.

    Args:
        scheme: ``"fnn"``, ``"bnn"``, ``"ca-fnn"`` or ``"ca-bnn"``.
        net: any ``nn.Module`` that returns logits; it is copied.
        lam: $\lambda > 0$, the weight of the calibration term.
        beta: $\beta$, the weight of the KL term.
        prior_std: the standard deviation of the prior.
        init_std: the initial standard deviation of the posterior.
        prior_mean: the centre of the prior, as in `MeanField`.
        calibration: the calibration measure; `WMMCE` as in the paper by default.

    Examples:
        >>> for scheme in calibayes.SCHEMES:
        ...     posterior, objective = build(scheme, torch.nn.Linear(4, 3), lam=5.0, beta=0.1)
        ...     print(scheme, type(posterior).__name__, objective.lam, objective.beta)
        fnn Point 0.0 0.0
        bnn MeanField 0.0 0.1
        ca-fnn Point 5.0 0.0
        ca-bnn MeanField 5.0 0.1
    """
    bayesian, aware = is_bayesian(scheme), is_calibration_aware(scheme)
    if aware and lam == 0:
        raise InvalidArgumentError(
            f"Expected `lam` > 0 for {scheme!r}, but got {lam!r}; without the term it is {scheme[3:]!r}."
        )
    posterior = MeanField(net, prior_std=prior_std, init_std=init_std, prior_mean=prior_mean) if bayesian else Point(net)
    objective = Objective(
        lam=lam if aware else 0.0,
        beta=beta if bayesian else 0.0,
        calibration=WMMCE() if calibration is None else calibration,
    )
    return posterior, objective
