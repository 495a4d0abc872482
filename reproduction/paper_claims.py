"""The paper's claims, judged by our numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from reproduction.claim_verdicts import SLIGHT, Holds, PaperClaim, judged_claim
from reproduction.experiment_results import (
    BySeed,
    PartResults,
    SeedDifference,
    at_best_epoch,
    at_equal_accuracy,
    between,
    settled,
)

__all__ = ["PaperClaim", "claims"]

_BROKEN = 0.05  # of validation accuracy: a loss by which training counts as broken down
_ECE = ("test", "ece")


Parts = Mapping[str, PartResults]


def claims(newsgroups: Sequence[PartResults], cifar10: Sequence[PartResults]) -> list[PaperClaim]:
    """Every claim of the paper's experiments for which there are results."""
    texts, images = ({part.name: part for part in parts if part.results} for parts in (newsgroups, cifar10))
    judged = [*_of_epochs(texts), *_of_hard_scores(texts), *_of_bnn(texts)]
    judged += [*_of_lambda(texts, "FNN"), *_of_lambda(texts, "BNN")]
    return [*judged, *_of_both(texts), *_of_temperature(texts), *_of_images(images)]


def _of_epochs(parts: Parts) -> list[PaperClaim]:
    names = ("FNN", "CA-FNN, hard scores", "CA-FNN, fully differentiable")
    if not all(name in parts for name in names):
        return []
    plain, hard, soft = (_ece(parts[name]) for name in names)
    _, hard_right, soft_right = (_accuracy(parts[name]) for name in names)
    lower = "Fully differentiable scores give a lower ECE than hard scores (λ = 10)"
    slight = "fully differentiable minus hard, plus 2 points"
    at_all = [between("hard", plain, hard, comparisons=2), between("fully differentiable", plain, soft, comparisons=2)]
    return [
        judged_claim(lower, [between("ECE", hard, soft)], "hard minus fully differentiable"),
        judged_claim(
            "… without affecting the accuracy", [between("accuracy", soft_right, hard_right)], slight, at_least=-SLIGHT
        ),
        judged_claim("(Asked by us) At λ = 10 the term lowers the ECE at all", at_all, "FNN minus CA-FNN"),
    ]


def _of_hard_scores(parts: Parts) -> list[PaperClaim]:
    """Fig. 1's comparison where the term is strong enough to matter."""
    both = {lam: part for lam, part in _lams(parts, "CA-FNN").items() if f"{part.name}: hard scores" in parts}
    hard = {lam: parts[f"{soft.name}: hard scores"] for lam, soft in both.items()}
    text = "(Asked by us) Fully differentiable scores give a lower ECE at a larger λ"
    return [judged_claim(text, _at_each_lam(hard, both), "hard minus fully differentiable")] if both else []


def _of_bnn(parts: Parts) -> list[PaperClaim]:
    if "FNN" not in parts or "BNN" not in parts:
        return []
    pair = parts["FNN"], parts["BNN"]
    best = (at_best_epoch(part, *_ECE) for part in pair)
    gaps = [
        between("ECE", *map(_ece, pair), comparisons=3),
        between("at the best epoch by validation NLL", *best, comparisons=3),
        between("at equal accuracy", *at_equal_accuracy(*pair, *_ECE), comparisons=3),
    ]
    return [judged_claim("A BNN has a lower ECE than an FNN", gaps, "FNN minus BNN")]


def _of_lambda(parts: Parts, scheme: str) -> list[PaperClaim]:
    """Claims over the values of λ at which training works: beyond them, an ECE says nothing about calibration."""
    lams = _lams(parts, f"CA-{scheme}")
    if scheme not in parts or len(lams) < 2:
        return []
    plain = parts[scheme]
    enough = _mean(settled(plain, "validation", "accuracy")) - _BROKEN
    broken = [lam for lam, part in lams.items() if _mean(settled(part, "validation", "accuracy")) < enough]
    sound = {lam: part for lam, part in lams.items() if lam not in broken}
    note = f" (training breaks down at λ = {', '.join(f'{lam:g}' for lam in broken)})" if broken else ""
    if len(sound) < 2:
        return []
    most = max(sound)
    at_most = f"ECE less at λ = {most:g} than at 0"
    gaps = [
        between("ECE less per tenfold λ", _falls({lam: _ece(part) for lam, part in sound.items()}), comparisons=2),
        between(at_most, _ece(plain), _ece(sound[most]), comparisons=2),
    ]
    losses = [
        between(f"accuracy at λ = {lam:g} minus that at 0", _accuracy(part), _accuracy(plain)) for lam, part in sound.items()
    ]
    equal = between(at_most, *at_equal_accuracy(plain, sound[most], *_ECE))
    rule, slight = "the fall with log λ, and from 0 to the largest λ", "the change of accuracy, plus 2 points"
    return [
        judged_claim(f"A larger λ lowers the ECE of CA-{scheme}{note}", gaps, rule),
        judged_claim("… and the accuracy only marginally", losses, slight, at_least=-SLIGHT),
        judged_claim("(Asked by us) … and the ECE at equal accuracy, too", [equal], f"{scheme} minus CA-{scheme}"),
    ]


def _of_both(parts: Parts) -> list[PaperClaim]:
    ours, theirs = _lams(parts, "CA-FNN"), _lams(parts, "CA-BNN")
    gaps = _at_each_lam(ours, theirs)
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
    equal = _at_each_lam(ours, theirs, equal_accuracy=True)
    return [
        PaperClaim(text, tuple(gaps), verdict, rule),
        judged_claim("(Asked by us) … at equal accuracy it is lower, too", equal, "CA-FNN minus CA-BNN"),
    ]


def _of_temperature(parts: Parts) -> list[PaperClaim]:
    started = [part for name, part in parts.items() if name.startswith("CA-BNN, λ") and ":" in name]
    judged = []
    for ours in (list(_lams(parts, "CA-BNN").values()), started):
        if "FNN" not in parts or not ours:
            continue
        best = min(ours, key=lambda part: _mean(settled(part, "validation", "nll")))
        gaps = [
            between(name, settled(parts["FNN"], "scaled", score), settled(best, "test", score), comparisons=2)
            for name, score in (("ECE", "ece"), ("NLL (hundredths)", "nll"))
        ]
        text = f"(Asked by us) {best.name} (best by validation NLL) beats an FNN with temperature scaling"
        judged.append(judged_claim(text, gaps, "FNN with temperature minus CA-BNN without"))
    return judged


def _of_images(parts: Parts) -> list[PaperClaim]:
    judged: list[PaperClaim] = []
    schemes = ("FNN", "BNN", "CA-FNN", "CA-BNN")
    for network in dict.fromkeys(name.partition(":")[0] for name in parts):
        if not all(f"{network}: {scheme}" in parts for scheme in schemes):
            continue
        # Of each trained network: fine-tunings of three epochs have no quarter to average over.
        errors = {scheme: parts[f"{network}: {scheme}"].final_by_seed(*_ECE) for scheme in schemes}
        for text, pairs in (
            ("Calibration-aware training lowers the ECE", (("FNN", "CA-FNN"), ("BNN", "CA-BNN"))),
            ("Bayesian learning lowers the ECE", (("FNN", "BNN"), ("CA-FNN", "CA-BNN"))),
            ("CA-BNN has the lowest ECE", (("FNN", "CA-BNN"), ("BNN", "CA-BNN"), ("CA-FNN", "CA-BNN"))),
        ):
            gaps = [between(f"{a} minus {b}", errors[a], errors[b], comparisons=len(pairs)) for a, b in pairs]
            judged.append(judged_claim(f"CIFAR-10, {network}: {text}", gaps, "all differences"))
    return judged


def _at_each_lam(
    first: Mapping[float, PartResults], second: Mapping[float, PartResults], *, equal_accuracy: bool = False
) -> list[SeedDifference]:
    """The difference in ECE at every λ that both have."""
    both = {f"ECE at λ = {lam:g}": (first[lam], second[lam]) for lam in first if lam in second}
    errors = {
        name: at_equal_accuracy(*pair, *_ECE) if equal_accuracy else (_ece(pair[0]), _ece(pair[1]))
        for name, pair in both.items()
    }
    return [between(name, *pair, comparisons=len(both)) for name, pair in errors.items()]


def _ece(part: PartResults) -> BySeed:
    return settled(part, *_ECE)


def _accuracy(part: PartResults) -> BySeed:
    return settled(part, "test", "accuracy")


def _lams(parts: Parts, scheme: str) -> dict[float, PartResults]:
    """The parts of a scheme by λ."""
    by_lam = {part.settings[0].lam: part for name, part in parts.items() if name.startswith(f"{scheme}, λ") and ":" not in name}
    return dict(sorted(by_lam.items()))


def _mean(scores: BySeed) -> float:
    return float(np.mean(list(scores.values())))


def _falls(errors: Mapping[float, BySeed]) -> BySeed:
    """The fall of each seed's error per tenfold λ: minus the slope of a straight line."""
    seeds = set.intersection(*(set(each) for each in errors.values()))
    tens = [math.log10(lam) for lam in errors]
    return {seed: -float(np.polyfit(tens, [each[seed] for each in errors.values()], 1)[0]) for seed in seeds}
