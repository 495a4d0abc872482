"""`CalibayesClassifier` beside scikit-learn's classifiers on real tables: accuracy, NLL, Brier score and ECE."""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import calibayes as cb
from benchmarks.report import RESULTS, Report
from benchmarks.tabular_sets import KEEL, OWN, load
from calibayes.metrics import accuracy, brier, ece, nll
from calibayes.recipes.compare.difference_interval import mean_difference
from calibayes.sweeps import Sweep

__all__ = ["COMMAND", "METHODS", "METRICS", "WHAT", "Sizes", "run", "section", "tell", "trial"]

WHAT = "means over splits of real tables, and differences with 95 % intervals over tables"
COMMAND = "make bench-tabular"  # in an environment of its own
METRICS = {"accuracy": accuracy, "nll": nll, "brier": brier, "ece": ece}
_BASE = "MLPClassifier"
_SMALLEST = 1e-15  # a probability of zero where the truth is would make a whole column infinite


@dataclass(frozen=True)
class Sizes:
    """How much is trained.

    Attributes:
        sets: the tables.
        repeats: how many splits of each.
        epochs: how long networks are trained; by default as long as each classifier does by itself.
    """

    sets: tuple[str, ...]
    repeats: int
    epochs: int | None = None


_FULL = Sizes((*OWN, *KEEL), repeats=2)
_QUICK = Sizes(("iris", "wine"), repeats=2, epochs=5)


def _perceptron(seed: int, epochs: int | None) -> Any:
    return make_pipeline(StandardScaler(), MLPClassifier(max_iter=epochs or 500, random_state=seed))


def _ours(scheme: str, **settings: Any) -> Callable[[int, int | None], Any]:
    def made(seed: int, epochs: int | None) -> Any:
        model = cb.CalibayesClassifier(scheme, random_state=seed, device="cpu", **settings)
        return model if epochs is None else model.set_params(epochs=epochs)

    return made


METHODS: dict[str, Callable[[int, int | None], Any]] = {
    "LogisticRegression": lambda seed, epochs: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    "HistGradientBoosting": lambda seed, epochs: HistGradientBoostingClassifier(max_iter=epochs or 100, random_state=seed),
    _BASE: _perceptron,
    f"{_BASE} + calibration": lambda seed, epochs: CalibratedClassifierCV(_perceptron(seed, epochs)),
    **{f"calibayes {scheme.upper()}": _ours(scheme) for scheme in cb.SCHEMES},
    "calibayes CA-BNN, auto": _ours("ca-bnn", lam="auto", beta="auto"),
}


def trial(settings: dict[str, Any]) -> dict[str, Any]:
    """One classifier trained on 70 % of a table and scored on the rest."""
    x, y = load(settings["table"])
    seed = settings["repeat"]
    x_train, x_test, y_train, y_test = train_test_split(x, y, test_size=0.3, stratify=y, random_state=seed)
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = METHODS[settings["method"]](seed, settings["epochs"]).fit(x_train, y_train)
    probs = np.clip(model.predict_proba(x_test), _SMALLEST, None)
    probs /= probs.sum(1, keepdims=True)
    scores = {name: metric(probs, y_test) for name, metric in METRICS.items()}
    return {**scores, "cpu_seconds": time.process_time() - begin}


def section(report: Report, *, quick: bool = False) -> None:
    """Train, score and tell; what is in the folder of results from before is not trained again."""
    sizes = _QUICK if quick else _FULL
    if quick:
        report.tell("--quick: two tables and too short trainings, so that these numbers say nothing")
        with tempfile.TemporaryDirectory() as folder:
            run(report, sizes, Path(folder), workers=1)
    else:
        run(report, sizes, RESULTS / "tabular", workers=None)


def run(report: Report, sizes: Sizes, folder: Path, workers: int | None) -> Sweep:
    """Train what is missing in the folder, and tell of all."""
    settings = cb.grid(table=sizes.sets, method=list(METHODS), repeat=range(sizes.repeats), epochs=sizes.epochs)
    found = cb.sweep(
        trial, settings, folder, label="{table}-{method}-{repeat}", workers=workers, threads=1, progress=workers is None
    )
    if found.failed:
        report.tell(f"{len(found.failed)} of {len(found)} trials failed, the first with: {found.failed[0].error}")
    frame = found.frame()
    tell(report, frame[frame["error"].isna()])
    return found


def tell(report: Report, frame: pd.DataFrame) -> None:
    """The tables: means over splits for each table, and over all tables how far each method is from the perceptron."""
    means = frame.groupby(["table", "method"])[list(METRICS)].mean()
    for metric in METRICS:
        wide = means[metric].unstack("table").reindex(list(METHODS)).dropna(how="all")
        report.tell(f"\n{metric}: means over {frame['repeat'].nunique()} splits")
        report.tell(" " * 32 + "".join(f"{name[:12]:>13}" for name in wide.columns))
        for method, row in wide.iterrows():
            report.tell(f"    {method:<28}" + "".join(f"{value:13.4f}" for value in row))
        whole = wide.dropna(axis=1)
        report.tell(f"  less that of {_BASE}, over {whole.shape[1]} tables")
        record: dict[str, dict[str, float]] = {}
        for method in whole.index.drop(_BASE):
            differences = (whole.loc[method] - whole.loc[_BASE]).tolist()
            estimate = mean_difference(differences, 0.0)
            record[str(method)] = {"value": estimate.value, "low": estimate.low, "high": estimate.high}
            report.tell(f"    {method:<28}{estimate.value:+13.4f}  ({estimate.low:+.4f} to {estimate.high:+.4f})")
        report.record[metric] = {"means": {str(k): v for k, v in wide.T.to_dict().items()}, f"less {_BASE}": record}
    seconds = frame.groupby("method")["cpu_seconds"].mean().reindex(list(METHODS)).dropna()
    report.record["cpu_seconds"] = seconds.to_dict()
    report.tell("\nCPU seconds to train and predict, on average")
    for method, value in seconds.items():
        report.tell(f"    {method:<28}{value:13.2f}")
