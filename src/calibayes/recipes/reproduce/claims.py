"""The paper's claims beside our numbers: which of them hold here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from calibayes.recipes.reproduce.found import FoundPart
from calibayes.recipes.reproduce.gaps import BySeed, Gap, at_best_epoch, at_equal_accuracy, between, settled

__all__ = ["Claim", "claims"]

Holds = Literal["holds", "holds in part", "does not hold here", "cannot be told"]
_SLIGHT = 0.02  # of accuracy: what "only marginally" may mean
_BROKEN = 0.05  # of validation accuracy: what training has broken down without
_ECE, _RIGHT = ("test", "ece"), ("test", "accuracy")


@dataclass(frozen=True)
class Claim:
    """A claim of the paper and what we found.

    Attributes:
        text: what the paper says.
        gaps: our numbers, in shares; shown in points.
        verdict: by the rule ``rule``.
        rule: what is above zero if it holds.
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
    found = [*_of_epochs(texts), *_of_hard_scores(texts), *_of_bnn(texts)]
    for scheme in ("FNN", "BNN"):
        found += _of_lambda(texts, scheme)
    return [*found, *_of_both(texts), *_of_temperature(texts), *_of_images(images)]


def _of_epochs(parts: Parts) -> list[Claim]:
    names = ("FNN", "CA-FNN, hard scores", "CA-FNN, fully differentiable")
    if not all(name in parts for name in names):
        return []
    plain, hard, soft = (settled(parts[name], *_ECE) for name in names)
    right = [settled(parts[name], *_RIGHT) for name in names]
    return [
        _judged(
            "Fully differentiable scores give a lower ECE than hard scores (λ = 10)",
            [between("ECE", hard, soft)],
            "hard minus fully differentiable",
        ),
        _judged(
            "… without affecting the accuracy",
            [between("accuracy", right[2], right[1])],
            "fully differentiable minus hard, plus 2 points",
            at_least=-_SLIGHT,
        ),
        _judged(
            "(Asked by us) At λ = 10 the term lowers the ECE at all",
            [between("hard", plain, hard, comparisons=2), between("fully differentiable", plain, soft, comparisons=2)],
            "FNN minus CA-FNN",
        ),
    ]


def _of_hard_scores(parts: Parts) -> list[Claim]:
    """Fig. 1's comparison where the term is strong enough to matter."""
    both = {lam: part for lam, part in _lams(parts, "CA-FNN").items() if f"{part.name}: hard scores" in parts}
    if not both:
        return []
    gaps = [
        between(
            f"ECE at λ = {lam:g}",
            settled(parts[f"{soft.name}: hard scores"], *_ECE),
            settled(soft, *_ECE),
            comparisons=len(both),
        )
        for lam, soft in both.items()
    ]
    return [
        _judged(
            "(Asked by us) Fully differentiable scores give a lower ECE at a larger λ", gaps, "hard minus fully differentiable"
        )
    ]


def _of_bnn(parts: Parts) -> list[Claim]:
    if "FNN" not in parts or "BNN" not in parts:
        return []
    pair = parts["FNN"], parts["BNN"]
    return [
        _judged(
            "A BNN has a lower ECE than an FNN",
            [
                between("ECE", *(settled(part, *_ECE) for part in pair), comparisons=3),
                between("at the best epoch by validation NLL", *(at_best_epoch(part, *_ECE) for part in pair), comparisons=3),
                between("at equal accuracy", *at_equal_accuracy(*pair, *_ECE), comparisons=3),
            ],
            "FNN minus BNN",
        )
    ]


def _of_lambda(parts: Parts, scheme: str) -> list[Claim]:
    """Over the weights that training survives: beyond them, an ECE says nothing about calibration."""
    lams = _lams(parts, f"CA-{scheme}")
    if scheme not in parts or len(lams) < 2:
        return []
    right = {lam: _mean(settled(part, "validation", "accuracy")) for lam, part in lams.items()}
    enough = _mean(settled(parts[scheme], "validation", "accuracy")) - _BROKEN
    broken = [lam for lam in lams if right[lam] < enough]
    sound = {lam: part for lam, part in lams.items() if lam not in broken}
    told = f" (training breaks down at λ = {', '.join(f'{lam:g}' for lam in broken)})" if broken else ""
    if len(sound) < 2:
        return []
    errors = {lam: settled(part, *_ECE) for lam, part in sound.items()}
    most = max(sound)
    gaps = [
        between("ECE less per tenfold λ", _falls(errors), comparisons=2),
        between(f"ECE less at λ = {most:g} than at 0", settled(parts[scheme], *_ECE), errors[most], comparisons=2),
    ]
    losses = [
        between(f"accuracy at λ = {lam:g} minus that at 0", settled(part, *_RIGHT), settled(parts[scheme], *_RIGHT))
        for lam, part in sound.items()
    ]
    lower = _judged(f"A larger λ lowers the ECE of CA-{scheme}{told}", gaps, "the fall with log λ, and from 0 to the largest λ")
    slight = _judged("… and the accuracy only marginally", losses, "the change of accuracy, plus 2 points", at_least=-_SLIGHT)
    equal = between(f"ECE less at λ = {most:g} than at 0", *at_equal_accuracy(parts[scheme], sound[most], *_ECE))
    return [
        lower,
        slight,
        _judged("(Asked by us) … and the ECE at equal accuracy, too", [equal], f"{scheme} minus CA-{scheme}"),
    ]


def _of_both(parts: Parts) -> list[Claim]:
    ours, theirs = _lams(parts, "CA-FNN"), _lams(parts, "CA-BNN")
    both = [lam for lam in ours if lam in theirs]
    gaps = [
        between(f"ECE at λ = {lam:g}", settled(ours[lam], *_ECE), settled(theirs[lam], *_ECE), comparisons=len(both))
        for lam in both
    ]
    if not gaps:
        return []
    verdict: Holds = "cannot be told"
    if any(gap.low > 0.02 for gap in gaps):
        verdict = "holds"
    elif any(gap.low > 0 for gap in gaps):
        verdict = "holds in part"
    elif all(gap.high < 0.02 for gap in gaps):
        verdict = "does not hold here"
    text = "CA-BNN can lower the ECE below CA-FNN's by more than 2 points"
    rule = "CA-FNN minus CA-BNN is clearly above 2 points at some λ; in part: above 0"
    equal = [
        between(f"ECE at λ = {lam:g}", *at_equal_accuracy(ours[lam], theirs[lam], *_ECE), comparisons=len(both)) for lam in both
    ]
    return [
        Claim(text, tuple(gaps), verdict, rule),
        _judged("(Asked by us) … at equal accuracy it is lower, too", equal, "CA-FNN minus CA-BNN"),
    ]


def _of_temperature(parts: Parts) -> list[Claim]:
    trained = _lams(parts, "CA-BNN")
    started = [part for name, part in parts.items() if name.startswith("CA-BNN, λ") and ":" in name]
    found = []
    for ours in ([*trained.values()], started):
        if "FNN" not in parts or not ours:
            continue
        best = min(ours, key=lambda part: _mean(settled(part, "validation", "nll")))
        gaps = [
            between(name, settled(parts["FNN"], "scaled", score), settled(best, "test", score), comparisons=2)
            for name, score in (("ECE", "ece"), ("NLL (hundredths)", "nll"))
        ]
        text = f"(Asked by us) {best.name} (best by validation NLL) beats an FNN with temperature scaling"
        found.append(_judged(text, gaps, "FNN with temperature minus CA-BNN without"))
    return found


def _of_images(parts: Parts) -> list[Claim]:
    found: list[Claim] = []
    schemes = ("FNN", "BNN", "CA-FNN", "CA-BNN")
    for network in dict.fromkeys(name.partition(":")[0] for name in parts):
        names = [f"{network}: {scheme}" for scheme in schemes]
        if not all(name in parts for name in names):
            continue
        errors = {scheme: _last(parts[name]) for scheme, name in zip(schemes, names, strict=True)}
        for text, pairs in (
            ("Calibration-aware training lowers the ECE", (("FNN", "CA-FNN"), ("BNN", "CA-BNN"))),
            ("Bayesian learning lowers the ECE", (("FNN", "BNN"), ("CA-FNN", "CA-BNN"))),
            ("CA-BNN has the lowest ECE", (("FNN", "CA-BNN"), ("BNN", "CA-BNN"), ("CA-FNN", "CA-BNN"))),
        ):
            gaps = [between(f"{a} minus {b}", errors[a], errors[b], comparisons=len(pairs)) for a, b in pairs]
            found.append(_judged(f"CIFAR-10, {network}: {text}", gaps, "all differences"))
    return found


def _judged(text: str, gaps: Sequence[Gap], rule: str, *, at_least: float = 0.0) -> Claim:
    """All clearly above: holds; some: in part; none, and some clearly below: does not; else nobody can tell."""
    above, below = [gap.low > at_least for gap in gaps], [gap.high < at_least for gap in gaps]
    verdict: Holds = "cannot be told"
    if all(above):
        verdict = "holds"
    elif any(above):
        verdict = "holds in part"
    elif any(below):
        verdict = "does not hold here"
    return Claim(text, tuple(gaps), verdict, f"{rule}: clearly above 0")


def _last(part: FoundPart) -> BySeed:
    """The ECE of each trained network: fine-tunings of three epochs have no quarter to average over."""
    return {each.seed: float(value) for each, value in zip(part.settings, part.final("test", "ece"), strict=True)}


def _lams(parts: Parts, scheme: str) -> dict[float, FoundPart]:
    """The parts of a scheme by λ."""
    found = {part.settings[0].lam: part for name, part in parts.items() if name.startswith(f"{scheme}, λ") and ":" not in name}
    return dict(sorted(found.items()))


def _mean(scores: BySeed) -> float:
    return float(np.mean(list(scores.values())))


def _falls(errors: Mapping[float, BySeed]) -> BySeed:
    """How much each seed's error falls when λ grows tenfold: minus the slope of a straight line."""
    seeds = set.intersection(*(set(each) for each in errors.values()))
    tens = [math.log10(lam) for lam in errors]
    return {seed: -float(np.polyfit(tens, [each[seed] for each in errors.values()], 1)[0]) for seed in seeds}
