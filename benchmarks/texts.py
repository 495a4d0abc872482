"""Training on a file of texts with all defaults, beside a calibrated linear model: NLL, ECE, accuracy, Brier score, time."""

from __future__ import annotations

import argparse
import itertools
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import calibayes as cb
from benchmarks.report import RESULTS, Report
from benchmarks.tabular_summary import METRICS, probabilities, scored, versions
from benchmarks.texts_methods import EFFORT, LINEAR, METHODS, OURS
from benchmarks.texts_sets import SETS, load
from calibayes.metrics.bins import DEFAULT_BINS
from calibayes.recipes.compare.difference_interval import Estimate, mean_difference
from calibayes.sweeps import Sweep

__all__ = ["COMMAND", "WHAT", "Sizes", "binned_ece", "difference", "per_example", "run", "section", "tell", "train", "trial"]

Array = npt.NDArray[Any]
WHAT = "scores on the official test parts of texts, and differences with 95 % intervals"
COMMAND = "make bench-texts"
_FOLDER = RESULTS / "texts"
_VERSION = 1  # of what a trial measures
_PACKAGES = ("scikit-learn", "lightgbm", "numpy", "pandas")
_DRAWS = 1000  # of the test texts, with replacement


@dataclass(frozen=True)
class Sizes:
    """How much is trained.

    Attributes:
        sets: the sets of texts.
        repeats: how many seeds.
        repeats_of_draws: how many for small sets, where each seed draws other training texts too.
        small: train for a moment only, to see that it runs.
    """

    sets: tuple[str, ...]
    repeats: int
    repeats_of_draws: int
    small: bool = False

    def seeds(self, name: str) -> range:
        """The seeds of a set."""
        return range(self.repeats if SETS[name][1] is None else self.repeats_of_draws)


_FULL = Sizes(tuple(SETS), repeats=3, repeats_of_draws=6)
_QUICK = Sizes(("clinc150-3000",), repeats=1, repeats_of_draws=1, small=True)


def trial(settings: dict[str, Any]) -> dict[str, Any]:
    """Train one classifier on a set of texts and score it on the official test part."""
    texts = load(settings["set"], settings["repeat"])
    with import_module("threadpoolctl").threadpool_limits(1):
        begin = time.process_time()
        trained = METHODS[settings["method"]](texts, settings["repeat"], settings["small"])
        seconds = time.process_time() - begin
        probs = trained.predict(texts.test)
    return {
        "scores": scored(probs, texts.test_targets),
        "examples": per_example(probs, texts.test_targets),
        "train": len(texts.train),
        "cpu_seconds": seconds - trained.choice_seconds,
        "choice_seconds": trained.choice_seconds,
        "chosen": trained.chosen,
    }


def per_example(probs: Array, targets: Array) -> dict[str, Array]:
    """What the scores are made of: each text's log-loss, Brier score, confidence and correctness."""
    probs = probabilities(probs)
    rows = np.arange(len(targets))
    truth = np.zeros_like(probs)
    truth[rows, targets] = 1.0
    return {
        "nll": -np.log(probs[rows, targets]),
        "brier": ((probs - truth) ** 2).sum(1),
        "confidence": probs.max(1),
        "accuracy": (probs.argmax(1) == targets).astype(np.float64),
    }


def section(report: Report, *, quick: bool = False) -> None:
    """Train, score and tell; what is in the folder of results from before is not trained again."""
    if quick:
        report.tell("--quick: one small set and too short trainings, so that these numbers say nothing")
        with tempfile.TemporaryDirectory() as folder:
            run(report, _QUICK, Path(folder), workers=1)
    else:
        run(report, _FULL, _FOLDER, workers=None)


def train(sizes: Sizes, folder: Path, workers: int | None, methods: Sequence[str] | None = None, *, progress: bool) -> Sweep:
    """Train what is missing in the folder, with the first seed on every set, then with the next."""
    every = [
        {"set": name, "method": method, "repeat": repeat, "small": sizes.small}
        for repeat in range(max(sizes.repeats, sizes.repeats_of_draws))
        for method in methods or METHODS for name in sizes.sets if repeat in sizes.seeds(name)
    ]  # fmt: skip
    return cb.sweep(
        trial, every, folder, version=_VERSION, label="{set}-{method}-{repeat}", workers=workers, threads=1, progress=progress
    )


def run(report: Report, sizes: Sizes, folder: Path, workers: int | None) -> Sweep:
    """Train what is missing in the folder, and tell of all."""
    sweep = train(sizes, folder, workers, progress=workers is None)
    tell(report, sizes, sweep)
    return sweep


def tell(report: Report, sizes: Sizes, sweep: Sweep) -> None:
    """Tell what was compared, the scores on each set, and how far the default is from the linear model."""
    report.record |= {
        "versions": versions(*_PACKAGES),
        "effort": EFFORT,
        "seeds": {name: list(sizes.seeds(name)) for name in sizes.sets},
    }
    report.tell(", ".join(f"{name} {number}" for name, number in versions(*_PACKAGES).items()) + "\n")
    for name, text in EFFORT.items():
        report.tell_wrapped(text, f"  {name:<30}", " " * 32)
    report.tell_wrapped(
        f"Seeds 0 to {sizes.repeats - 1}; 0 to {sizes.repeats_of_draws - 1} for newsgroups-2000 and clinc150-3000, whose "
        "training texts are drawn anew with each (first there were three of these, too: too few to tell anything). "
        "CPU seconds are the process's own, of training alone, with one thread, beside other work on the machine; those of "
        "choosing between ways of calibration are left out."
    )
    done = {(each.settings["set"], each.settings["method"], each.settings["repeat"]): each.result for each in sweep}
    columns = (*METRICS, "cpu_seconds")
    report.tell(f"\n  {'means over seeds':<18}{'':<30}{'train':>8}" + "".join(f"{name:>10}" for name in (*METRICS, "CPU s")))
    means: dict[str, dict[str, float]] = {}
    for name, method in itertools.product(sizes.sets, METHODS):
        results = [result for key, result in done.items() if key[:2] == (name, method) and result is not None]
        if results:
            row = {metric: float(np.mean([{**each, **each["scores"]}[metric] for each in results])) for metric in columns}
            cells = "".join(f"{row[metric]:10.4f}" for metric in METRICS)
            report.tell(f"  {name:<18}{method:<30}{results[0]['train']:8,}{cells}{row['cpu_seconds']:10.1f}")
            means[f"{name}, {method}"] = {"train": results[0]["train"], "seeds": len(results), **row}
        errors = [each.error for each in sweep.failed if (each.settings["set"], each.settings["method"]) == (name, method)]
        for error in errors[:1]:
            if error is not None:
                report.tell(
                    f"  {name:<18}{method:<30}trainings that failed: {len(errors)}, {error.type}: {error.message}"[:250]
                )
    chosen = {", ".join(map(str, key)): result["chosen"] for key, result in done.items() if result is not None}
    failed = [{**each.settings, "error": str(each.error)} for each in sweep.failed]
    report.record |= {"means": means, "chosen": chosen, "failed": failed}
    _tell_differences(report, sizes, done)


def _tell_differences(report: Report, sizes: Sizes, done: dict[tuple[str, str, int], dict[str, Any] | None]) -> None:
    report.tell(f"\n  {OURS} less {LINEAR}, intervals that hold together with 95 % for the sets of a column (Bonferroni)")
    report.tell("  " + " " * 18 + "".join(f"{metric:>9}{'95 % interval':>20}" for metric in METRICS))
    record: dict[str, Any] = {}
    for name in sizes.sets:
        pairs = [(done.get((name, OURS, seed)), done.get((name, LINEAR, seed))) for seed in sizes.seeds(name)]
        whole = [(_arrays(ours), _arrays(linear)) for ours, linear in pairs if ours is not None and linear is not None]
        if not whole:
            report.tell(f"  {name:<18}  no result")
            continue
        estimates = {metric: difference(whole, metric, comparisons=len(sizes.sets)) for metric in METRICS}
        cells = [f"{each.value:+9.4f}{f'{each.low:+.4f} to {each.high:+.4f}':>20}" for each in estimates.values()]
        report.tell(f"  {name:<18}" + "".join(cells))
        record[name] = {metric: estimate._asdict() for metric, estimate in estimates.items()}
    report.record[f"less {LINEAR}"] = record


def _arrays(result: dict[str, Any]) -> dict[str, Array]:
    return {name: np.asarray(values) for name, values in result["examples"].items()}  # files hold tensors


def difference(pairs: Sequence[tuple[dict[str, Array], dict[str, Array]]], metric: str, *, comparisons: int) -> Estimate:
    """Compare two classifiers, one pair for each seed, for chance in the trainings and in the test texts.

    Args:
        pairs: what `per_example` returns, of the first and of the second, on the same test texts for every seed.
        metric: a name of `METRICS`.
        comparisons: how many intervals shall hold together.
    """
    n = len(pairs[0][0]["nll"])
    if metric != "ece":
        gaps = np.array([first[metric] - second[metric] for first, second in pairs])
        return mean_difference(gaps.mean(1).tolist(), float(gaps.mean(0).var(ddof=1)) / n, comparisons=comparisons)
    generator = np.random.default_rng(0)
    counts = generator.multinomial(n, np.full(n, 1 / n), size=_DRAWS)
    values = [
        [binned_ece(each["confidence"], each["accuracy"], np.vstack((np.ones(n), counts))) for each in pair] for pair in pairs
    ]
    gaps = np.array([first - second for first, second in values])
    return mean_difference(gaps[:, 0].tolist(), float(gaps[:, 1:].mean(0).var(ddof=1)), comparisons=comparisons)


def binned_ece(confidence: Array, correct: Array, weights: Array) -> Array:
    """The expected calibration error of equal-width bins, for each line of weights of the examples."""
    bins = np.clip(np.ceil(confidence * DEFAULT_BINS).astype(int) - 1, 0, DEFAULT_BINS - 1)
    gaps = np.zeros((len(confidence), DEFAULT_BINS))
    gaps[np.arange(len(bins)), bins] = confidence - correct
    return np.abs(weights @ gaps).sum(1) / weights.sum(1)  # type: ignore[no-any-return]


def _main() -> None:
    """Train some of the classifiers into the folder of results, for `make bench-texts` to find there."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.texts", description=_main.__doc__)
    parser.add_argument("methods", nargs="*", choices=[*METHODS, []], metavar="method", help="; ".join(METHODS))
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS), metavar="SET", help="by default all")
    parser.add_argument("--report", action="store_true", help="write down what is done so far, and how much is missing")
    arguments = parser.parse_args()
    if arguments.methods:
        sizes = replace(_FULL, sets=tuple(arguments.sets))
        sweep = train(sizes, _FOLDER, 1, arguments.methods, progress=True)
        print(f"{len(sweep)} trials, {len(sweep.failed)} of them failed.")
    if arguments.report:
        report, done = Report("texts", WHAT, COMMAND), cb.sweeps.read(_FOLDER)
        report.tell_missing([each.settings["method"] for each in done], METHODS, sum(len(_FULL.seeds(name)) for name in SETS))
        tell(report, _FULL, done)
        report.write()


if __name__ == "__main__":
    _main()
