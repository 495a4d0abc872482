"""The follow-up's claims are judged by the numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.reproduction.made_up import NOISE

from reproduction.experiment_results import PartResults
from reproduction.experiments import experiment
from reproduction.figures import draw
from reproduction.followup_claims import followup_claims
from reproduction.followup_scores import COVERAGES, KNOWN_SOURCE, NEW_SOURCE
from reproduction.printed_tables import table_text

ASKED = experiment("cifar10-followup")
SCORES = ("max-prob", "entropy", "epistemic", "energy", "distance")
USUAL = {
    "ece": 0.1,
    "accuracy": 0.9,
    "nll": 0.4,
    "known": 0.8,
    "new": 0.7,
    "energy": 0.85,
    "scaled": 0.1,
    "shift": 0.12,
    "shift scaled": 0.05,
}
USUAL |= {"selected": 0.1, "confident": 0.1, "passed": 0.3, "told": 0.8}


def final(noise: float, **values: float) -> dict[str, Any]:
    """The scores of one trained network."""
    v = {name: value + noise for name, value in (USUAL | values).items()}
    plain = {"ece": v["ece"], "accuracy": v["accuracy"], "nll": v["nll"], "brier": 0.2}

    def told(level: float) -> dict[str, Any]:
        by_score = {name: {"auroc": level, "fpr95": 0.5, "detection_probability": level} for name in SCORES}
        return {**by_score, "energy": {"auroc": v["energy"], "fpr95": 0.5, "detection_probability": v["energy"]}}

    def left(ece: float, passed: float) -> dict[str, Any]:
        outside = {name: {"passed": passed, "detection_probability": v["told"]} for name in (KNOWN_SOURCE, NEW_SOURCE)}
        return {"coverage": 0.7, "accuracy": 0.95, "ece": ece, "outsiders": outside}

    chosen = {"selector": left(v["selected"], v["passed"]), "confidence": left(v["confident"], 0.3 + noise)}
    return {
        "test": plain,
        "validation": plain,
        "scaled": {**plain, "ece": v["scaled"]},
        "temperature": 1.0,
        "outsiders": {NEW_SOURCE: told(v["new"]), KNOWN_SOURCE: told(v["known"])},
        "selective": {f"{coverage:g}": chosen for coverage in COVERAGES},
        "shift": {"noise": {"test": {**plain, "ece": v["shift"]}, "scaled": {**plain, "ece": v["shift scaled"]}}},
    }


def results(**changes: dict[str, float]) -> list[PartResults]:
    """Every part with the usual scores, but for those given by name (``CBNN_OCM`` …); each seed has its own noise."""
    parts: list[PartResults] = []
    for part in ASKED.parts:
        values = changes.get(part.name.replace("-", "_").replace(" ", "_"), {})
        shift = len(parts)
        made = tuple(
            {
                "final": final(NOISE[(seed + shift) % len(NOISE)] / 10, **values),
                "epochs": [{"epoch": 1, "seconds": 1.0}],
                "examples": {"train": 5, "validation": 4, "test": 3},
                "training_seconds": 1.0,
            }
            for seed in range(len(part.settings))
        )
        parts.append(PartResults(part, part.settings, made))
    return parts


def verdict(text: str, **changes: dict[str, float]) -> str:
    claims = followup_claims({"CIFAR-10": results(**changes)})
    (claim,) = [each for each in claims if text in each.text]
    return claim.verdict


@pytest.mark.parametrize(
    ("text", "changes", "expected"),
    [
        ("calibration term lowers", {"CFNN": {"ece": 0.05}, "CBNN": {"ece": 0.05}}, "holds"),
        ("calibration term lowers", {"CFNN": {"ece": 0.05}}, "holds in part"),
        ("calibration term lowers", {"CFNN": {"ece": 0.15}}, "does not hold here"),
        ("calibration term lowers", {}, "cannot be told"),
        ("… and the accuracy only marginally", {}, "holds"),
        ("… and the accuracy only marginally", {"CFNN": {"accuracy": 0.8}, "CBNN": {"accuracy": 0.8}}, "does not hold here"),
        (f"outsiders of {KNOWN_SOURCE} easier", {f"{s}_OCM": {"known": 0.9} for s in ("FNN", "CFNN", "BNN", "CBNN")}, "holds"),
        (f"outsiders of {NEW_SOURCE} easier", {f"{s}_OCM": {"known": 0.9} for s in ("FNN", "CFNN")}, "cannot be told"),
        (f"outsiders of {NEW_SOURCE} easier", {"CBNN_OCM": {"new": 0.6}}, "does not hold here"),
        ("OCM makes the ECE of insiders larger", {"CBNN_OCM": {"ece": 0.2}}, "holds in part"),
        ("OCM lowers the accuracy only", {"CBNN_OCM": {"accuracy": 0.8}}, "holds in part"),
        ("chosen by the selector, lowers", {"CBNN_OCM": {"selected": 0.05}}, "holds"),
        ("chosen by the selector, lowers", {"CBNN_OCM": {"selected": 0.15}}, "does not hold here"),
        ("SCBNN-OCM has the lowest", {"CBNN_OCM": {"selected": 0.05}, "FNN": {"ece": 0.03}}, "holds in part"),
        ("lower ECE than the most confident", {"CBNN_OCM": {"confident": 0.02}}, "does not hold here"),
        ("answers fewer outsiders", {"CBNN_OCM": {"passed": 0.1}}, "holds"),
        ("and makes outsiders easier to detect", {"CBNN_OCM": {"told": 0.95}}, "holds"),
        ("Under a mild shift", {}, "holds"),
        ("Under a mild shift", {"CBNN_OCM": {"shift": 0.2}, "FNN_OCM": {"shift": 0.2}}, "does not hold here"),
        ("Under a mild shift", {"CBNN_OCM": {"shift scaled": 0.2}, "FNN_OCM": {"shift scaled": 0.2}}, "holds"),
        ("the temperature of unshifted inputs", {"CBNN_OCM": {"shift scaled": 0.2}}, "holds in part"),
        (
            "the temperature of unshifted inputs",
            {"CBNN_OCM": {"shift scaled": 0.2}, "FNN_OCM": {"shift scaled": 0.2}},
            "does not hold here",
        ),
        ("beats an FNN", {"CBNN_OCM": {"ece": 0.05, "nll": 0.3, "known": 0.9, "new": 0.9}}, "holds"),
        ("beats a deep ensemble", {"deep_ensemble": {"scaled": 0.01}}, "does not hold here"),
    ],
)
def test_verdicts(text: str, changes: dict[str, dict[str, float]], expected: str) -> None:
    assert verdict(text, **changes) == expected


def test_without_every_scheme_nothing_is_judged() -> None:
    some = [part for part in results() if part.name != "BNN-OCM"]
    assert followup_claims({"CIFAR-10": some}) == []


def test_where_too_few_outsiders_are_left_nothing_can_be_told() -> None:
    parts = results()
    for part in parts:
        for result in part.results:
            for way in ("selector", "confidence"):
                for source in (KNOWN_SOURCE, NEW_SOURCE):
                    for coverage in COVERAGES:
                        chosen = result["final"]["selective"][f"{coverage:g}"][way]
                        chosen["outsiders"][source]["detection_probability"] = None
    claim = next(each for each in followup_claims({"": parts}) if "easier to detect" in each.text and "…" in each.text)
    assert (claim.verdict, claim.gaps[0].seeds) == ("cannot be told", 0)


def test_the_tables_and_figures_hold_the_numbers(tmp_path: Path) -> None:
    parts = results(CBNN_OCM={"ece": 0.0777})
    table = table_text(ASKED, parts)
    line = next(line for line in table.splitlines() if line.startswith("  CBNN-OCM "))
    assert " 7.8 " in line
    assert set(draw(ASKED.name, parts, tmp_path)) == {"ece-and-detection.png", "selection.png", "shift.png"}
