"""The benchmark on texts: what is drawn, scored, compared and told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks import texts_sets
from benchmarks.report import Report
from benchmarks.texts import Sizes, binned_ece, difference, per_example, run, trial
from benchmarks.texts_methods import LINEAR, METHODS, OURS, TrainedOnTexts
from benchmarks.texts_sets import TextSet, load
from scipy.stats import t as student

from calibayes.errors import MissingDataError
from calibayes.metrics import accuracy, brier, ece, nll

WORDS = {"ships": ["boat", "sea", "sail"], "birds": ["wing", "sky", "nest"], "trains": ["rail", "wheel", "coach"]}


@pytest.fixture
def clinc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file like that of CLINC150, of three classes that can be told apart."""
    generator = np.random.default_rng(0)

    def rows(each: int) -> list[list[str]]:
        found = []
        for label, own in WORDS.items():
            for _ in range(each):
                others = [*own, *own, "the", "a", "of", "wing", "sea"]
                found.append([" ".join(generator.choice(others, 5)), label])
        return found

    folder = tmp_path / "clinc150"
    folder.mkdir()
    parts = {"train": rows(40), "test": rows(30), "oos_train": [["what is this", "oos"]], "oos_test": []}
    (folder / "data_full.json").write_text(json.dumps(parts))
    monkeypatch.setenv("CALIBAYES_DATA", str(tmp_path))
    monkeypatch.setitem(texts_sets.SETS, "clinc150-3000", ("clinc150", 60))
    return tmp_path


def random_probs(n: int, classes: int, seed: int) -> tuple[Any, Any]:
    generator = np.random.default_rng(seed)
    probs = generator.dirichlet(np.full(classes, 0.4), n)
    return probs, np.array([generator.choice(classes, p=row) for row in probs])


def test_a_small_set_is_drawn_by_the_seed_and_by_class(clinc: Path) -> None:
    whole = load("clinc150", 0)
    first, again, other = (load("clinc150-3000", seed) for seed in (0, 0, 1))
    assert (len(whole.train), len(whole.test), whole.classes) == (120, 90, ("birds", "ships", "trains"))
    assert np.bincount(first.train_targets).tolist() == [20, 20, 20]
    assert first.train == again.train != other.train
    assert first.test == whole.test
    labels = dict(zip(whole.train, whole.train_targets, strict=True))
    assert [labels[text] for text in first.train] == first.train_targets.tolist()


def test_a_missing_set_is_an_error_that_says_where_it_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALIBAYES_DATA", str(tmp_path))
    with pytest.raises(MissingDataError, match=r"clinc150/data_full\.json"):
        load("clinc150", 0)


def test_scores_are_means_over_examples() -> None:
    probs, targets = random_probs(400, 4, 0)
    examples = per_example(probs, targets)
    for name, metric in (("nll", nll), ("brier", brier), ("accuracy", accuracy)):
        assert examples[name].mean() == pytest.approx(metric(probs, targets))
    weights = np.vstack((np.ones(400), np.random.default_rng(1).multinomial(400, np.full(400, 1 / 400))))
    drawn = np.repeat(np.arange(400), weights[1].astype(int))
    expected = [ece(probs, targets), ece(probs[drawn], targets[drawn])]
    assert binned_ece(examples["confidence"], examples["accuracy"], weights) == pytest.approx(expected)


def test_the_interval_is_that_of_the_formula() -> None:
    pairs = []
    for seed in range(3):
        probs, targets = random_probs(500, 3, 0)
        noisy = probs ** (1.3 + 0.1 * seed)
        pairs.append((per_example(noisy / noisy.sum(1, keepdims=True), targets), per_example(probs, targets)))
    found = difference(pairs, "nll", comparisons=4)
    gaps = np.array([first["nll"] - second["nll"] for first, second in pairs])
    alpha = 0.05 / 4
    of_seeds = student.ppf(1 - alpha / 2, 2) * gaps.mean(1).std(ddof=1) / 3**0.5
    of_test = student.ppf(1 - alpha / 2, 1e9) * gaps.mean(0).std(ddof=1) / 500**0.5
    assert found.value == pytest.approx(gaps.mean())
    assert found.high - found.value == pytest.approx(np.hypot(of_seeds, of_test), rel=1e-4)


def test_the_error_of_test_texts_is_that_of_another_draw() -> None:
    values = []
    for seed in range(200):
        probs, targets = random_probs(300, 3, seed)
        sharper = probs**2 / (probs**2).sum(1, keepdims=True)
        values.append(ece(sharper, targets) - ece(probs, targets))
        if seed == 0:
            estimate = difference([(per_example(sharper, targets), per_example(probs, targets))], "ece", comparisons=1)
    assert estimate.value == pytest.approx(values[0])
    assert estimate.test_error == pytest.approx(np.std(values), rel=0.3)


def test_the_linear_model_is_calibrated_and_better_than_chance(clinc: Path) -> None:
    result = trial({"set": "clinc150-3000", "method": LINEAR, "repeat": 0, "small": True})
    assert result["scores"]["accuracy"] > 0.7
    assert result["scores"]["nll"] < np.log(3)
    assert result["chosen"].startswith("words")
    assert result["train"] == 60


@pytest.mark.slow
def test_both_are_told_side_by_side_and_kept(clinc: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def uniform(texts: TextSet, seed: int, small: bool) -> TrainedOnTexts:
        if seed == 1:
            raise ValueError("no words")
        return TrainedOnTexts(lambda rows: np.full((len(rows), len(texts.classes)), 1 / len(texts.classes)))

    monkeypatch.setitem(METHODS, OURS, uniform)
    sizes = Sizes(("clinc150-3000", "clinc150"), repeats=2, repeats_of_draws=2, small=True)
    report = Report("texts")
    first = run(report, sizes, tmp_path / "runs", workers=1)
    assert (len(first), len(first.failed), first.kept) == (8, 2, 0)
    means: Any = report.record["means"]
    assert means[f"clinc150, {OURS}"]["nll"] == pytest.approx(np.log(3))
    assert any("trainings that failed: 1, ValueError: no words" in line for line in report.lines)
    told: Any = report.record[f"less {LINEAR}"]
    linear = first.trials[2].result  # the linear model with the first seed on the small set
    assert linear is not None
    assert told["clinc150-3000"]["nll"]["value"] == pytest.approx(np.log(3) - linear["scores"]["nll"])
    json.dumps(report.record)
    assert run(Report("texts"), sizes, tmp_path / "runs", workers=1).kept == 6


def test_ours_is_trained_on_a_file_and_answers_in_the_order_of_the_classes(clinc: Path) -> None:
    texts = load("clinc150", 0)
    order = (2, 0, 1)  # other than that of the file
    moved = texts._replace(
        classes=tuple(texts.classes[place] for place in order),
        train_targets=np.array([order.index(each) for each in texts.train_targets]),
    )
    one, other = (METHODS[OURS](each, 0, True).predict(texts.test) for each in (texts, moved))
    assert one[:, list(order)] == pytest.approx(other)
