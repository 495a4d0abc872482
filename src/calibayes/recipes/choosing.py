r"""Choose $\lambda$ and $\beta$ on validation data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, Literal, NamedTuple, TypeVar, get_args

from calibayes.data.sources import as_source
from calibayes.errors import InvalidArgumentError
from calibayes.metrics import accuracy, brier, ece, nll
from calibayes.posterior.abstract_posterior import Posterior
from calibayes.posthoc import refined_nll
from calibayes.predictive import predict_source

__all__ = ["BETAS", "LAMS", "ChoiceMonitor", "Chosen", "Tried", "ValidationScores", "choose", "validation_scores"]

LAMS = (1.0, 10.0, 100.0)
r"""The values of $\lambda$ to choose from by default, from one with hardly any effect to one that costs accuracy."""

BETAS = (0.01, 0.1, 1.0)
r"""The values of $\beta$ to choose from by default, from a posterior that follows the data to the free energy."""

ChoiceMonitor = Literal["nll", "refined-nll"]
"""The score that decides: the validation NLL, or the one after temperature scaling."""

Trained = TypeVar("Trained")


class ValidationScores(NamedTuple):
    """Scores of a trained model on validation data; the refined NLL only on request."""

    nll: float
    ece: float
    accuracy: float
    brier: float
    refined_nll: float | None = None


class Tried(NamedTuple):
    r"""One pair of $\lambda$ and $\beta$, and the validation scores of the model trained with it."""

    lam: float
    beta: float
    nll: float
    ece: float
    accuracy: float
    brier: float


@dataclass(frozen=True)
class Chosen(Generic[Trained]):
    """The best of several models."""

    model: Trained  # the model trained with the chosen values
    best: Tried  # those values, and its validation scores
    tried: tuple[Tried, ...]  # all pairs, in their order
    compared: tuple[float, ...]  # the deciding score of each


def choose(
    pairs: Iterable[tuple[float, float]],
    train: Callable[[float, float], Trained],
    score: Callable[[Trained], ValidationScores],
    monitor: ChoiceMonitor = "nll",
) -> Chosen[Trained]:
    r"""Train with every pair of $\lambda$ and $\beta$, and keep the one with the lowest validation NLL; of equals the first.

    The NLL is a proper score: unlike the calibration error alone, it cannot be lowered by giving up accuracy. Only the best
    model so far is held in memory.

    Args:
        pairs: the pairs to try.
        train: returns a model trained with $\lambda$ and $\beta$.
        score: returns its validation scores, such as `validation_scores`.
        monitor: the score that decides: ``"nll"``, or ``"refined-nll"`` for models that get a temperature afterwards.

    Examples:
        >>> best = choose([(1.0, 0.1), (10.0, 0.1)], lambda lam, beta: lam, lambda model: ValidationScores(1 / model, 0, 1, 0))
        >>> best.model, best.best.lam, len(best.tried)
        (10.0, 10.0, 2)
    """
    check_monitor("monitor", monitor)
    tried: list[Tried] = []
    compared: list[float] = []
    best: tuple[Trained, Tried] | None = None
    for lam, beta in pairs:
        model = train(lam, beta)
        scores = score(model)
        tried.append(Tried(lam, beta, *scores[:4]))
        value = scores.nll if monitor == "nll" else scores.refined_nll
        if value is None:
            raise InvalidArgumentError(
                f"`monitor={monitor!r}` needs scores that have it, but got {scores!r}. "
                f"Use `validation_scores(..., monitor={monitor!r})`."
            )
        compared.append(value)
        if best is None or _rank(value) < min(map(_rank, compared[:-1])):
            best = model, tried[-1]
    if best is None:
        raise InvalidArgumentError("Expected at least one pair of `lam` and `beta` to choose from, but got none.")
    return Chosen(*best, tuple(tried), tuple(compared))


def check_monitor(name: str, value: object) -> None:
    """Raise an `InvalidArgumentError` that names ``value`` unless it is a `ChoiceMonitor`."""
    if value not in get_args(ChoiceMonitor):
        raise InvalidArgumentError(f"Expected `{name}` to be one of {get_args(ChoiceMonitor)}, but got {value!r}.")


def _rank(value: float) -> float:
    return math.inf if math.isnan(value) else value


def validation_scores(
    posterior: Posterior, validation: Any, *, samples: int = 20, seed: int = 0, monitor: ChoiceMonitor = "nll"
) -> ValidationScores:
    """The scores of a posterior on validation data, of any kind that `calibayes.fit` takes, with weights if it has any.

    Args:
        posterior: a trained one.
        validation: labelled data that it was not trained on.
        samples: $S$, the number of samples of the weights.
        seed: of the samples.
        monitor: ``"refined-nll"`` to include that score.

    Examples:
        >>> posterior = calibayes.Point(torch.nn.Linear(4, 3))
        >>> scores = validation_scores(posterior, (torch.randn(50, 4), torch.arange(50) % 3))
        >>> 0 < scores.ece < 1, scores.nll > 0
        (True, True)
    """
    check_monitor("monitor", monitor)
    source = as_source(validation, 512, "validation")
    predictive, targets, weights = predict_source(posterior, source, samples=samples, seed=seed)
    metrics = (nll, ece, accuracy, brier, *([] if monitor == "nll" else [refined_nll]))
    return ValidationScores(*(metric(predictive.probs, targets, weights=weights) for metric in metrics))
