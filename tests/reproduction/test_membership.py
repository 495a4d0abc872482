"""Membership experiments: halves that say nothing about one another, attacks with a known answer, claims, and a tiny run."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from scipy import stats
from tests.data.real import needs
from typer.testing import CliRunner, Result

from calibayes.acting import membership_attack, tpr_at_fpr
from calibayes.acting.detection import auroc
from calibayes.cli import app
from reproduction.claim_verdicts import PaperClaim
from reproduction.experiment import ExperimentPart
from reproduction.experiment_results import PartResults
from reproduction.experiments import experiment
from reproduction.membership_claims import membership_claims
from reproduction.membership_results import leak_summary, leaks
from reproduction.membership_training import fashion_membership_trial, members_of_pool
from reproduction.printed_tables import claims_text, table_text

POOL = 2000


def made_up_leak(part: ExperimentPart, effect: float, accuracy: float = 0.8, seeds: Sequence[int] = range(18)) -> PartResults:
    """Networks that never were: their log-odds are normal, and higher by ``effect`` for what they were trained on."""
    difficulty = 2 * torch.randn(POOL, generator=torch.Generator().manual_seed(99))
    chosen = tuple(each for each in part.settings if each.seed in seeds)
    results = []
    for each in chosen:
        # The same noise for every scheme, as trainings with the same seed start from the same weights.
        noise = torch.randn(POOL, generator=torch.Generator().manual_seed(each.seed))
        members = members_of_pool(POOL, each.seed)
        odds = (difficulty + effect * members + noise).half()
        inside, outside = odds[members].double(), odds[~members].double()
        values = {
            "auc": {"value": auroc(outside.numpy(), inside.numpy())},
            "tpr": {"value": tpr_at_fpr(inside, outside)},
        }
        threshold = dict.fromkeys(("loss", "confidence", "entropy", "modified-entropy"), values)
        scores = {"accuracy": accuracy + 0.001 * (each.seed % 3), "ece": 0.1, "nll": 0.5, "brier": 0.3}
        results.append(
            {
                "epochs": [{"epoch": 1, "seconds": 1.0}],
                "final": {"test": scores, "scaled": {**scores, "ece": 0.02}, "temperature": 1.5},
                "members": members,
                "log_odds": {"plain": odds, "scaled": odds / 2},
                "attacks": {"plain": threshold, "scaled": threshold},
                "pool": {"members": {"accuracy": 0.99}},
            }
        )
    return PartResults(part, chosen, tuple(results))


def made_up_parts(effects: Mapping[str, float], others: float = 1.0, **accuracies: float) -> list[PartResults]:
    parts = experiment("membership-fashion", "paper").parts
    return [made_up_leak(part, effects.get(part.name, others), accuracies.get(part.settings[0].scheme, 0.8)) for part in parts]


def judged(claims: Sequence[PaperClaim], text: str) -> PaperClaim:
    return next(claim for claim in claims if text in claim.text)


def test_halves_of_a_pair_are_complements_and_pairs_are_independent() -> None:
    halves = torch.stack([members_of_pool(1000, seed) for seed in range(8)])
    assert halves.sum(1).tolist() == [500] * 8
    assert bool((halves[::2] ^ halves[1::2]).all())
    both = (halves[0] & halves[2]).sum() / 500
    assert 0.4 < float(both) < 0.6
    assert torch.equal(members_of_pool(1000, 3), members_of_pool(1000, 3))


def test_lira_recovers_a_known_effect_and_beats_the_threshold() -> None:
    (leak, scaled) = leaks([made_up_leak(experiment("membership-fashion", "paper").parts[0], 1.5)])
    lira, loss = (leak.score(attack, "auc") for attack in ("LiRA", "loss"))
    assert list(lira) == list(range(9))  # pairs
    bounds = stats.norm.cdf([1.5 / math.sqrt(2 * 1.25), 1.5 / math.sqrt(2)])  # the means of eight are known to an eighth
    for pair, area in lira.items():
        assert bounds[0] - 0.03 < area < bounds[1] + 0.02
        assert area > loss[pair] + 0.05
    assert scaled.score("LiRA", "auc") == pytest.approx(lira, abs=0.005)  # halved, they are as far apart as before


def test_without_an_effect_nothing_leaks() -> None:
    (leak, _) = leaks([made_up_leak(experiment("membership-fashion", "paper").parts[0], 0.0)])
    for attack in ("LiRA", "LiRA offline", "loss"):
        areas = list(leak.score(attack, "auc").values())
        assert sum(areas) / 9 == pytest.approx(0.5, abs=0.015), attack


def test_the_target_and_its_complement_are_no_shadow_models() -> None:
    """With them, membership would be counted out: every example is in half of all trainings."""
    part = experiment("membership-fashion", "paper").parts[0]
    (leak, _) = leaks([made_up_leak(part, 1.0)])
    before = next(leak.target_scores("LiRA"))[1]
    spoilt = made_up_leak(part, 1.0)
    spoilt.results[1]["log_odds"]["plain"] += 5  # the complement of the first target
    assert torch.equal(next(leaks([spoilt])[0].target_scores("LiRA"))[1], before)
    spoilt.results[2]["log_odds"]["plain"] += 5
    assert not torch.equal(next(leaks([spoilt])[0].target_scores("LiRA"))[1], before)


def test_only_complete_pairs_count_and_three_are_needed() -> None:
    part = experiment("membership-fashion", "paper").parts[0]
    (leak, _) = leaks([made_up_leak(part, 1.0, seeds=(0, 1, 3, 4, 5, 8, 9, 10))])
    assert list(leak.results) == [0, 1, 4, 5, 8, 9]
    assert leaks([made_up_leak(part, 1.0, seeds=(0, 1, 3, 4, 5, 8))]) == []
    assert membership_claims("Fashion-MNIST", [made_up_leak(part, 1.0)]) == []


@pytest.mark.parametrize(
    ("effects", "verdict"),
    [
        ({"CA-FNN, λ = 10": 0.5, "CA-FNN, λ = 100": 0.5, "CA-BNN, λ = 10": 0.5, "CA-BNN, λ = 100": 0.5}, "holds"),
        ({"CA-FNN, λ = 100": 0.5}, "holds in part"),
        ({"FNN": 0.5, "BNN": 0.5}, "does not hold here"),
        ({}, "cannot be told"),
    ],
)
def test_claims_are_judged_by_the_attacks(effects: dict[str, float], verdict: str) -> None:
    claims = membership_claims("Fashion-MNIST", made_up_parts(effects))
    for how in ("LiRA (AUC)", "a threshold on the loss (AUC)"):
        claim = judged(claims, f"calibration-aware training leaks less to {how}")
        assert claim.verdict == verdict, claim
        assert len(claim.gaps) == 4
    assert judged(claims, "accuracy").verdict == "holds"
    assert claims_text(claims).count("complementary halves") == 1


def test_less_leak_at_a_loss_of_accuracy_is_said() -> None:
    claims = membership_claims("Fashion-MNIST", made_up_parts({}, **{"ca-fnn": 0.7}))
    assert judged(claims, "accuracy").verdict == "holds in part"
    assert [round(gap.value, 3) for gap in judged(claims, "accuracy").gaps] == [-0.1, -0.1, 0.0, 0.0]


def test_tables_and_numbers_show_every_scheme_once() -> None:
    asked, parts = experiment("membership-fashion", "paper"), made_up_parts({}, others=1.0)
    text = table_text(asked, parts)
    assert text.count("FNN with temperature") == 2
    numbers = leak_summary(parts)
    assert [each["name"] for each in numbers][:3] == ["FNN", "FNN with temperature", "BNN"]
    mean = sum(numbers[0]["auc"]["LiRA"]) / 9
    line = next(line for line in text.split("AUC % of")[1].splitlines() if line.startswith("  FNN "))
    assert f" {100 * mean:.1f} ± " in line
    json.dumps(numbers)


def test_a_record_has_the_attacks_of_its_own_scores() -> None:
    settings = experiment("membership-fashion", "tiny").parts[0].settings[1].to_dict()
    result = fashion_membership_trial(settings)
    members, odds = result["members"], result["log_odds"]["plain"].double()
    assert torch.equal(members, members_of_pool(200, 1))
    assert result["examples"]["train"] == 100
    attack = membership_attack(odds[members], odds[~members])
    assert result["attacks"]["plain"]["loss"]["auc"]["value"] == pytest.approx(attack.auc, abs=2e-3)
    right = result["pool"]["members"]["accuracy"], result["pool"]["others"]["accuracy"]
    assert all(0 <= share <= 1 for share in right)


def reproduce(*words: object) -> Result:
    return CliRunner().invoke(app, ["reproduce", *map(str, words)])


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["membership-fashion", pytest.param("membership-newsgroups", marks=needs("newsgroups", "glove"))]
)
def test_two_schemes_from_the_command_line(name: str, tmp_path: Path) -> None:
    words: list[Any] = [name, "--preset", "tiny", "--out", tmp_path, "--workers", 1]
    done = reproduce(*words, "--only", "scheme=fnn,ca-fnn", "--only", "lam=0,10")
    assert done.exit_code == 0, done.output
    assert len(list((tmp_path / "membership").glob("*.safetensors"))) == 12
    assert {path.name for path in (tmp_path / name).iterdir()} == {"table.txt", "summary.json", "commands.txt", "leaks.png"}
    assert "AUC % of membership attacks" in done.stdout
    planned = sum(len(part.settings) for part in experiment(name, "tiny").parts)
    assert f"{planned - 12} trainings are missing." in done.stdout
    claimed = reproduce("claims", "--preset", "tiny", "--out", tmp_path)
    assert "FNN minus CA-FNN, λ = 10" in claimed.stdout
    # One that is missing is trained again, and gives the same.
    lost = next((tmp_path / "membership").glob("fnn-seed1-*"))
    lost.unlink()
    again = reproduce(*words, "--only", "scheme=fnn,ca-fnn", "--only", "lam=0,10")
    assert "From before: 11 of 12" in again.stderr
    assert lost.exists()
    assert again.stdout.split("AUC % of")[1] == done.stdout.split("AUC % of")[1]
