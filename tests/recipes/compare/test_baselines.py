"""The baselines: scikit-learn's classifiers, calibrated by cross-validation on the training examples alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.recipes.compare.blobs import BLOBS, MISLED, TINY, Shown, computed, lasting, load, shown

from calibayes.recipes.compare import FASHION_MNIST, PlainInputs, Task, compare, jobs
from calibayes.recipes.compare.baselines import BaselineChoice, fit_baseline, plain_inputs, suitable_baselines

BOTH = ("logistic-regression", "boosted-trees")
WITH = replace(TINY, epochs=1, methods=("fnn",), baselines=BOTH)


def points(n: int = 300, seed: int = 0) -> tuple[PlainInputs, Any]:
    """Rows of two numbers and a category that no line separates, with gaps, and the classes of the three parts."""
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(3 * n, 3)).astype(np.float32)
    x[:, 2] = generator.integers(0, 4, 3 * n)
    y = ((x[:, 0] * x[:, 1] > 0) ^ (x[:, 2] == 2) ^ (generator.random(3 * n) < 0.1)).astype(np.int64)
    x[generator.random((3 * n, 3)) < 0.03] = np.nan
    first, second, third = np.split(x, 3)
    return PlainInputs(kind="table", train=first, validation=second, test=third, categorical=(2,)), np.split(y, 3)


@pytest.mark.parametrize("part", ["validation", "test"])
def test_boosted_trees_are_scikit_learns_with_native_categories_and_gaps(part: str) -> None:
    inputs, targets = points()
    probs, choice = fit_baseline("boosted-trees", inputs, targets[0], 2, 7, part=part)
    trees = HistGradientBoostingClassifier(categorical_features=[2], random_state=7)
    folds = StratifiedKFold(5, shuffle=True, random_state=7)
    model = CalibratedClassifierCV(trees, method=choice.calibration, cv=folds).fit(inputs.train, targets[0])
    np.testing.assert_allclose(probs, model.predict_proba(getattr(inputs, part)), atol=2e-6)
    assert (probs.argmax(1) == targets[1 + (part == "test")]).mean() > 0.7  # no line does better than by chance


def test_logistic_regression_is_scikit_learns_on_standardised_numbers() -> None:
    splits = load(150, 80, 90)
    train, validation, test = (part[0].numpy() for part in (splits.train, splits.validation, splits.test))
    inputs, targets = PlainInputs(kind="table", train=train, validation=validation, test=test), splits.train[1].numpy()
    probs, choice = fit_baseline("logistic-regression", inputs, targets, 3, 1, part="test")
    model = make_pipeline(StandardScaler(), LogisticRegression(C=choice.penalty))
    folds = StratifiedKFold(5, shuffle=True, random_state=1)
    calibrated = CalibratedClassifierCV(model, method=choice.calibration, cv=folds).fit(train, targets)
    np.testing.assert_allclose(probs, calibrated.predict_proba(test), atol=1e-5)


def test_gaps_and_categories_reach_the_logistic_regression() -> None:
    inputs, _ = points()
    generator = np.random.default_rng(1)
    targets = (np.nan_to_num(inputs.train[:, 2], nan=9) == 2) | np.isnan(inputs.train[:, 0])
    targets = (targets ^ (generator.random(len(targets)) < 0.02)).astype(np.int64)
    probs, _ = fit_baseline("logistic-regression", inputs, targets, 2, 0, part="test")
    expected = (np.nan_to_num(inputs.test[:, 2], nan=9) == 2) | np.isnan(inputs.test[:, 0])
    assert (probs.argmax(1) == expected).mean() > 0.98


@pytest.mark.parametrize("name", BOTH)
def test_validation_and_test_rows_have_no_say_in_a_fit(name: str) -> None:
    inputs, targets = points(120)
    other = replace(inputs, validation=inputs.test, test=inputs.validation[:10])
    first, choice = fit_baseline(name, inputs, targets[0], 2, 0, part="test")
    second, again = fit_baseline(name, other, targets[0], 2, 0, part="validation")
    assert choice == again
    np.testing.assert_array_equal(first, second)
    known, _ = fit_baseline(name, inputs, targets[0], 2, 0, part="test", choice=choice)
    np.testing.assert_array_equal(first, known)  # what was chosen before need not be found out again


def test_the_calibration_is_the_one_that_does_best_in_cross_validation() -> None:
    # Right with a probability of 0.5, 0.9 or 1 by turns, whatever the score says: a step that only isotonic can follow.
    generator = np.random.default_rng(0)
    x = generator.uniform(-3, 3, size=(4000, 1)).astype(np.float32)
    steps = np.select([x[:, 0] < -1, x[:, 0] < 1], [0.05, 0.5], 0.95)
    y = (generator.random(4000) < steps).astype(np.int64)
    stepped = PlainInputs(kind="table", train=x[:2000], validation=x[2000:], test=x[2000:])
    _, choice = fit_baseline("logistic-regression", stepped, y[:2000], 2, 0, part="test")
    assert choice.calibration == "isotonic"
    smooth = (generator.random(4000) < 1 / (1 + np.exp(-x[:, 0]))).astype(np.int64)
    _, other = fit_baseline("logistic-regression", stepped, smooth[:2000], 2, 0, part="test")
    assert other.calibration != "isotonic"


def test_texts_are_tf_idf_of_words_and_pairs() -> None:
    generator = np.random.default_rng(0)
    words = np.array(["sea", "sky", "sun", "salt", "wing", "and", "the"])
    texts = [generator.choice(words, 6, p=np.roll([0.3, 0.1, 0.1, 0.2, 0.1, 0.1, 0.1], k % 2)).tolist() for k in range(120)]
    targets = np.arange(120) % 2
    inputs = PlainInputs(kind="texts", train=texts[:60], validation=texts[60:90], test=texts[90:])
    probs, choice = fit_baseline("logistic-regression", inputs, targets[:60], 2, 0, part="test")
    joined = [" ".join(text) for text in texts]
    vectors = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), min_df=2)
    train, test = vectors.fit_transform(joined[:60]), vectors.transform(joined[90:])
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    model = CalibratedClassifierCV(LogisticRegression(C=choice.penalty), method=choice.calibration, cv=folds)
    np.testing.assert_allclose(probs, model.fit(train, targets[:60]).predict_proba(test), atol=1e-5)


def test_rare_and_absent_classes_are_no_obstacle() -> None:
    inputs, targets = points(60)
    few = targets[0].copy()
    few[:3] = 2  # three of a class: too few to choose a calibration by
    probs, choice = fit_baseline("boosted-trees", inputs, few, 4, 0, part="test")
    assert choice == BaselineChoice(0.0, "sigmoid")
    assert probs.shape == (60, 4)
    assert (probs[:, 3] > 0).all()
    assert (probs[:, 3] < 1e-5).all()  # it does not occur in the training rows
    np.testing.assert_allclose(probs.sum(1), 1, rtol=1e-6)
    few[1:3] = 0
    assert fit_baseline("logistic-regression", inputs, few, 3, 0, part="test")[1].calibration == "none"


def test_baselines_are_left_out_where_they_do_not_suit_and_it_is_said() -> None:
    table, _ = points(20)
    assert suitable_baselines(table, BOTH, "rows") == (BOTH, ())
    texts = PlainInputs(kind="texts", train=[], validation=[], test=[])
    assert suitable_baselines(texts, BOTH, "texts") == (
        ("logistic-regression",),
        ("Left out: boosted trees, because they are for tables, not for texts.",),
    )
    many = np.broadcast_to(np.float32(0), (30_000, 1000))
    pixels = PlainInputs(kind="pixels", train=many, validation=many, test=many)
    kept, notes = suitable_baselines(pixels, BOTH, "images")
    assert kept == ()
    assert "Left out: logistic regression, because 30,000,000 pixels take it too long." in notes
    assert suitable_baselines(None, ("boosted-trees",), "graphs")[0] == ()
    assert suitable_baselines(table, (), "rows") == ((), ())


def test_images_are_taken_as_pixels() -> None:
    settings = replace(TINY, train=30, validation=20, test=10)
    splits = FASHION_MNIST.load(30, 20, 10)
    inputs = plain_inputs(FASHION_MNIST, settings, splits)
    assert inputs is not None
    assert inputs.kind == "pixels"
    np.testing.assert_array_equal(inputs.test.reshape(10, 28, 28), splits.test[0][:, 0].numpy())


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    return shown(tmp_path_factory.mktemp("baselines") / "there", WITH)


def test_baselines_take_part_in_tables_files_and_differences(first: Shown) -> None:
    names = ["logistic regression", "boosted trees", "FNN", "FNN + T"]
    assert [each["name"] for each in first.numbers["contenders"]] == names
    assert len(first.numbers["differences"]) == len(first.numbers["validation_differences"]) == 6
    table = (first.folder / "table.txt").read_text()
    for name in names:
        assert sum(line.startswith(f"  {name}  ") for line in table.splitlines()) == 2
    for each in first.numbers["contenders"][:2]:
        assert each["baseline"]
        assert [seed["seed"] for seed in each["seeds"]] == [0, 1]
        assert {seed["chosen"]["calibration"] for seed in each["seeds"]} <= {"sigmoid", "isotonic", "temperature"}
        for seed in each["seeds"]:
            assert (first.folder / seed["predictions"]).exists()
    page = (first.folder / "report.html").read_text()
    assert page.index("What to use") < page.index("Verdict") < page.index("All metrics")
    assert "This table is wider than the page: scroll it sideways to see all columns." in page
    assert first.numbers["verdict"]["reason"].replace("'", "&#39;") in page
    assert "would take its ECE" not in page
    assert "would fix" not in page


def test_what_comes_next_is_about_the_recommended_one(first: Shown) -> None:
    verdict = first.numbers["verdict"]
    _, following = first.out.split("\nNext:\n")
    ((title, command),) = verdict["commands"]
    assert title == "To train it on data of your own:"
    assert command in following
    use = next(each for each in first.numbers["contenders"] if each["name"] == verdict["recommended"])
    assert f"every metric of {use['name']}: calibayes evaluate {first.folder / use['seeds'][0]['predictions']}" in following


@pytest.mark.slow
def test_baselines_are_kept_and_resumed(first: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    def watched(name: str, *args: Any, **others: Any) -> Any:
        done.append(f"{name} {others['part']}")
        return fit_baseline(name, *args, **others)

    monkeypatch.setattr(jobs, "fit_baseline", watched)
    again = computed(first.folder, WITH)
    assert done == []
    assert lasting(again)["contenders"] == first.numbers["contenders"]
    computed(first.folder, replace(WITH, epochs=2))  # which is nothing to a baseline
    assert done == []
    computed(first.folder, replace(WITH, seeds=3, baselines=("boosted-trees",)))
    assert done == ["boosted-trees validation", "boosted-trees test"]
    done.clear()
    compare(MISLED, WITH, folder=first.folder / "runs", workers=1)  # other test labels: only predictions are made again
    assert {each.split()[1] for each in done} == {"test"}


def other_load(train: int, validation: int, test: int) -> PlainInputs:
    splits = load(train, validation, test)
    first, second, third = (-part[0].numpy() for part in (splits.train, splits.validation, splits.test))
    return PlainInputs(kind="table", train=first, validation=second, test=third)


def test_other_inputs_of_baselines_are_another_training() -> None:
    def key(task: Task) -> str:
        run = next(each for each in WITH.candidates() if each.scheme == "boosted-trees")
        return jobs.TrainingRecords.of(task, WITH).training(run).key

    assert key(BLOBS) != key(replace(BLOBS, plain_inputs=other_load))


@pytest.mark.slow
def test_workers_fit_the_same_baselines(first: Shown, tmp_path: Path) -> None:
    two = compare(BLOBS, WITH, folder=tmp_path, workers=2)
    for each, known in zip(two.entries.values(), first.numbers["contenders"], strict=True):
        assert [scores.nll for scores in each.test] == pytest.approx([seed["test"]["nll"] for seed in known["seeds"]], rel=1e-6)
