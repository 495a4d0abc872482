"""The comparison of methods: its answers are right for scores whose truth is known, and one task runs from end to end."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from benchmarks.methods.comparison_frame import REFERENCE, comparison_frame, failures, label, reference_of
from benchmarks.methods.contenders import CONTENDERS, TRIES
from benchmarks.methods.costs import measured_costs
from benchmarks.methods.printed_tables import answers_text, defaults_text, front_table
from benchmarks.methods.published import TITLES, publish
from benchmarks.methods.questions import ABOUT_ONE, answers, by_data_set, chosen_by_validation
from benchmarks.methods.scoring import SCORES, SHIFT_SCORES, WAYS
from benchmarks.methods.seed_differences import common_spread, difference, differences_from
from benchmarks.methods.study import Study
from benchmarks.methods.table_ranks import table_ranks
from benchmarks.methods.tasks import TASKS, Task
from benchmarks.methods.test_chance import DRAWS, SCORES_WITH_CHANCE, deviations, packed, unpacked
from benchmarks.methods.trained_posteriors import Recipe
from scipy import stats

from calibayes import metrics
from calibayes.randomness import generator_for


def _row(task: str, base: str, method: str, seed: int, worse: float) -> dict[str, Any]:
    """A row whose scores are ``worse`` than 0.5 by a known amount, and by chance."""
    chance = np.random.default_rng([seed, *f"{task} {base} {method}".encode()]).normal(0, 0.001)
    value = 0.5 + worse + chance
    scores = {way: dict.fromkeys((*SCORES, "set_size", "set_coverage"), value) for way in WAYS}
    return {
        "task": task,
        "base": base,
        "method": method,
        "title": method,
        "seed": seed,
        "cost": 4.0 if method == "ensemble" else 1.0,
        "prediction": None,
        "passes": 1,
        "test": scores,
        "validation": scores,
        "cross_validated_nll": dict.fromkeys(WAYS, value),
        "shift": {severity: {way: dict.fromkeys(SHIFT_SCORES, value) for way in WAYS} for severity in ("1", "3", "5")},
        "outsiders": {},
    }


WORSE = {
    ("plain", "fnn"): 0.0,
    ("plain", "ca-fnn"): 0.0,
    ("plain", "bnn"): -0.04,
    ("plain", "ca-bnn"): 0.0,
    ("plain", "ensemble"): -0.06,
    ("regularised", "fnn"): -0.02,
}
ROWS = [
    _row(task, base, method, seed, worse)
    for task in ("newsgroups", "table-iris", "table-wine", "table-heart", "table-pima")
    for (base, method), worse in WORSE.items()
    for seed in range(5)
]


def _answer(question: str, data: str) -> Any:
    return next(each for each in answers(comparison_frame(ROWS)) if question in each.question and each.data == data)


def test_a_known_difference_is_found() -> None:
    part = by_data_set(comparison_frame(ROWS))["newsgroups"]
    found = difference(part, "nll", ("plain", "bnn", "best"), REFERENCE, comparisons=20)
    assert found.low < -0.04 < found.high
    assert found.clearly == -1
    assert difference(part, "nll", ("plain", "ca-fnn", "best"), REFERENCE, comparisons=20).clearly == 0


def test_tables_are_paired_by_table() -> None:
    part = by_data_set(comparison_frame(ROWS))["tables"]
    assert difference(part, "nll", ("plain", "bnn", "best"), REFERENCE).pairs == 4


def test_a_common_spread_is_found() -> None:
    generator = np.random.default_rng(0)
    alike = common_spread(generator.normal(0, 0.5, (5, 4000)))
    assert alike.variance == pytest.approx(0.25, rel=0.05)
    assert alike.freedom > 50
    variances = 0.25 * 6 / generator.chisquare(6, 4000)  # as if each were known by six more seeds
    unlike = common_spread(generator.normal(0, np.sqrt(variances), (5, 4000)))
    assert unlike.variance == pytest.approx(0.25, rel=0.1)
    assert unlike.freedom == pytest.approx(6, rel=0.2)


def test_intervals_hold_as_often_as_they_say_and_are_narrower_for_what_methods_have_in_common() -> None:
    generator, held, widths, alone = np.random.default_rng(1), [], [], []
    methods = [f"method{place}" for place in range(24)]
    for _ in range(40):
        spreads = 0.01 * np.sqrt(8 / generator.chisquare(8, len(methods)))
        rows = [
            {"task": "one", "base": "plain", "method": name, "way": "plain", "seed": seed, "nll": value}
            for name, spread in zip(["fnn", *methods], [0.0, *spreads], strict=True)
            for seed, value in enumerate(generator.normal(0, spread, 5))
        ]
        cells = [("plain", name, "plain") for name in methods]
        found = differences_from(pd.DataFrame(rows), "nll", cells, ("plain", "fnn", "plain"))
        held.append(all(each.low <= 0 <= each.high for each in found.values()))
        widths += [each.high - each.low for each in found.values()]
        by_itself = [row["nll"] for row in rows if row["method"] == methods[0]]
        alone.append(2 * stats.t.ppf(1 - 0.025 / len(methods), 4) * np.std(by_itself, ddof=1) / np.sqrt(5))
    assert np.mean(held) >= 0.85  # 95 % of 40, and chance
    assert np.mean(widths) < 0.6 * np.mean(alone)


def test_a_method_that_failed_on_a_seed_is_never_clearly_better() -> None:
    rows = [row for row in ROWS if row["task"] == "newsgroups"]
    rows = [row for row in rows if (row["method"], row["seed"]) != ("bnn", 2)]
    found = difference(comparison_frame(rows), "nll", ("plain", "bnn", "best"), REFERENCE)
    assert (found.pairs, found.missing, found.clearly) == (4, 1, 0)
    assert found.high < 0


def test_chance_in_the_test_examples_widens_an_interval() -> None:
    rows = [dict(row) for row in ROWS if row["task"] == "newsgroups"]
    draws = torch.linspace(-0.02, 0.02, DRAWS)
    for row in rows:
        row["chance"] = {way: {"nll": packed(draws if row["method"] == "bnn" else 0 * draws)} for way in WAYS}
    cell = ("plain", "bnn", "best")
    without, found = (difference(comparison_frame(each), "nll", cell, REFERENCE) for each in (ROWS[:30], rows))
    assert found.value == without.value
    both = np.hypot(without.high - without.value, stats.t.ppf(0.975, DRAWS - 1) * float(draws.std()))
    assert found.high - found.value == pytest.approx(both, rel=1e-3)


def test_draws_of_examples_are_scored_as_metrics_score_them() -> None:
    generator = torch.Generator().manual_seed(0)
    probs = torch.randn(200, 3, generator=generator, dtype=torch.float64).softmax(1)
    y = torch.randint(3, (200,), generator=generator)
    drawn = torch.randint(200, (DRAWS, 200), generator=generator_for(torch.device("cpu"), 0, "test examples"))
    found = deviations([(probs, y)])
    for score in SCORES_WITH_CHANCE:
        metric = getattr(metrics, score)
        expected = [metric(probs[rows], y[rows]) - metric(probs, y) for rows in drawn]
        assert found[score].tolist() == pytest.approx(expected, abs=1e-12)
        assert unpacked(packed(found[score])).tolist() == pytest.approx(expected, abs=1e-6)


def test_methods_on_one_base_are_compared_with_its_network() -> None:
    rows = [row | {"base": "regularised"} for row in ROWS if row["task"] == "newsgroups" and row["base"] == "plain"]
    frame = comparison_frame([*ROWS, *(row | {"task": "cifar10"} for row in rows)])
    assert reference_of(by_data_set(frame)["cifar10"]) == ("regularised", "fnn", "temperature")
    told = next(each for each in answers(frame) if each.data == "cifar10")
    assert told.sentence.startswith("Yes: 1 of 4 do, first BNN")
    assert chosen_by_validation(frame, ABOUT_ONE)[0][1] == "bnn"  # as without that data set


def test_answers_follow_the_scores() -> None:
    one = _answer("cost of one training", "newsgroups")
    assert re.match(
        r"Yes: 2 of 5 do, first BNN \+ scaling with NLL -0\.0[34]\d\d \(-0\.04\d\d to -0\.0[34]\d\d\)", one.sentence
    )
    assert _answer("cost of four", "newsgroups").sentence.startswith("Yes: 3 of 6 do, first ensemble")
    term = _answer("calibration term help", "newsgroups").sentence
    assert term.startswith("Of 8 differences 0 are clearly better and 4 clearly worse with it")
    share = _answer("regularisation", "newsgroups").sentence
    bayes, alone, between = (float(each) for each in re.findall(r"([+-][\d.]+) points", share))
    assert (bayes, alone, between) == pytest.approx((-4, -2, -2), abs=0.2)
    assert share.endswith("the Bayesian network is clearly ahead.")
    assert _answer("temperature enough", "newsgroups").sentence.startswith(
        "No: 3 of 6 methods are clearly lower, most ensemble"
    )


def test_the_default_is_chosen_by_validation_scores_alone() -> None:
    rows = json.loads(json.dumps(ROWS))
    for row in rows:
        if row["method"] == "bnn":
            for way in WAYS:
                row["cross_validated_nll"][way] += 1.0  # its test scores stay the best
    assert chosen_by_validation(comparison_frame(ROWS), ABOUT_ONE)[0][1] == "bnn"
    assert chosen_by_validation(comparison_frame(rows), ABOUT_ONE)[0] == ("regularised", "fnn", "best")


def test_ranks_over_tables() -> None:
    cells = [("plain", "fnn", "temperature"), ("plain", "bnn", "best"), ("regularised", "fnn", "best")]
    ranks = table_ranks(by_data_set(comparison_frame(ROWS))["tables"], "nll", cells)
    assert ranks.cells == (cells[1], cells[2], cells[0])
    assert ranks.means == (1.0, 2.0, 3.0)
    assert ranks.alike == ((0, 2),)  # four tables are too few for the tests


def test_failures_are_lines_of_the_table() -> None:
    rows = [*ROWS, {"task": "newsgroups", "base": "plain", "method": "swag", "seed": 0, "error": "DivergedError: NaN"}]
    assert len(comparison_frame(rows)) == len(ROWS) * len(WAYS)
    assert failures(rows) == [
        {"task": "newsgroups", "base": "plain", "method": "swag", "seed": 0, "error": "DivergedError: NaN"}
    ]


def test_every_method_has_the_same_number_of_tries_or_none() -> None:
    assert {len(each.tries) for each in CONTENDERS} == {1, TRIES}
    for task in TASKS.values():
        assert task.settings_from or len(task.bases["plain"]) == 1 or {len(each) for each in task.bases.values()} == {TRIES}


def test_methods_share_trained_points() -> None:
    base = {"learning_rate": 0.001, "schedule": "cosine", "epochs": 2}
    mixture = Recipe(
        task="newsgroups", method="mixture", seed=3, base=base, tried={"beta": 0.1, "prior_std": 0.3, "init_std": 0.01}
    )
    members = mixture.starts_from()
    points = [part for member in members for part in member.starts_from()]
    ensemble = Recipe(task="newsgroups", method="ensemble", seed=3, base=base)
    assert [each.key for each in points] == [each.key for each in ensemble.starts_from()]
    assert points[0].key == Recipe(task="newsgroups", method="fnn", seed=3, base=base).key
    with_term = Recipe(task="newsgroups", method="ca-ensemble", base=base, tried={"lam": 5.0}).starts_from()
    assert {(each.method, each.tried["lam"]) for each in with_term} == {("ca-fnn", 5.0)}


def test_the_front_table_shows_means_and_marks_clear_differences() -> None:
    lines = front_table(comparison_frame(ROWS), {"newsgroups": "20 Newsgroups", "tables": "tables"}).splitlines()
    shown = {line[:42].strip(): line[42:].split() for line in lines[2:]}
    assert set(shown) == {
        "FNN",
        "FNN + T",
        "CA-FNN + scaling",
        "BNN + scaling",
        "CA-BNN + scaling",
        "FNN + scaling, regularised",
    }
    for row, mark, nll in (("BNN + scaling", "▼", 0.46), ("CA-FNN + scaling", "", 0.5), ("FNN", "", 0.5)):
        for cell in (shown[row][0], shown[row][3]):
            assert cell.lstrip("0123456789.") == mark
            assert float(cell.rstrip("▼▲")) == pytest.approx(nll, abs=0.002)


def test_texts_of_the_answers_show_what_is_clear() -> None:
    text = answers_text(answers(comparison_frame(ROWS)), {"newsgroups": "20 Newsgroups", "tables": "the tables"})
    assert "  20 Newsgroups: Yes: 2 of 5 do, first BNN + scaling" in text
    assert re.search(r"BNN \+ scaling: nll: -0\.04\d\d \(-0\.04\d\d to -0\.03\d\d\)", text)
    assert "At most 2 plain trainings: BNN + scaling" in defaults_text(comparison_frame(ROWS), TITLES)


def test_labels() -> None:
    assert label("regularised", "fnn", "temperature") == "FNN + T, regularised"


@pytest.mark.slow
def test_a_task_from_end_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = {"learning_rate": 0.003, "schedule": "cosine", "epochs": 2}
    methods = (
        *("fnn", "bnn", "laplace", "swag", "warm-mean-field", "natural-gradient", "mc-dropout"),
        *("ensemble", "ca-fnn", "ca-ensemble", "logistic-regression"),
    )
    task = Task(
        name="table-iris",
        title="iris",
        bases={"plain": (base, base | {"epochs": 3}), "regularised": (base | {"ema": 0.9, "input_dropout": 0.1},)},
        seeds=2,
        members=2,
        samples=4,
        methods=methods,
    )
    monkeypatch.setitem(TASKS, "table-iris", task)
    rows = Study(task, tmp_path, workers=1).run()
    assert failures(rows) == []
    assert len(rows) == 2 * (2 * len(methods) - 1)
    assert {row["passes"] for row in rows if row["method"] in ("fnn", "bnn", "ensemble")} == {1, 4, 2}
    (tmp_path / "table-iris" / "results.json").write_text(json.dumps({"task": task.title, "rows": rows}))
    costs = measured_costs(task, rows, repeats=1)
    assert costs["plain"]["fnn"]["training"] == 1.0
    assert costs["plain"]["ensemble"]["training"] > 1.0
    (tmp_path / "table-iris" / "costs.json").write_text(json.dumps({"costs": costs}))
    publish(tmp_path)
    assert "FNN + T" in (tmp_path / "tables" / "table.txt").read_text()
    again = Study(task, tmp_path, workers=1).run()
    assert [row["test"] for row in again] == [row["test"] for row in rows]
