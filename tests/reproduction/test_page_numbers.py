"""The numbers in the sentences of three pages are those of the committed results; their tables have tests of their own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reproduction.experiment_results import PartResults, SeedDifference, between
from reproduction.experiments import experiment
from reproduction.membership_results import Leak, leaks
from reproduction.run_experiment import recorded
from reproduction.shift.shift_scores import STEPS, WAYS, Way, by_seed

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results" / "reproduction"
WORST = STEPS[-1]


def sentences(page: str) -> str:
    return " ".join((ROOT / "docs" / "explanation" / page).read_text(encoding="utf-8").split())


def points(value: float, digits: int = 1) -> str:
    """A share in points, without its sign."""
    return f"{100 * abs(value):.{digits}f}"


@lru_cache
def gaps(file: str) -> dict[tuple[str, str], dict[str, Any]]:
    """The differences of a file of claims, by the end of the claim's text and the name of the difference."""
    claims = json.loads((RESULTS / file).read_text(encoding="utf-8"))["claims"]
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for claim in claims:
        text = claim["claim"].replace("(Asked by us) ", "").replace("(Future work of the paper) ", "")
        found |= {(text, gap["name"]): gap for gap in claim["gaps"]}
    return found


def gap(claim: str, name: str) -> dict[str, Any]:
    return gaps("followup-claims.json")[claim, name]


def span(claim: str, names: list[str], digits: int) -> str:
    values = [100 * abs(gap(claim, name)["value"]) for name in names]
    return f"{min(values):.{digits}f} to {max(values):.{digits}f}"


def test_the_follow_ups_sentences() -> None:
    page, images, texts = sentences("follow-up.md"), "CIFAR-10", "CLINC150"
    term = gap(f"{images}: The calibration term lowers the ECE", "BNN minus CBNN")
    interval = f"{points(term['value'])} points, {points(term['low'])} to {points(term['high'])}"
    assert f"a difference of {interval})" in page
    errors = [points(score("cifar10-followup", scheme, "ece")) for scheme in ("bnn", "cbnn")]
    assert f"on images ({errors[0]} to {errors[1]} %, a difference" in page
    price = score("cifar10-followup", "bnn", "accuracy") - score("cifar10-followup", "cbnn", "accuracy")
    assert f"at {points(price)} points of accuracy" in page
    errors = [points(score("clinc150-followup", scheme, "ece")) for scheme in ("fnn", "cfnn")]
    assert f"the ECE rises from {errors[0]} to {errors[1]} %" in page
    bayes = [points(gap(f"{title}: Bayesian learning lowers the ECE", "FNN minus BNN")["value"]) for title in (images, texts)]
    assert f"by {bayes[0]} points on images and {bayes[1]} on texts" in page

    pairs = [f"{scheme}-OCM minus {scheme}" for scheme in ("FNN", "CFNN", "BNN", "CBNN")]
    seen, other = (
        "OCM makes outsiders of the source trained on easier to detect",
        "OCM makes outsiders of another source easier",
    )
    assert f"on images ({span(f'{images}: {seen}', pairs, 0)} points of detection probability)" in page
    assert f"hardly on texts ({span(f'{texts}: {seen}', pairs, 1)} points)" in page
    assert f"{span(f'{texts}: {other} to detect', pairs, 1)} points worse on texts" in page
    grows = f"{images}: OCM makes the ECE of insiders larger"
    assert [gap(grows, pair)["high"] < 0 for pair in pairs] == [False, False, True, True]  # the two Bayesian schemes
    assert all(gap(grows, pair)["low"] < 0 for pair in pairs)

    def harm(way: str, name: str) -> dict[str, Any]:
        title = texts if "words" in name else images
        return gap(f"{title}: {way}", f"{name}: ECE of FNN minus that of FNN-OCM")

    plain, scaled = (
        "Under a mild shift, OCM makes the ECE at most 2 points larger",
        "… with the temperature of unshifted inputs for both, too",
    )
    assert f"the plain network is {points(harm(plain, 'gaussian_noise')['value'])} points lower with it" in page
    worse = harm(scaled, "gaussian_noise")
    assert f"{points(worse['value'])} points larger on noisy images ({points(worse['high'])} to {points(worse['low'])})" in page
    shorter = sorted(points(harm(scaled, f"{share} % fewer words")["value"]) for share in (20, 40))
    assert f"{shorter[0]} to {shorter[1]} points larger on shorter texts" in page


def score(name: str, scheme: str, measure: str) -> float:
    """The mean over seeds of a score on the test examples, as trained."""
    part = next(part for part in recorded(experiment(name), RESULTS) if part.name.lower() == scheme)
    return float(part.final("test", measure).mean())


@lru_cache
def attacked(name: str) -> dict[str, Leak]:
    return {leak.name: leak for leak in leaks(recorded(experiment(f"membership-{name}"), RESULTS))}


@pytest.mark.parametrize(
    ("data", "scheme", "attack", "measure", "sentence"),
    [
        ("fashion", "FNN", "LiRA", "auc", "LiRA has an AUC of {} % on the FNN"),
        ("fashion", "FNN", "LiRA", "tpr", "and finds {} % of its members at 1 % false alarms"),
        ("fashion", "BNN", "LiRA", "auc", "{} % and 1.9 % on the BNN"),
        ("fashion", "BNN", "LiRA", "tpr", "54.8 % and {} % on the BNN"),
        ("fashion", "FNN with temperature", "LiRA", "auc", "leaves the AUC of LiRA as it was ({} %)"),
        ("fashion", "FNN", "loss", "auc", "The threshold on the loss sees little of it, at most {} %"),
        ("newsgroups", "FNN", "LiRA", "auc", "LiRA has an AUC of {} %, and a threshold"),
        ("newsgroups", "FNN", "loss", "auc", "a threshold on the loss alone one of {} %"),
        ("newsgroups", "CA-BNN, λ = 100", "LiRA", "tpr", "{} % instead of 10.4 %"),
        ("newsgroups", "BNN", "LiRA", "tpr", "5.2 % instead of {} %"),
        ("newsgroups", "CA-FNN, λ = 100", "LiRA", "tpr", "{} % instead of 6.5 %"),
        ("newsgroups", "FNN", "LiRA", "tpr", "2.9 % instead of {} %"),
        ("newsgroups", "FNN with temperature", "LiRA", "auc", "again leaves LiRA as it was ({} %)"),
    ],
)
def test_the_leaks_that_are_told(data: str, scheme: str, attack: str, measure: str, sentence: str) -> None:
    value = np.mean(list(attacked(data)[scheme].score(attack, measure).values()))
    assert sentence.format(points(float(value))) in sentences("membership.md")


def mean(by_pair: Mapping[int, float]) -> float:
    return float(np.mean(list(by_pair.values())))


def test_what_the_attacked_networks_are_told_to_know() -> None:
    page, images, texts = sentences("membership.md"), attacked("fashion"), attacked("newsgroups")

    def right(leak: Leak) -> tuple[str, str]:
        return points(mean(leak.accuracy_on_members()), 0), points(mean(leak.final("accuracy")), 0)

    assert "right on {} % of its members and on {} % of others".format(*right(images["FNN"])) in page
    assert "right on {} % of their members and on {} % of others".format(*right(texts["FNN"])) in page
    assert "right on more of its members ({} %) and on more of the others ({} %)".format(*right(texts["BNN"])) in page
    known = [
        mean(leak.accuracy_on_members())
        for leak in images.values()
        if mean(leak.score("LiRA", "auc")) < mean(images["FNN with temperature"].score("LiRA", "auc"))
        if leak.name != "FNN"
    ]
    assert f"({points(min(known), 0)} to {points(max(known), 0)} % instead of {right(images['FNN'])[0]} %)" in page
    assert f"as any (ECE {points(mean(images['FNN with temperature'].final('ece')))} %)" in page

    accuracy = {name: mean(leak.final("accuracy")) for name, leak in images.items()}
    prices = [points(accuracy[scheme] - accuracy[f"CA-{scheme}, λ = 100"]) for scheme in ("FNN", "BNN")]
    assert f"It also takes {prices[0]} and {prices[1]} points of accuracy" in page
    less = gaps("claims.json")["Fashion-MNIST: calibration-aware training leaks less to LiRA (AUC)", "FNN minus CA-FNN, λ = 10"]
    assert less["low"] < 0
    assert f"With the paper's λ = 10 the FNN leaks {points(less['value'])} points less" in page


@pytest.mark.parametrize(
    ("data", "scheme", "sentence"),
    [
        ("Fashion-MNIST", "FNN", "takes {} points ({}) off the AUC of LiRA on the FNN"),
        ("Fashion-MNIST", "BNN", "and {} ({}) on the BNN"),
        ("20 Newsgroups", "BNN", "takes {} points ({}) off the AUC of LiRA on the BNN"),
        ("20 Newsgroups", "FNN", "and {} ({}) on the FNN, and both clearly"),
    ],
)
def test_what_the_term_takes_off_the_leaks(data: str, scheme: str, sentence: str) -> None:
    claim = f"{data}: calibration-aware training leaks less to LiRA (AUC)"
    less = gaps("claims.json")[claim, f"{scheme} minus CA-{scheme}, λ = 100"]
    ends = f"{100 * less['low']:.1f} to {100 * less['high']:.1f}"
    assert sentence.format(points(less["value"]), ends) in sentences("membership.md")


@lru_cache
def shifted(name: str) -> dict[str, PartResults]:
    return {part.settings[0].scheme: part for part in recorded(experiment(f"shift-{name}"), RESULTS) if part.results}


def against_plain(name: str, scheme: str, way: Way, severity: int = WORST) -> SeedDifference:
    """NLL minus that of the plain network with a temperature."""
    parts = shifted(name)
    first, plain = by_seed(parts[scheme], way, "nll", severity), by_seed(parts["fnn"], "scaled", "nll", severity)
    return between(scheme, first, plain)


def error(name: str, way: Way, severity: int, scheme: str = "fnn") -> float:
    return float(np.mean(list(by_seed(shifted(name)[scheme], way, "ece", severity).values())))


def accurate(name: str, scheme: str) -> float:
    """The accuracy without a shift."""
    return float(np.mean(list(by_seed(shifted(name)[scheme], "plain", "accuracy", 0).values())))


def test_the_sentences_on_shift() -> None:
    page = sentences("shift.md")
    ensemble = {name: against_plain(name, "ensemble", "scaled") for name in ("newsgroups", "digits", "cifar10", "fashion")}
    less = [f"{-apart.value:.3f}" for apart in ensemble.values()]
    assert f"by {less[0]} on 20 Newsgroups, {less[1]} on digits and {less[2]} on CIFAR-10, all clearly" in page
    assert f"and by {less[3]} on Fashion-MNIST" in page
    assert [apart.high < 0 for apart in ensemble.values()] == [True, True, True, False]
    assert all(against_plain(name, "ensemble", "scaled", step).value < 0 for name in ensemble for step in STEPS)

    dropout = against_plain("newsgroups", "mc-dropout", "plain")
    assert f"{-dropout.value:.3f} less NLL than the plain network with a temperature" in page
    others = [against_plain("newsgroups", scheme, way).value for scheme in shifted("newsgroups") for way in WAYS]
    assert dropout.value == min(others)  # the best of all
    for name, words in (
        ("newsgroups", "from {} % to {} % without a shift, and from {} % to {} % at the highest"),
        ("cifar10", "On CIFAR-10 it takes it from {} % to {} %, and from {} % to {} %"),
    ):
        errors = [points(error(name, way, step)) for step in (0, WORST) for way in ("plain", "scaled")]
        assert words.format(*errors) in page
    assert all(error("fashion", "scaled", step) > error("fashion", "plain", step) for step in STEPS)
    assert all(error("digits", "scaled", step) < error("digits", "plain", step) for step in STEPS)
    gained = [-against_plain(name, scheme, "scaled").value for name in ensemble for scheme in ("ema", "swag", "laplace")]
    assert f"none of them takes more than {max(gained):.3f} off the plain network's NLL" in page
    for name in ensemble:
        term = against_plain(name, "ca-fnn", "scaled")
        assert term.low < 0 < term.high

    smoothed = {name: against_plain(name, "label-smoothing", "plain") for name in ensemble}
    assert f"{-smoothed['newsgroups'].value:.3f} below the plain network with a temperature" in page
    assert smoothed["newsgroups"].high < 0 < min(smoothed["digits"].low, smoothed["fashion"].low)
    assert f"{smoothed['digits'].value:.3f} above on digits and {smoothed['fashion'].value:.3f} on Fashion-MNIST" in page
    single = [scheme for scheme in shifted("newsgroups") if scheme not in ("mc-dropout", "ensemble", "mixture")]
    best = min(against_plain("newsgroups", scheme, way).value for scheme in single for way in WAYS)
    assert best == smoothed["newsgroups"].value
    for name in ensemble:
        scaled = against_plain(name, "label-smoothing", "scaled")
        assert (scaled.low < 0 < scaled.high) == (name != "newsgroups")
        natural = against_plain(name, "natural-gradient", "scaled")
        assert natural.low < 0 < natural.high
    focal = {name: against_plain(name, "focal", "scaled") for name in ensemble}
    assert f"{-focal['cifar10'].value:.3f} below on CIFAR-10 and {focal['digits'].value:.3f} above on digits, clearly" in page
    assert focal["cifar10"].high < 0 < focal["digits"].low
    assert all(focal[name].low < 0 < focal[name].value for name in ("newsgroups", "fashion"))
    right = [accurate("newsgroups", scheme) for scheme in ("natural-gradient", "fnn")]
    assert f"({points(right[0])} % accuracy without a shift, where the plain network has {points(right[1])} %)" in page

    laplace = against_plain("cifar10", "laplace", "scaled")
    assert f"an NLL that is {laplace.value:.3f} higher than the plain network's when both have one" in page
    assert laplace.low > 0
    lowest = error("cifar10", "plain", WORST, "laplace")
    assert f"the lowest ECE under strong shift, {points(lowest)} % without a temperature" in page
    plain_ways = [error("cifar10", "plain", WORST, scheme) for scheme in shifted("cifar10")]
    assert lowest == min(plain_ways)
    for scheme, words in (("ca-fnn", "its ECE is {} points lower there ({} to {})"), ("bnn", "is {} points lower ({} to {})")):
        first, plain = (by_seed(shifted("cifar10")[each], "scaled", "ece", WORST) for each in (scheme, "fnn"))
        apart = between(scheme, first, plain)
        assert words.format(points(apart.value), points(apart.high), points(apart.low)) in page


def test_the_sentences_on_people() -> None:
    page, parts = sentences("shift.md"), shifted("cifar10")

    def distance(scheme: str, way: Way, score: str) -> float:
        return float(parts[scheme].final("people", way, score).mean())

    others = [scheme for scheme in parts if scheme not in ("laplace", "natural-gradient")]
    surer = {way: [distance(scheme, way, "overconfidence") for scheme in others] for way in WAYS}
    assert f"surer than people agree, by {points(min(surer['plain']))} to {points(max(surer['plain']))} points" in page
    left = f"{points(min(surer['scaled']))} to {points(max(surer['scaled']))} points of that are left"
    assert left in page
    apart = [f"{distance('fnn', way, 'kl'):.3f}" for way in WAYS]
    assert f"of the plain network falls from {apart[0]} to {apart[1]}" in page
    gap_on_image = [f"{distance('fnn', way, 'gap'):.3f}" for way in WAYS]
    assert f"({gap_on_image[1]}, and {gap_on_image[0]} without)" in page
    far = ("laplace", "natural-gradient", "label-smoothing")
    for score in ("kl", "gap"):
        ends = {
            scheme: np.mean([each["final"]["people"]["scaled"][f"{score}_interval"] for each in parts[scheme].results], axis=0)
            for scheme in parts
        }
        near = [ends[scheme] for scheme in parts if scheme not in far]
        assert min(ends[scheme][0] for scheme in far) > max(end[1] for end in near)
        assert max(end[0] for end in near) < min(end[1] for end in near)
