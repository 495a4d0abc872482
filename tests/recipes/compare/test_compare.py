"""A comparison's course on points in the plane: what is chosen, fitted and written, and on which data."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from tests.recipes.compare.blobs import BLOBS, MISLED, TINY, TRAININGS, Shown, computed, shown

import calibayes as cb
from calibayes.data.predictions import read_predictions
from calibayes.errors import InvalidArgumentError
from calibayes.recipes.compare import CONTENDERS, Comparison, MethodRun, Settings, Task, compare, jobs
from calibayes.recipes.compare.contenders import cross_scaled
from calibayes.recipes.compare.jobs import ScoredRun
from calibayes.recipes.compare.recommendation import COMPARED, differences
from calibayes.recipes.compare.result_files import FILES
from calibayes.recipes.compare.trainings import choose, run_trainings


class Both(NamedTuple):
    """A comparison and what it leaves behind."""

    shown: Shown
    found: Comparison


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Both:
    folder = tmp_path_factory.mktemp("first") / "there"
    return Both(shown(folder), compare(BLOBS, TINY, folder=folder / "runs", workers=1))


@pytest.fixture(scope="module")
def first(both: Both) -> Shown:
    return both.shown


@pytest.fixture(scope="module")
def found(both: Both) -> Comparison:
    return both.found


def test_everything_is_there_and_agrees_with_what_is_printed(first: Shown) -> None:
    numbers, out, err, folder = first
    assert {path.name for path in folder.iterdir()} == set(FILES)
    table = (folder / "table.txt").read_text()
    assert table in out
    assert [each["name"] for each in numbers["contenders"]] == list(map(str, CONTENDERS))
    for each in numbers["contenders"]:
        line = next(line for line in table.splitlines() if line.startswith(f"  {each['name']}  "))
        for name, scale, digits in (("accuracy", 100, 1), ("ece", 100, 1), ("nll", 1, 3), ("brier", 1, 3)):
            values = [seed["test"][name] for seed in each["seeds"]]
            assert f" {scale * np.mean(values):.{digits}f} ± {scale * np.std(values, ddof=1):.{digits}f} " in line + " "
            assert each["test"][name] == pytest.approx({"mean": np.mean(values), "std": np.std(values, ddof=1)})
    recommended = numbers["verdict"]["recommended"]
    assert table.startswith((f"Use {recommended}, ", f"Use {recommended}: "))
    assert out.startswith(table)  # nothing comes before the recommendation
    assert (folder / "reliability.png").read_bytes().startswith(b"\x89PNG")
    page = (folder / "report.html").read_text(encoding="utf-8")
    start = page.index('id="study">') + len('id="study">')
    models = json.loads(page[start : page.index("</script>", start)])["models"]
    for each, model in zip(numbers["contenders"], models, strict=True):
        assert model["name"] == each["name"]
        assert model["scores"]["nll"]["value"] == pytest.approx(each["seeds"][0]["test"]["nll"], rel=1e-9)
    assert len(re.findall(rf"^\[ ?\d+/{TRAININGS}\] .* validation NLL [0-9.]+", err, flags=re.MULTILINE)) == TRAININGS
    assert "\x1b" not in out + err  # no terminal, no control characters
    assert numbers["intervals"]["covers"] == ["examples", "seeds"]
    assert len(numbers["differences"]) == 28


def test_the_predictions_are_those_that_were_scored(first: Shown) -> None:
    files = set()
    for each in first.numbers["contenders"]:
        for seed in each["seeds"]:
            for part, scores in (("", seed["test"]), ("-validation", seed["validation"])):
                path = first.folder / seed["predictions"].replace(".npz", f"{part}.npz")
                with np.load(path, allow_pickle=False) as stored:
                    assert stored["probs"].dtype == np.float32
                    assert stored["class_names"].tolist() == ["top", "right", "left"]
                    again = cb.evaluate(stored["probs"], stored["targets"], intervals=False)
                    table = read_predictions(path)
                    np.testing.assert_array_equal(table.probs, stored["probs"])
                    np.testing.assert_array_equal(table.targets, stored["targets"])
                    assert table.class_names == ("top", "right", "left")
                assert again.nll == scores["nll"]
                assert again.ece == scores["ece"]
                files.add(path)
    assert set((first.folder / "predictions").iterdir()) == files


def test_the_choice_is_the_lowest_validation_nll_of_the_plain_predictions_with_the_first_seed(first: Shown) -> None:
    assert len(first.numbers["candidates"]) == 9
    for each in first.numbers["contenders"]:
        tried = [run for run in first.numbers["candidates"] if run["scheme"] == each["scheme"]]
        best = min(tried, key=lambda run: run["validation"]["nll"])
        assert (each["lam"], each["beta"]) == (best["lam"], best["beta"])
        if not each["temperature_scaled"]:
            assert each["seeds"][0]["validation"] == best["validation"]  # what was chosen is what is tested


def test_test_labels_have_no_say_in_choice_temperature_or_predictions(first: Shown, found: Comparison) -> None:
    misled = compare(MISLED, TINY, folder=first.folder / "runs", workers=1)
    assert misled.trainings.kept == TRAININGS  # trainings do not depend on test labels; predictions are made again
    assert misled.trainings.candidates == found.trainings.candidates
    assert misled.trainings.chosen == found.trainings.chosen
    assert misled.verdict == found.verdict
    assert misled.differences.mean(CONTENDERS[0], "nll") > found.differences.mean(CONTENDERS[0], "nll") + 0.5
    for contender, entry in found.entries.items():
        other = misled.entries[contender]
        assert other.temperatures == entry.temperatures
        for one, two in zip(entry.test_probs, other.test_probs, strict=True):
            np.testing.assert_array_equal(one, two)
        assert [scores.nll for scores in other.test] != [scores.nll for scores in entry.test]


def test_a_temperature_is_the_best_one_on_validation_data(found: Comparison) -> None:
    labels = found.trainings.data.validation[1].numpy()
    for entry in found.entries.values():
        plain = found.entries[CONTENDERS[CONTENDERS.index(entry.contender) - entry.contender.scaled]]
        for seed, temperature in enumerate(entry.temperatures):
            if not entry.contender.scaled:
                assert temperature == 1.0
                continue
            logs = np.log(plain.validation_probs[seed].astype(np.float64))

            def nll(log_t: float, logs: np.typing.NDArray[np.float64] = logs) -> float:
                scaled = logs / np.exp(log_t)
                true = scaled[np.arange(len(labels)), labels]
                return float((np.log(np.exp(scaled).sum(-1)) - true).mean())

            best = minimize_scalar(nll, bounds=(-4, 4), method="bounded", options={"xatol": 1e-7})
            assert temperature == pytest.approx(np.exp(best.x), rel=1e-3)
            assert entry.test[seed].accuracy == plain.test[seed].accuracy
            scaled = plain.test_probs[seed].astype(np.float64) ** (1 / temperature)
            np.testing.assert_allclose(entry.test_probs[seed], scaled / scaled.sum(-1, keepdims=True), rtol=1e-4, atol=1e-7)


def test_validation_scores_of_a_temperature_are_those_of_examples_it_was_not_fitted_on(found: Comparison) -> None:
    labels = found.trainings.data.validation[1]
    plain, scaled = (found.entries[each] for each in CONTENDERS[:2])
    np.testing.assert_array_equal(cross_scaled(plain.validation_probs[0], labels), scaled.validation_probs[0])
    assert [scores.nll for scores in scaled.validation] == [
        cb.evaluate(probs, labels, intervals=False).nll for probs in scaled.validation_probs
    ]
    moved = np.zeros(len(labels), dtype=int)
    for row in range(0, len(labels), 8):
        other = labels.clone()
        other[row] = (other[row] + 1) % 3
        after = cross_scaled(plain.validation_probs[0], other)
        changed = (after != scaled.validation_probs[0]).any(1)
        assert not changed[row]  # an example's own label has no part in its temperature
        assert 0.7 <= changed.mean() <= 0.8  # those of the other four fifths do
        moved += changed
    assert (moved > 0).all()


def test_only_chosen_networks_see_the_test_examples_and_the_caller_keeps_threads_and_random_state(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[MethodRun] = []
    test = jobs.test

    def watched(
        task: Task, settings: Settings, run: MethodRun, weights: dict[str, torch.Tensor], choice: None
    ) -> dict[str, Any]:
        seen.append(run)
        assert torch.get_num_threads() == 1
        return test(task, settings, run, weights, choice)

    monkeypatch.setattr(jobs, "test", watched)
    state = torch.get_rng_state()
    torch.set_num_threads(2)
    try:
        done = run_trainings(BLOBS, TINY, workers=1)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
    assert torch.equal(torch.get_rng_state(), state)
    assert len(seen) == 8
    assert {run.with_seed(0) for run in seen} == set(done.chosen.values())


def test_seeds_are_paired_same_initial_weights_for_every_scheme() -> None:
    means = []
    for run in (each for each in TINY.candidates() if each.lam in (0.0, 3.0) and each.beta in (0.0, 0.1)):
        posterior = jobs._untrained(BLOBS, TINY, run.with_seed(1)).posterior
        means.append(cb.predict(posterior, torch.zeros(1, 2), samples="mean").probs)
    assert len(means) == 4
    for mean in means[1:]:
        torch.testing.assert_close(mean, means[0])


def test_the_difference_over_seeds_is_that_of_the_scores(first: Shown) -> None:
    by_name = {each["name"]: each for each in first.numbers["contenders"]}
    for each in first.numbers["differences"]:
        for score in ("nll", "accuracy", "brier", "ece"):
            one, two = (by_name[each[side]]["test"][score]["mean"] for side in ("first", "second"))
            if score != "ece":  # which counts without what chance adds to it
                assert each[score]["value"] == pytest.approx(one - two, abs=1e-12)
            assert each[score]["low"] <= each[score]["value"] <= each[score]["high"]


def test_with_one_seed_and_one_comparison_it_is_the_paired_difference_of_the_metrics(found: Comparison) -> None:
    pair = {each: replace(found.entries[each], test_probs=found.entries[each].test_probs[:1]) for each in CONTENDERS[1:5:3]}
    ours, (one, two) = differences(pair, found.targets), pair
    theirs = cb.metrics.differences(pair[one].test_probs[0], pair[two].test_probs[0], found.targets)
    for score in COMPARED:
        estimate, expected = ours.between(one, two, score), theirs[score]
        assert estimate.value == expected.value
        width = expected.high - expected.low
        # Percentiles against a normal interval; the ECE's there joins those of several worlds.
        assert estimate.high - estimate.low == pytest.approx(width, rel=0.15 if score != "ece" else 0.5)


def test_draws_of_the_test_examples_are_shared_by_seeds(found: Comparison) -> None:
    # A contender whose seeds are all the same network has as much chance in its test examples as that network alone.
    each = CONTENDERS[0]
    once, often = (
        differences({each: replace(found.entries[each], test_probs=found.entries[each].test_probs[:1] * count)}, found.targets)
        for count in (1, 3)
    )
    for score in COMPARED:
        torch.testing.assert_close(often.draws[each][score], once.draws[each][score])


def test_one_seed_has_no_interval_for_training(first: Shown) -> None:
    numbers = computed(first.folder, replace(TINY, seeds=1))
    assert numbers["intervals"]["covers"] == ["examples"]
    assert "One seed says nothing about the chance in training" in numbers["verdict"]["text"]
    assert all(each["nll"]["seeds_error"] is None for each in numbers["differences"])


def test_predictions_are_there_by_name_and_seed(found: Comparison) -> None:
    assert set(found.predictions()) == set(map(str, CONTENDERS))
    np.testing.assert_array_equal(found.predictions(1)["BNN + T"], found.entries[CONTENDERS[5]].test_probs[1])
    assert found.class_names == ("top", "right", "left")


def test_of_equal_candidates_the_first_is_chosen(found: Comparison) -> None:
    scores = found.trainings.candidates[0][1]
    tried = [ScoredRun(run, np.zeros((1, 2), np.float32), 0.0, scores) for run in Settings(baselines=()).candidates()]
    assert {scheme: (each.run.lam, each.run.beta) for scheme, each in choose(tried).items()} == {
        "fnn": (0.0, 0.0),
        "bnn": (0.0, 0.03),
        "ca-fnn": (3.0, 0.0),
        "ca-bnn": (3.0, 0.03),
    }


def test_a_folder_that_cannot_be_written_to_is_named_before_anything_is_trained(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(InvalidArgumentError, match="Choose another folder with --out"):
        shown(tmp_path / "taken" / "there")
