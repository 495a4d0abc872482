"""Choose among ways to learn by their out-of-fold losses, within a budget of time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from calibayes.crossfit.cross_fit import CrossFit, Probs
from calibayes.errors import CalibayesError, InvalidArgumentError
from calibayes.wording import counted

__all__ = ["Attempt", "Selection", "budget_for", "select"]

Floats = npt.NDArray[np.float64]

_SMALLEST = 1e-12  # a probability of zero where the truth is would decide everything
_HOPELESS = 3.0  # standard errors behind the leader after one fold: not worth the other folds
_LEVEL = 0.5  # standard errors within which two are level, and the simpler one is taken …
_NOTHING = 0.002  # … or a share of the loss that nobody would notice
_FAILURES = (CalibayesError, RuntimeError, ValueError, ArithmeticError, MemoryError)  # of one method: others may do better
_LEAST_SECONDS, _MOST_SECONDS, _INPUTS_A_SECOND = 180.0, 1800.0, 20_000.0


@dataclass(frozen=True, eq=False)
class Attempt:
    """One way to learn, and what came of it.

    Attributes:
        title: its name.
        result: complete, ended after its first fold (behind the others, or too slow), or failed with an error.
        nll: the mean out-of-fold loss of the rows that have one; NaN if it failed.
        standard_error: of that mean.
        seconds: that it took.
        reason: why it ended early or failed, for users; empty if complete.
        parts: the cross-fitted learners that it averages; one, but for a blend.
    """

    title: str
    result: Literal["complete", "behind", "too slow", "failed"]
    nll: float
    standard_error: float
    seconds: float
    reason: str
    parts: tuple[CrossFit, ...]

    @property
    def folds(self) -> int:
        """The number of folds that its NLL is of."""
        return min(len(part.members) for part in self.parts)

    def predictions(self) -> Probs:
        """The out-of-fold probabilities ``[n, K]``; NaN for rows that were never held out."""
        mean: Probs = np.mean([part.predictions() for part in self.parts], axis=0)
        return mean


@dataclass(frozen=True, eq=False)
class Selection:
    """The attempt that was chosen, and all that were made, simpler ones first."""

    best: Attempt
    attempts: tuple[Attempt, ...]
    interrupted: bool = False


def select(
    contenders: Sequence[CrossFit],
    *,
    budget: float,
    blends: Sequence[tuple[str, tuple[int, ...]]] = (),
    say: Callable[[str], None] = lambda line: None,
) -> Selection:
    """Cross-fit contenders one after the other, and choose by their out-of-fold losses.

    After its first fold, a contender that is far behind the best so far, or that would not be done in time, is given up; the
    first one is always finished. One that fails with an error is left out, unless all fail. Of those that are level with the
    best, the simplest is taken. Ctrl-C ends the search; what is complete by then is chosen from, or if nothing is, the members
    that there are make the classifier.

    Args:
        contenders: from the simplest to the most complex, not trained yet, on the same examples and folds.
        budget: seconds for all of them.
        blends: names and members (places among the contenders) of averages to consider as well: they cost no training.
        say: is told what is being tried, and the time left.
    """
    if not contenders:
        raise InvalidArgumentError("Expected at least one contender to choose from, but got none.")
    start, attempts, interrupted = time.perf_counter(), dict[int, Attempt](), False
    errors: list[Exception] = []
    targets = contenders[0].examples.targets.numpy()
    for place, contender in enumerate(contenders):
        left = budget - (time.perf_counter() - start)
        if left <= 0 and any(each.result == "complete" for each in attempts.values()):
            say(f"The time is up. Not tried: {', '.join(each.learner.title for each in contenders[place:])}.")
            break
        limit = f", {_duration(left)} left" if len(contenders) > 1 else ""
        say(f"Trying {contender.learner.title} ({counted(len(contender.folds), 'fold')}{limit}).")
        try:
            attempts[place] = _attempt(contender, attempts, targets, left)
        except KeyboardInterrupt:
            interrupted = True
            if not any(each.result == "complete" for each in attempts.values()):
                if not contender.members:
                    raise
                attempts[place] = _judged(contender.learner.title, (contender,), targets, time.perf_counter() - start)
            break
        except _FAILURES as error:
            errors.append(error)
            attempts[place] = _failed(contender, error)
        say(_result(attempts[place]))
    if errors and not any(each.result == "complete" for each in attempts.values()):
        raise errors[0]
    for title, members in blends:
        parts = [attempts[place] for place in members if place in attempts]
        if len(parts) == len(members) and all(each.result == "complete" for each in parts):
            attempts[len(contenders) + len(attempts)] = _blend(title, parts, targets)
    ordered = tuple(attempts.values())
    complete = [each for each in ordered if each.result == "complete"]
    losses = np.stack([row_losses(each.predictions(), targets) for each in complete])
    return Selection(complete[simplest_of_the_best(losses, _weights(contenders[0]))], ordered, interrupted)


def budget_for(rows: int, inputs: int) -> float:
    """Return seconds for trying methods, by the size of the data: three minutes, and half an hour at most.

    Args:
        rows: how many there are.
        inputs: numbers of each row.

    Examples:
        >>> [budget_for(rows, 50) for rows in (1000, 100_000, 10_000_000)]
        [182.5, 430.0, 1800.0]
    """
    return min(_LEAST_SECONDS + rows * inputs / _INPUTS_A_SECOND, _MOST_SECONDS)


def row_losses(probs: Probs, targets: npt.NDArray[np.int64]) -> Floats:
    """The negative log-likelihood of each row; NaN where there is no prediction."""
    losses: Floats = -np.log(np.maximum(probs[np.arange(len(targets)), targets], _SMALLEST))
    return losses


def _attempt(contender: CrossFit, others: Mapping[int, Attempt], targets: npt.NDArray[np.int64], left: float) -> Attempt:
    start = time.perf_counter()
    leaders = [each for each in others.values() if each.result == "complete"]
    while not contender.complete:
        contender.train_next()
        took = time.perf_counter() - start
        if len(contender.members) > 1 or not leaders:
            continue
        found = _judged(contender.learner.title, (contender,), targets, took)
        ahead = min(leaders, key=lambda each: each.nll)
        difference = row_losses(found.predictions(), targets) - row_losses(ahead.predictions(), targets)
        behind, error = _mean_and_error(difference, _weights(contender))
        if behind > _HOPELESS * error:
            return replace(found, result="behind", reason=f"far behind {ahead.title} after one fold")
        if took * len(contender.folds) > left:
            return replace(found, result="too slow", reason="would not have been done in time")
    return _judged(contender.learner.title, (contender,), targets, time.perf_counter() - start)


def _failed(contender: CrossFit, error: Exception) -> Attempt:
    why = next(iter(str(error).splitlines()), "")
    reason = f"failed: {why or type(error).__name__}"
    return Attempt(contender.learner.title, "failed", np.nan, np.nan, sum(contender.seconds), reason, (contender,))


def _judged(title: str, parts: tuple[CrossFit, ...], targets: npt.NDArray[np.int64], seconds: float) -> Attempt:
    found = Attempt(title, "complete", np.nan, np.nan, seconds, "", parts)
    nll, error = _mean_and_error(row_losses(found.predictions(), targets), _weights(parts[0]))
    return replace(found, nll=nll, standard_error=error)


def _blend(title: str, parts: Sequence[Attempt], targets: npt.NDArray[np.int64]) -> Attempt:
    return _judged(title, tuple(part for each in parts for part in each.parts), targets, sum(each.seconds for each in parts))


def simplest_of_the_best(losses: Floats, weights: Floats | None) -> int:
    """The first of several, simpler ones first, that is level with the one whose mean loss is the lowest.

    Args:
        losses: of each row, ``[several, n]``; NaN where there is no prediction.
        weights: of the rows.
    """
    means = [_mean_and_error(each, weights)[0] for each in losses]
    best = int(np.argmin(means))
    for place, each in enumerate(losses):
        behind, error = _mean_and_error(each - losses[best], weights)
        if behind <= max(_LEVEL * error, _NOTHING * means[best]):
            return place
    return best


def _weights(contender: CrossFit) -> Floats | None:
    weights = contender.examples.weights
    return None if weights is None else weights.double().numpy()


def _mean_and_error(values: Floats, weights: Floats | None) -> tuple[float, float]:
    """The mean of the values that are known, by weight, and its standard error."""
    known = values[~np.isnan(values)]
    shares = np.ones(len(known)) if weights is None else weights[~np.isnan(values)]
    mean = float(np.average(known, weights=shares))
    if len(known) < 2:
        return mean, float("inf")
    variance = np.sum((shares * (known - mean)) ** 2) * len(known) / (len(known) - 1)
    return mean, float(np.sqrt(variance) / shares.sum())


def _result(attempt: Attempt) -> str:
    what = attempt.reason or f"held-out NLL {attempt.nll:.4f} ± {attempt.standard_error:.4f}"
    return f"{attempt.title[0].upper()}{attempt.title[1:]}: {what} ({attempt.seconds:.0f} s)."


def _duration(seconds: float) -> str:
    return f"{seconds / 60:.1f} min" if seconds >= 60 else f"{max(seconds, 0):.0f} s"
