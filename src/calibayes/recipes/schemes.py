"""The paper's four schemes by name."""

from __future__ import annotations

from typing import Any

from torch import nn

from calibayes.calibration.measures import Measure
from calibayes.errors import InvalidArgumentError
from calibayes.methods import build as build_method
from calibayes.methods.term_weights import check_weights, has_beta, has_lam
from calibayes.objective import SCHEMES, Objective
from calibayes.posterior import MeanField, Point
from calibayes.posterior.mean_field import PriorMean
from calibayes.schedules import Schedule

__all__ = ["build"]


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
    r"""The posterior and the objective of one of the paper's four schemes; `calibayes.build` knows all methods.

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
    if scheme not in SCHEMES:
        raise InvalidArgumentError(f"Expected `scheme` to be one of {', '.join(map(repr, SCHEMES))}, but got {scheme!r}.")
    settings: dict[str, Any] = {"calibration": calibration}
    if has_lam(scheme):
        check_weights(scheme, lam=lam)
        settings["lam"] = lam
    if has_beta(scheme):
        settings |= {"beta": beta, "prior_std": prior_std, "init_std": init_std, "prior_mean": prior_mean}
    plan = build_method(scheme, net, **settings)
    return plan.posterior, plan.objective  # type: ignore[return-value]
