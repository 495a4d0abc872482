"""The paper's claims beside our numbers: which of them hold here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from calibayes.recipes.reproduce.found import Floats, FoundPart

__all__ = ["Claim", "Gap", "claims"]

Holds = Literal["holds", "holds in part", "does not hold here", "not known"]
_LEVEL = 0.95
_SLIGHT = 0.02  # of accuracy: what "only marginally" may mean


@dataclass(frozen=True)
class Gap:
    """How much larger a score is for some trainings than for others with the same seeds, with a 95 % interval over seeds."""

    name: str
    value: float
    low: float
    high: float
    seeds: int

    def __str__(self) -> str:
        ends = f" ({100 * self.low:.1f} to {100 * self.high:.1f})" if self.seeds > 1 else ""
        return f"{self.name}: {100 * self.value:+.1f}{ends}"


@dataclass(frozen=True)
class Claim:
    """A claim of the paper and what we found.

    Attributes:
        text: what the paper says.
        gaps: our numbers, in shares; shown in points.
        verdict: by the rule ``rule``.
        rule: when it holds, and when in part.
    """

    text: str
    gaps: tuple[Gap, ...]
    verdict: Holds
    rule: str

    def to_dict(self) -> dict[str, Any]:
        """As numbers and texts."""
        return {"claim": self.text, "verdict": self.verdict, "rule": self.rule, "gaps": [vars(gap) for gap in self.gaps]}


Parts = Mapping[str, FoundPart]


def claims(newsgroups: Sequence[FoundPart], cifar10: Sequence[FoundPart]) -> list[Claim]:
    """Every claim of the paper's experiments for which there are results."""
    texts = {part.name: part for part in newsgroups if part.results}
    images = {part.name: part for part in cifar10 if part.results}
    return [*_of_epochs(texts), *_of_lambda(texts), *_of_images(images)]


def _of_epochs(parts: Parts) -> list[Claim]:
    hard, soft = parts.get("CA-FNN, hard scores"), parts.get("CA-FNN, fully differentiable")
    if hard is None or soft is None:
        return []
    errors = (_gap("ECE, last epoch", hard, soft), _gap("ECE, mean over epochs", hard, soft, over_epochs=True))
    right = _gap("accuracy", soft, hard, score="accuracy")
    return [
        Claim(
            "Fully differentiable scores give a lower ECE than hard scores (λ = 10)",
            errors,
            _all_or_some([gap.low > 0 for gap in errors], any(gap.value > 0 for gap in errors)),
            "hard minus fully differentiable is clearly above 0 by both; in part: by one, or not clearly",
        ),
        Claim(
            "… without affecting the accuracy",
            (right,),
            "holds" if right.low > -_SLIGHT else "holds in part" if right.high > 0 else "does not hold here",
            "fully differentiable minus hard is surely above -2 points; in part: 0 is possible",
        ),
    ]


def _of_lambda(parts: Parts) -> list[Claim]:
    found: list[Claim] = []
    if "FNN" in parts and "BNN" in parts:
        gaps = (
            _gap("ECE", parts["FNN"], parts["BNN"]),
            _gap("ECE at equal accuracy", parts["FNN"], parts["BNN"], at_equal=True),
        )
        found.append(
            Claim(
                "A BNN has a lower ECE than an FNN",
                gaps,
                _all_or_some([gap.low > 0 for gap in gaps if not math.isnan(gap.value)], any(gap.value > 0 for gap in gaps)),
                "FNN minus BNN is clearly above 0, also where both are equally often right; in part: one of the two",
            )
        )
    for scheme in ("FNN", "BNN"):
        lams = _lams(parts, f"CA-{scheme}")
        if scheme not in parts or not lams:
            continue
        plain = parts[scheme]
        errors = tuple(_gap(f"ECE at λ = {lam:g}", plain, part) for lam, part in lams.items())
        losses = tuple(_gap(f"accuracy at λ = {lam:g}", plain, part, score="accuracy") for lam, part in lams.items())
        good = [error.low > 0 and loss.value < _SLIGHT for error, loss in zip(errors, losses, strict=True)]
        found.append(
            Claim(
                f"A larger λ lowers the ECE of CA-{scheme}, and the accuracy only marginally",
                (*errors, *losses),
                "holds" if good[-1] and _rises(errors) else "holds in part" if any(good) else "does not hold here",
                "plain minus calibration-aware: the ECE falls with λ and clearly at the largest, at less than 2 points of "
                "accuracy; in part: clearly at some λ",
            )
        )
    ours, theirs = _lams(parts, "CA-FNN"), _lams(parts, "CA-BNN")
    across = tuple(_gap(f"ECE at λ = {lam:g}", ours[lam], theirs[lam]) for lam in ours if lam in theirs)
    if across:
        found.append(
            Claim(
                "CA-BNN has a lower ECE than CA-FNN, by more than 2 points",
                across,
                _all_or_some([gap.low > 0 and gap.value > 0.02 for gap in across], any(gap.low > 0 for gap in across)),
                "CA-FNN minus CA-BNN is clearly above 0 and more than 2 points at every λ; in part: at some, or by less",
            )
        )
        best = min(theirs.values(), key=lambda part: float(part.final("validation", "ece").mean()))
        found.append(_temperature(parts["FNN"], best))
    return found


def _temperature(plain: FoundPart, best: FoundPart) -> Claim:
    gap = _between("ECE", plain.final("scaled", "ece"), best.final("test", "ece"), plain, best)
    return Claim(
        f"(Asked by us) {best.name} is better calibrated than an FNN with temperature scaling",
        (gap,),
        "holds" if gap.low > 0 else "holds in part" if gap.value > 0 else "does not hold here",
        "FNN with temperature minus the CA-BNN that is best on validation examples is clearly above 0; in part: not clearly",
    )


def _of_images(parts: Parts) -> list[Claim]:
    found: list[Claim] = []
    for network in dict.fromkeys(name.partition(":")[0] for name in parts):
        own = {scheme: parts.get(f"{network}: {scheme}") for scheme in ("FNN", "BNN", "CA-FNN", "CA-BNN")}
        there = {scheme: part for scheme, part in own.items() if part is not None}
        if len(there) < len(own):
            continue
        for text, pairs in (
            ("Calibration-aware training lowers the ECE", (("FNN", "CA-FNN"), ("BNN", "CA-BNN"))),
            ("Bayesian learning lowers the ECE", (("FNN", "BNN"), ("CA-FNN", "CA-BNN"))),
            ("CA-BNN has the lowest ECE", (("FNN", "CA-BNN"), ("BNN", "CA-BNN"), ("CA-FNN", "CA-BNN"))),
        ):
            gaps = tuple(_gap(f"{a} minus {b}", there[a], there[b]) for a, b in pairs)
            found.append(
                Claim(
                    f"CIFAR-10, {network}: {text}",
                    gaps,
                    _all_or_some([gap.low > 0 for gap in gaps], any(gap.value > 0 for gap in gaps)),
                    "all differences are clearly above 0; in part: some, or not clearly",
                )
            )
    return found


def _lams(parts: Parts, scheme: str) -> dict[float, FoundPart]:
    """The parts of a scheme by λ."""
    found = {part.settings[0].lam: part for name, part in parts.items() if name.startswith(f"{scheme}, λ")}
    return dict(sorted(found.items()))


def _rises(gaps: Sequence[Gap]) -> bool:
    return all(later.value >= earlier.value for earlier, later in pairwise(gaps))


def _all_or_some(clear: Sequence[bool], somehow: bool) -> Holds:
    if all(clear):
        return "holds"
    return "holds in part" if any(clear) or somehow else "does not hold here"


def _gap(
    name: str, first: FoundPart, second: FoundPart, *, score: str = "ece", over_epochs: bool = False, at_equal: bool = False
) -> Gap:
    """First minus second, paired by seed."""
    if over_epochs:
        a, b = (part.over_epochs("test", score)[1].mean(-1) for part in (first, second))
    elif at_equal:
        a, b = _at_equal_accuracy(first, second)
    else:
        a, b = (part.final("test", score) for part in (first, second))
    return _between(name, a, b, first, second)


def _between(name: str, a: Floats, b: Floats, first: FoundPart, second: FoundPart) -> Gap:
    """The mean difference over the seeds that both have, with Student's interval."""
    from scipy.stats import t

    ours, theirs = ({each.seed: v for each, v in zip(p.settings, x, strict=True)} for p, x in ((first, a), (second, b)))
    apart = np.array([ours[seed] - theirs[seed] for seed in ours if seed in theirs])
    apart = apart[np.isfinite(apart)]
    if not len(apart):
        return Gap(name, math.nan, math.nan, math.nan, 0)
    value = float(apart.mean())
    if len(apart) == 1:
        return Gap(name, value, math.nan, math.nan, 1)
    reach = float(t.ppf(0.5 + _LEVEL / 2, len(apart) - 1) * apart.std(ddof=1) / math.sqrt(len(apart)))
    return Gap(name, value, value - reach, value + reach, len(apart))


def _at_equal_accuracy(first: FoundPart, second: FoundPart) -> tuple[Floats, Floats]:
    """Each seed's ECE of both where they are equally often right: at the highest accuracy that both have reached.

    For each, the epoch of the first one that reached that accuracy counts.
    """
    right = [part.over_epochs("test", "accuracy")[1] for part in (first, second)]
    error = [part.over_epochs("test", "ece")[1] for part in (first, second)]
    count = min(map(len, right))
    found = np.full((2, count), math.nan)
    for seed in range(count):
        level = min(right[0][seed].max(), right[1][seed].max())
        for side in range(2):
            found[side, seed] = error[side][seed][int(np.argmax(right[side][seed] >= level))]
    short = [np.full(len(part.results), math.nan) for part in (first, second)]
    for side in range(2):
        short[side][:count] = found[side]
    return short[0], short[1]
