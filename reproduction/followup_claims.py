"""The follow-up's claims, and what a sceptic asks, judged by our numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reproduction.claim_verdicts import SLIGHT, PaperClaim, judged_claim
from reproduction.experiment_results import BySeed, PartResults, SeedDifference, between
from reproduction.followup_scores import COVERAGES, KNOWN_SOURCE, NEW_SOURCE

__all__ = ["followup_claims"]

Parts = Mapping[str, PartResults]
Pair = tuple[str, str]
_SCHEMES = ("FNN", "CFNN", "BNN", "CBNN")
_PROPOSED = "CBNN-OCM"
_SOURCES = (KNOWN_SOURCE, NEW_SOURCE)
_DETECTED = ("max-prob", "detection_probability")  # the follow-up's: how far confidences tell outsiders from insiders
_COVERAGE = f"{COVERAGES[1]:g}"  # at which the selector is judged
_NEEDED = (*_SCHEMES, *(f"{scheme}-OCM" for scheme in _SCHEMES))


def followup_claims(results: Mapping[str, Sequence[PartResults]]) -> list[PaperClaim]:
    """Every claim, for each data set by its title whose schemes all have results."""
    judged = []
    for title, listed in results.items():
        parts = {part.name: part for part in listed if part.results}
        if all(name in parts for name in _NEEDED):
            judged += _of_regularization(title, parts) + _of_confidence_minimization(title, parts)
            judged += _of_selection(title, parts) + _of_shift(title, parts) + _of_baselines(title, parts)
    return judged


def _of_regularization(title: str, parts: Parts) -> list[PaperClaim]:
    pairs = (("FNN", "CFNN"), ("BNN", "CBNN"))
    bayesian = (("FNN", "BNN"), ("CFNN", "CBNN"))
    right = [
        between(f"accuracy of {b} minus that of {a}", _of(parts, b, "test", "accuracy"), _of(parts, a, "test", "accuracy"))
        for a, b in pairs
    ]
    return [
        judged_claim(f"{title}: The calibration term lowers the ECE", _less(parts, pairs, "test", "ece"), "without minus with"),
        judged_claim("… and the accuracy only marginally", right, "the change, plus 2 points", at_least=-SLIGHT),
        judged_claim(f"{title}: Bayesian learning lowers the ECE", _less(parts, bayesian, "test", "ece"), "FNN minus BNN"),
    ]


def _of_confidence_minimization(title: str, parts: Parts) -> list[PaperClaim]:
    judged = []
    pairs = tuple((f"{scheme}-OCM", scheme) for scheme in _SCHEMES)
    for source in _SOURCES:
        asked = "" if source == KNOWN_SOURCE else "(Asked by us) "
        text = f"{title}: {asked}OCM makes outsiders of {source} easier to detect"
        judged.append(judged_claim(text, _less(parts, pairs, "outsiders", source, *_DETECTED), "with OCM minus without"))
    worse = _less(parts, pairs, "test", "ece")
    judged.append(judged_claim(f"{title}: OCM makes the ECE of insiders larger", worse, "with OCM minus without"))
    right = [
        between(f"accuracy of {a} minus that of {b}", _of(parts, a, "test", "accuracy"), _of(parts, b, "test", "accuracy"))
        for a, b in pairs
    ]
    text = f"{title}: (Asked by us) OCM lowers the accuracy only marginally"
    return [*judged, judged_claim(text, right, "the change, plus 2 points", at_least=-SLIGHT)]


def _of_selection(title: str, parts: Parts) -> list[PaperClaim]:
    """The selector on top of CBNN-OCM, at the coverage in the middle, against no selection, confidence and other schemes."""
    proposed = parts[_PROPOSED]
    selected = ("selective", _COVERAGE, "selector")
    by_confidence = ("selective", _COVERAGE, "confidence")
    share = f"{100 * float(_COVERAGE):g} %"
    mine = proposed.final_by_seed(*selected, "ece")
    others = [name for name in _NEEDED if name != _PROPOSED]
    best = [
        between(f"{name} minus SCBNN-OCM", _of(parts, name, "test", "ece"), mine, comparisons=len(others)) for name in others
    ]
    passing = [
        between(
            f"{source}: answered by confidence minus by the selector",
            proposed.final_by_seed(*by_confidence, "outsiders", source, "passed"),
            proposed.final_by_seed(*selected, "outsiders", source, "passed"),
            comparisons=len(_SOURCES),
        )
        for source in _SOURCES
    ]
    detected = [
        between(
            source,
            proposed.final_by_seed(*selected, "outsiders", source, "detection_probability"),
            proposed.final_by_seed("outsiders", source, *_DETECTED),
            comparisons=len(_SOURCES),
        )
        for source in _SOURCES
    ]
    whole, alone = proposed.final_by_seed("test", "ece"), proposed.final_by_seed(*by_confidence, "ece")
    return [
        judged_claim(
            f"{title}: Answering {share}, chosen by the selector, lowers the ECE (SCBNN-OCM)",
            [between("ECE of CBNN-OCM minus that of SCBNN-OCM", whole, mine)],
            "all answers minus the selected",
        ),
        judged_claim(f"{title}: … and makes outsiders easier to detect", detected, "among the selected minus among all"),
        judged_claim(f"{title}: SCBNN-OCM has the lowest ECE", best, "others, which answer everything, minus SCBNN-OCM"),
        judged_claim(
            f"{title}: (Asked by us) The selector has a lower ECE than the most confident {share}",
            [between("ECE", alone, mine)],
            "by confidence minus by the selector",
        ),
        judged_claim(f"{title}: (Asked by us) … and answers fewer outsiders", passing, "by confidence minus by the selector"),
    ]


def _of_shift(title: str, parts: Parts) -> list[PaperClaim]:
    """As trained, and with the temperature of unshifted validation examples, which a sceptic would give all of them."""
    shifts = list(parts[_PROPOSED].results[0]["final"]["shift"])
    judged = []
    for way, text in (
        ("test", f"{title}: (Asked by us) Under a mild shift, OCM makes the ECE at most 2 points larger"),
        ("scaled", f"{title}: (Asked by us) … with the temperature of unshifted inputs for both, too"),
    ):
        gaps = [
            between(
                f"{name}: ECE of {scheme} minus that of {scheme}-OCM",
                _of(parts, scheme, "shift", name, way, "ece"),
                _of(parts, f"{scheme}-OCM", "shift", name, way, "ece"),
                comparisons=2 * len(shifts),
            )
            for name in shifts
            for scheme in ("FNN", "CBNN")
        ]
        judged.append(judged_claim(text, gaps, "without OCM minus with it, plus 2 points", at_least=-SLIGHT))
    return judged


def _of_baselines(title: str, parts: Parts) -> list[PaperClaim]:
    """CBNN-OCM, which trains on outsiders, against baselines that see none: each with a temperature, by its energy."""
    judged = []
    for name, shown in (
        ("FNN", "an FNN"),
        ("deep ensemble", "a deep ensemble"),
        ("last-layer Laplace", "a last-layer Laplace"),
    ):
        if name not in parts:
            continue
        count = 2 + len(_SOURCES)
        gaps = [
            between("ECE", _of(parts, name, "scaled", "ece"), _of(parts, _PROPOSED, "test", "ece"), comparisons=count),
            between(
                "NLL (hundredths)", _of(parts, name, "scaled", "nll"), _of(parts, _PROPOSED, "test", "nll"), comparisons=count
            ),
        ]
        gaps += [
            between(
                f"AUROC, {source}",
                _of(parts, _PROPOSED, "outsiders", source, "max-prob", "auroc"),
                _of(parts, name, "outsiders", source, "energy", "auroc"),
                comparisons=count,
            )
            for source in _SOURCES
        ]
        text = f"{title}: (Asked by us) CBNN-OCM beats {shown} with temperature and energy score"
        judged.append(judged_claim(text, gaps, "its lead in ECE, NLL and AUROC"))
    return judged


def _less(parts: Parts, pairs: Sequence[Pair], *path: str) -> list[SeedDifference]:
    """The first of each pair minus the second."""
    return [between(f"{a} minus {b}", _of(parts, a, *path), _of(parts, b, *path), comparisons=len(pairs)) for a, b in pairs]


def _of(parts: Parts, name: str, *path: str) -> BySeed:
    return parts[name].final_by_seed(*path)
