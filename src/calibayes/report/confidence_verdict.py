"""The verdict on a classifier's confidence, in plain words."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from calibayes.errors import InvalidProbabilitiesError
from calibayes.metrics import METRICS, Difference, Scores, ece, ece_squared_debiased
from calibayes.metrics.agreement import excludes_zero
from calibayes.metrics.bins import DEFAULT_BINS
from calibayes.metrics.calibration_test import SMALLEST, rejects
from calibayes.metrics.prediction_arrays import Array, as_predictions
from calibayes.posthoc import PosthocWarning, TemperatureScaling
from calibayes.posthoc.temperature import HIGHEST, LOWEST
from calibayes.randomness import generator_for
from calibayes.wording import joined, percent

__all__ = ["TemperatureEffect", "Verdict", "compared", "temperature_effect", "verdict"]

VerdictKind = Literal[
    "over-confident", "under-confident", "mixed", "miscalibrated", "nearly calibrated", "calibrated", "unclear"
]

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

    @property
    def helps(self) -> bool:
        """True if it removes a fifth of the calibration error or more, and lowers the ECE of examples it was not fitted on."""
        return self.share >= 0.2 and self.ece_after < self.ece_before


def temperature_effect(
    probs: Array,
    targets: Array,
    *,
    weights: Array | None = None,
    logits: Array | None = None,
    bins: int = DEFAULT_BINS,
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

    One test decides: "calibrated" is rejected where ``kce_p_value`` is at most 1 minus the level of the intervals. If it is
    rejected, the interval of mean confidence minus accuracy tells over- from underconfident, unless that of the ECE lies above
    it: then there is more to it than the mean. If it is not, the interval of the
    ECE tells a small calibration error from too few examples. Class by class is another question: the interval of the
    classwise ECE answers it, in a sentence of its own. See `calibayes.metrics.agreement`.

    Args:
        scores: of `evaluate`, with intervals.
        effect: what temperature scaling would do.
    """
    found = _rejected(scores, effect) if rejects(scores.kce_p_value, scores.level or 0.95) else _not_rejected(scores)
    return replace(found, text=found.text + _class_by_class(scores, found.kind))


def _not_rejected(scores: Scores) -> Verdict:
    error, p = scores.intervals["ece"], _p_value(scores)
    says = f"it says {percent(scores.confidence)} and is right {percent(scores.accuracy)}"
    if math.isnan(error.high):
        return Verdict("unclear", f"Too few examples to tell: {says}, and its calibration error (ECE) may be anything.")
    at_most = f"its calibration error (ECE) is at most {_share(error.high)}"
    if error.high > _WIDE:
        return Verdict(
            "unclear",
            f"Too few examples to tell: {says}. That is no sign of miscalibration ({p}), but its calibration error (ECE) may "
            f"be up to {_share(error.high)}.",
        )
    found = "Calibrated" if error.high <= _NEGLIGIBLE else "No sign of miscalibration"
    return Verdict("calibrated", f"{found}: {says} ({p}); {at_most}.")


def _rejected(scores: Scores, effect: TemperatureEffect | None) -> Verdict:
    says, right, p = percent(scores.confidence), percent(scores.accuracy), _p_value(scores)
    gap, error = scores.intervals["overconfidence"], scores.intervals["ece"]
    if error.high <= _NEGLIGIBLE:
        way = "over" if scores.overconfidence > 0 else "under"
        some = f"It is slightly {way}confident" if excludes_zero(gap) else "It is slightly miscalibrated"
        return Verdict(
            "nearly calibrated",
            f"Nearly calibrated: it says {says} and is right {right}. {some} ({p}), but its calibration error (ECE) is at most "
            f"{_share(error.high)}.",
        )
    mixed = excludes_zero(error) and (not excludes_zero(gap) or error.low > max(map(abs, gap)))
    if excludes_zero(gap) and not mixed:
        kind: VerdictKind = "over-confident" if gap.low > 0 else "under-confident"
        low, high = (f"{100 * end:.2g}" if end < 0.1 else f"{100 * end:.0f}" for end in sorted(map(abs, gap)))
        doubt = ""
        if not scores.pairs and scores.intervals["accuracy"].high < 1 / scores.classes:
            doubt = " That is worse than guessing: do the labels belong to these rows?"
        return Verdict(
            kind,
            f"{kind.replace('-', '').capitalize()}: it says {says}, it is right {right} (a gap of {low} to {high} "
            f"points, {p}){_remedy(effect)}.{doubt}",
        )
    # An ECE that is no larger than the gap has gaps of one sign only: nothing is mixed.
    if mixed and scores.ece > abs(scores.overconfidence) + _EQUAL:
        return Verdict(
            "mixed",
            f"Miscalibrated ({p}): on average it says {says} and is right {right}, but it is overconfident at some confidences "
            f"and underconfident at others (ECE {_share(error.low)} to {_share(error.high)}){_remedy(effect)}.",
        )
    return Verdict(
        "miscalibrated",
        f"Miscalibrated ({p}), but it takes more examples to say in which way: it says {says} and is right {right}, and its "
        f"calibration error (ECE) is at most {_share(error.high)}.",
    )


def _class_by_class(scores: Scores, kind: VerdictKind) -> str:
    """A sentence about the probabilities of single classes, where they are known to be off; with a space before it."""
    ends = scores.intervals.get("ece_classwise")
    if ends is None or not excludes_zero(ends):
        return ""
    off = f"(classwise ECE {_share(ends.low)} to {_share(ends.high)})"
    if kind in ("calibrated", "unclear"):
        return f" But the probabilities of single classes are miscalibrated {off}."
    return f" The probabilities of single classes are miscalibrated too {off}."


def _p_value(scores: Scores) -> str:
    value = scores.kce_p_value
    return "p ≤ 0.001" if value <= SMALLEST else f"p = {value:.3f}"


def _share(value: float) -> str:
    """A small share in per cent, with two digits."""
    return f"{100 * value:.2g} %" if value < 0.995 else "100 %"


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
    if effect.value >= HIGHEST or named.endswith(" of 1") or not effect.helps:
        return "; a temperature would not fix it"
    return f"; {named} would fix {'most' if effect.share >= 0.6 else 'part'} of it"


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
