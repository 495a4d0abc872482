"""The verdict on a classifier's confidence, in plain words."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from calibayes.errors import InvalidProbabilitiesError
from calibayes.metrics import METRICS, Difference, Scores, ece, ece_squared_debiased
from calibayes.metrics.prediction_arrays import Array, as_predictions
from calibayes.posthoc import PosthocWarning, TemperatureScaling
from calibayes.posthoc.temperature import HIGHEST, LOWEST
from calibayes.randomness import generator_for
from calibayes.wording import joined, percent

__all__ = ["TemperatureEffect", "Verdict", "compared", "temperature_effect", "verdict"]

VerdictKind = Literal["over-confident", "under-confident", "mixed", "calibrated", "unclear"]

_NEGLIGIBLE = 0.01  # a calibration error that nobody need care about
_WIDE = 0.05  # an interval that leaves everything open
_EQUAL = 1e-9
_ROWS = 200_000  # enough for a temperature
_COMPARED = ("nll", "brier", "ece", "accuracy")
_TITLES = {metric.name: metric.title for metric in METRICS}


@dataclass(frozen=True)
class Verdict:
    """A judgement.

    Attributes:
        kind: in a word.
        text: in a sentence or two.
    """

    kind: VerdictKind
    text: str


@dataclass(frozen=True)
class TemperatureEffect:
    """The effect that temperature scaling would have.

    Attributes:
        value: the temperature that fits all examples best.
        ece_before: the ECE as it is.
        ece_after: the ECE after scaling, each half of the examples by a temperature fitted on the other half.
        share: how much of the calibration error it takes away, at most 1; NaN where there is none to be seen.
    """

    value: float
    ece_before: float
    ece_after: float
    share: float


def temperature_effect(
    probs: Array,
    targets: Array,
    *,
    weights: Array | None = None,
    logits: Array | None = None,
    bins: int = 15,
    seed: int = 0,
) -> TemperatureEffect | None:
    """Return the effect of temperature scaling on the predictions; None where there are too few examples to try.

    Args:
        probs: class probabilities, shape ``[n, K]`` or one column for two classes, torch or numpy.
        targets: the true classes.
        weights: how much each example counts.
        logits: the logits behind ``probs``, if they are known: probabilities that were rounded to 0 have lost theirs.
        bins: of the ECE.
        seed: of the halves, and of the choice of examples where there are very many.
    """
    found = as_predictions(probs, targets, weights, check=False)
    if len(found) < 20:
        return None
    order = torch.randperm(len(found), generator=generator_for(torch.device("cpu"), seed, "halves"))[:_ROWS]
    said = found.probs if logits is None else _counted(_two_columns(torch.as_tensor(logits)), probs, weights)
    scaled = logits is not None
    said, labels, mass = said[order], found.targets[order], found.mass[order]
    halves = torch.arange(len(order)) % 2 == 0
    after = torch.empty_like(found.probs[order])
    for half in (halves, ~halves):
        scaling = _fitted(said[half], labels[half], mass[half], scaled)
        after[~half] = scaling.transform(said[~half], logits=scaled).to(after)
    before = found.probs[order]
    square = ece_squared_debiased(before, labels, bins, weights=mass, check=False)
    left = max(0.0, ece_squared_debiased(after, labels, bins, weights=mass, check=False))
    first, then = (ece(probs, labels, bins, weights=mass, check=False) for probs in (before, after))
    return TemperatureEffect(
        value=_fitted(said, labels, mass, scaled).temperature,
        ece_before=first,
        ece_after=then,
        # Chance keeps an ECE large however much is fixed, and makes the debiased square uncertain: the better of both.
        share=max(1 - math.sqrt(left / square), 1 - then / first) if square > 0 else math.nan,
    )


def verdict(scores: Scores, effect: TemperatureEffect | None) -> Verdict:
    """The judgement of scores with intervals.

    Over- or underconfident: the interval of mean confidence minus accuracy excludes zero. Mixed: it does not, but that
    of the ECE does. Calibrated: the ECE is known to be small. Unclear: it may be small or large.

    Args:
        scores: of `evaluate`, with intervals.
        effect: what temperature scaling would do.
    """
    says, right = percent(scores.confidence), percent(scores.accuracy)
    gap, error = scores.intervals["overconfidence"], scores.intervals["ece"]
    at_most = f"{100 * error.high:.2g} %"
    if error.high <= _NEGLIGIBLE:
        return Verdict(
            "calibrated", f"Calibrated: it says {says} and is right {right}; its calibration error (ECE) is at most {at_most}."
        )
    if gap.low > 0 or gap.high < 0:
        kind: VerdictKind = "over-confident" if gap.low > 0 else "under-confident"
        doubt = ""
        if scores.intervals["accuracy"].high < 1 / scores.classes:
            doubt = " That is worse than guessing: are the labels in the same order as the predictions?"
        return Verdict(
            kind, f"{kind.replace('-', '').capitalize()}: it says {says}, it is right {right}{_remedy(effect)}.{doubt}"
        )
    # An ECE that is no larger than the gap has gaps of one sign only: nothing is mixed.
    if error.low > 0 and scores.ece > abs(scores.overconfidence) + _EQUAL:
        return Verdict(
            "mixed",
            f"Mixed: on average it says {says} and is right {right}, but it is overconfident in some places and underconfident "
            f"in others (ECE {percent(error.low)} to {percent(error.high)}){_remedy(effect)}.",
        )
    if error.high > _WIDE or math.isnan(error.high):
        return Verdict(
            "unclear",
            f"Too few examples to tell: it says {says} and is right {right}, and its calibration error (ECE) may be anything"
            + ("." if math.isnan(error.high) else f" up to {at_most}."),
        )
    return Verdict(
        "calibrated",
        f"No sign of miscalibration: it says {says} and is right {right}; its calibration error (ECE) is at most {at_most}.",
    )


def compared(first: str, second: str, found: dict[str, Difference]) -> str:
    """A sentence on two classifiers: in which scores one is clearly better, and in which there is no telling."""
    better: list[str] = []
    worse: list[str] = []
    open_: list[str] = []
    for name in _COMPARED:
        value, low, high = found[name]
        if not found[name].clear:
            open_.append(_TITLES[name])
            continue
        by = f"{_TITLES[name]} (by {abs(value):.2g}, {min(abs(low), abs(high)):.2g} to {max(abs(low), abs(high)):.2g})"
        if math.isinf(value):
            by = f"{_TITLES[name]} (infinite for the other)"
        (better if (value > 0) == (name == "accuracy") else worse).append(by)
    parts = []
    if better:
        parts.append(f"{first} is better than {second} in {joined(better)}")
    if worse:
        parts.append(
            f"{second} is better in {joined(worse)}" if better else f"{second} is better than {first} in {joined(worse)}"
        )
    if open_ and not parts:
        return f"No clear difference between {first} and {second} in {joined(open_)}."
    if open_:
        parts.append(f"no clear difference in {joined(open_)}")
    return "; ".join(parts) + "."


def _remedy(effect: TemperatureEffect | None) -> str:
    if effect is None or math.isnan(effect.share):
        return ""
    digits = 3 if f"{effect.value:.2g}" == "1" else 2
    named = f"a temperature of {effect.value:.{digits}g}"
    if effect.value <= LOWEST:
        return "; there were no errors, so no temperature can be fitted"
    if effect.value >= HIGHEST or named.endswith(" of 1"):
        return "; a temperature would not fix it"
    if effect.share >= 0.6:
        return f"; {named} would fix most of it"
    if effect.share >= 0.2:
        return f"; {named} would fix part of it"
    return "; a temperature would not fix it"


def _fitted(said: Tensor, labels: Tensor, mass: Tensor, logits: bool) -> TemperatureScaling:
    with warnings.catch_warnings():
        # A temperature at its bound is still the best there is, and shown as it is.
        warnings.simplefilter("ignore", PosthocWarning)
        return TemperatureScaling().fit(said, labels, weights=mass, logits=logits)


def _counted(logits: Tensor, probs: Array, weights: Array | None) -> Tensor:
    """The logits of the examples that count, which are those that `as_predictions` keeps."""
    if len(logits) != len(probs):
        raise InvalidProbabilitiesError(
            f"Expected as many rows of `logits` as of `probs`, which are {len(probs)}, but got {len(logits)}."
        )
    return logits if weights is None else logits[torch.as_tensor(weights) > 0]


def _two_columns(logits: Tensor) -> Tensor:
    """A single column of logits is the log-odds of class 1."""
    column = logits.reshape(len(logits), -1)
    return torch.cat((torch.zeros_like(column), column), -1) if column.shape[1] == 1 else column
