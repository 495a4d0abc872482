"""Which scaling suits a cross-fitted ensemble: test NLL on twenty small tables, chosen on ten, confirmed on the others."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd

from benchmarks.cross_fitted import BASES, FOLDS, REPEATS, SETS, Array, CrossFitted, cross_fitted
from benchmarks.report import RESULTS, Report
from calibayes.metrics import nll
from calibayes.posthoc import PosthocWarning, TemperatureScaling, ensemble_scaling
from calibayes.posthoc.temperature_choice import temperature_or_identity
from calibayes.recipes.compare.difference_interval import mean_difference

__all__ = ["COMMAND", "WHAT", "section"]

WHAT = "test NLL of cross-fitted ensembles by how they are scaled, less that without scaling; 95 % intervals over tables"
COMMAND = ".venv-tabular/bin/python -m benchmarks ensemble-scaling"  # the environment of make bench-tabular, with its tables
_SEEDS = 3
_CHOSEN_ON = SETS[::2]  # every other table in alphabetical order
_SMALLEST = 1e-300


def _average(data: CrossFitted, rounds: int) -> Array:
    return _positive(data.test[:rounds].mean((0, 1), dtype=np.float64))


def _positive(probs: Array) -> Array:
    clipped = np.clip(probs.astype(np.float64), _SMALLEST, None)
    normalized: Array = clipped / clipped.sum(-1, keepdims=True)
    return normalized


def _temperature(probs: Array, targets: Array) -> TemperatureScaling:
    return temperature_or_identity(probs, targets)[0]


def _members_temperature(data: CrossFitted, rounds: int) -> Array:
    """One temperature of all single predictions, applied to the average."""
    probs = data.out_of_fold[:rounds].reshape(-1, data.out_of_fold.shape[-1])
    return _temperature(probs, np.tile(data.targets, rounds)).transform(_average(data, rounds))


def _each_member(data: CrossFitted, rounds: int) -> Array:
    """Each member scaled by its own fold, then averaged: scikit-learn's way."""
    scaled = []
    for repeat in range(rounds):
        for member in range(FOLDS):
            held_out = data.fold[repeat] == member
            scaling = _temperature(data.out_of_fold[repeat, held_out], data.targets[held_out])
            scaled.append(scaling.transform(_positive(data.test[repeat, member])))
    result: Array = np.mean(scaled, axis=0)
    return result


def _averages_temperature(data: CrossFitted, rounds: int) -> Array:
    """A temperature of each row's average over rounds."""
    return _temperature(data.out_of_fold[:rounds].mean(0), data.targets).transform(_average(data, rounds))


def _ours(method: str) -> Callable[[CrossFitted, int], Array]:
    def scaled(data: CrossFitted, rounds: int) -> Array:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PosthocWarning)
            scaling = ensemble_scaling(data.out_of_fold[:rounds], data.targets, members=rounds * FOLDS, method=method)
        return scaling.transform(_average(data, rounds))

    return scaled


_WAYS: dict[str, Callable[[CrossFitted, int], Array]] = {
    "none": _average,
    "temperature of members": _members_temperature,
    "each member by its fold": _each_member,
    "temperature of averages": _averages_temperature,
    "ensemble_scaling": _ours("temperature"),
}


def section(report: Report, *, quick: bool = False) -> None:
    """Train, scale, score and tell; members that are in the folder of results from before are not trained again."""
    tables, bases, seeds = (("iris", "wine"), ["logistic"], 1) if quick else (SETS, list(BASES), _SEEDS)
    folder = None if quick else RESULTS / "ensemble-scaling"
    rows = []
    for table in tables:
        for base in bases:
            for seed in range(seeds):
                data = cross_fitted(table, base, seed, folder)
                for rounds in range(1, REPEATS + 1):
                    scores = {way: nll(scaled(data, rounds), data.test_targets) for way, scaled in _WAYS.items()}
                    rows.append({"table": table, "base": base, "rounds": rounds, **scores})
    _tell(report, pd.DataFrame(rows))


def _tell(report: Report, frame: pd.DataFrame) -> None:
    report.tell_wrapped(
        f"{frame['table'].nunique()} tables × {', '.join(BASES)} × {_SEEDS} splits, {FOLDS} folds. The rules of "
        f"ensemble_scaling were chosen by the means on {', '.join(_CHOSEN_ON)}."
    )
    means = frame.groupby(["rounds", "table", "base"])[list(_WAYS)].mean()
    for rounds in range(1, REPEATS + 1):
        of_rounds = means.loc[rounds]
        report.tell(f"\n{rounds} round{'s' * (rounds > 1)} of folds, {rounds * FOLDS} members: NLL less that without scaling")
        report.tell(f"{'':28}{'chosen on':>12}{'confirmed on the others':>38}{'better than none':>20}")
        for way in list(_WAYS)[1:]:
            change = of_rounds[way] - of_rounds["none"]
            by_table = change.groupby("table").mean()
            chosen, others = (by_table[by_table.index.isin(_CHOSEN_ON) == here] for here in (True, False))
            interval = mean_difference(others.tolist() or chosen.tolist(), 0.0)
            better = float((change < 0).mean())
            report.tell(
                f"  {way:<26}{chosen.mean():+12.4f}{interval.value:+14.4f} "
                f"({interval.low:+.4f} to {interval.high:+.4f}){better:>18.0%}"
            )
            report.record[f"{way}, {rounds} rounds"] = {
                "chosen_on": chosen.mean(), "others": interval.value, "low": interval.low, "high": interval.high,
                "better_than_none": better,
            }  # fmt: skip
    report.tell("\nMean test NLL")
    whole = means.groupby(level="rounds").mean()
    for way in _WAYS:
        report.tell(f"  {way:<26}" + "".join(f"{value:12.4f}" for value in whole[way]) + "   (1, 2, 3 rounds)")
    report.record["mean_nll"] = {way: whole[way].tolist() for way in _WAYS}
