"""The questions that the comparison answers, each in a sentence for every data set, with the differences behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from benchmarks.methods.comparison_frame import REFERENCE, label, reference_of
from benchmarks.methods.seed_differences import Cell, ScoreDifference, difference, differences_from

__all__ = ["ABOUT_FOUR", "ABOUT_ONE", "Answer", "answers", "by_data_set", "cells_up_to", "chosen_by_validation"]

ABOUT_ONE, ABOUT_FOUR = 2.0, 8.0  # plain trainings, at most
_WITH_TERM = {
    "fnn": "ca-fnn",
    "bnn": "ca-bnn",
    "laplace": "ca-laplace",
    "natural-gradient": "ca-natural-gradient",
    "warm-mean-field": "ca-warm-mean-field",
    "ensemble": "ca-ensemble",
    "mixture": "ca-mixture",
}
_SHIFTED = "5"  # the severity that is looked at
_NOTICEABLE = {"ece": 0.005, f"ece_shift{_SHIFTED}": 0.01}  # differences that nobody would act on are below this


class Answer(NamedTuple):
    """An answer for one data set.

    Attributes:
        question: as in the page's headings.
        data: the data set.
        sentence: the answer.
        differences: the numbers behind it, by what is compared.
    """

    question: str
    data: str
    sentence: str
    differences: dict[str, ScoreDifference]

    def to_dict(self) -> dict[str, Any]:
        """The answer as JSON can hold it."""
        told = {name: each._asdict() for name, each in self.differences.items()}
        return {"question": self.question, "data": self.data, "sentence": self.sentence, "differences": told}


def by_data_set(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The lines of each data set; all tables are one."""
    tables = frame["task"].str.startswith("table-")
    parts = {str(name): part for name, part in frame[~tables].groupby("task", sort=False)}
    return parts | ({"tables": frame[tables]} if tables.any() else {})


def cells_up_to(frame: pd.DataFrame, trainings: float, way: str = "best") -> list[Cell]:
    """Bases and methods that cost at most so many plain trainings, with the scaling that validation examples prefer.

    What they are compared with is not among them.
    """
    costs = frame.groupby(["base", "method"], sort=False)["cost"].mean().reset_index()
    cells = [(str(row.base), str(row.method), way) for row in costs.itertuples() if float(str(row.cost)) <= trainings]
    return [cell for cell in cells if cell != reference_of(frame)]


def answers(frame: pd.DataFrame) -> list[Answer]:
    """All answers, question by question."""
    asked: Sequence[tuple[str, Callable[[pd.DataFrame], tuple[str, dict[str, ScoreDifference]]]]] = (
        (
            "Does a method at the cost of one training clearly beat the plain network with a temperature, in NLL and in ECE?",
            lambda part: _winners(part, ABOUT_ONE),
        ),
        ("And at the cost of four trainings?", lambda part: _winners(part, ABOUT_FOUR)),
        ("Does the calibration term help?", lambda part: _term(part, "")),
        ("Does it help under shift?", lambda part: _term(part, f"_shift{_SHIFTED}")),
        ("How much of a Bayesian network's calibration is regularisation?", _regularisation),
        ("Is a temperature enough for a low ECE?", lambda part: _temperature(part, "ece")),
        ("Is it enough under shift?", lambda part: _temperature(part, f"ece_shift{_SHIFTED}")),
    )
    return [
        Answer(question, name, *answer(part))
        for question, answer in asked
        for name, part in by_data_set(frame).items()
        if answer is not _regularisation or has_both_bases(part)
    ]


def has_both_bases(part: pd.DataFrame) -> bool:
    """Return True if the data set's methods are on the plain and on the regularised base."""
    return {"plain", "regularised"} <= set(part["base"])


def _winners(part: pd.DataFrame, trainings: float) -> tuple[str, dict[str, ScoreDifference]]:
    cells = cells_up_to(part, trainings)
    by_score = {score: _together(part, score, cells, 2 * len(cells)) for score in ("nll", "ece")}
    both = [cell for cell in cells if all(by_score[score][cell].clearly < 0 for score in by_score)]
    nll_alone = [cell for cell in cells if by_score["nll"][cell].clearly < 0 and cell not in both]
    shown = sorted(both or nll_alone or cells, key=lambda cell: by_score["nll"][cell].value)[: 3 if both or nll_alone else 1]
    told = {f"{label(*cell)}: {score}": by_score[score][cell] for cell in shown for score in by_score}
    first = f"{label(*shown[0])} with NLL {by_score['nll'][shown[0]]} and ECE {_points(by_score['ece'][shown[0]])}"
    if both:
        return f"Yes: {_of(len(both), len(cells))} do, first {first}.", told
    if nll_alone:
        return f"In NLL alone: {_of(len(nll_alone), len(cells))} do, first {first}.", told
    return f"None of {len(cells)} is clearly lower in NLL; the lowest is {first}.", told


def _of(some: int, all_of_them: int) -> str:
    return f"{some} of {all_of_them}"


def _points(apart: ScoreDifference) -> str:
    """A difference in points of a hundred."""
    return f"{100 * apart.value:+.2f} points ({100 * apart.low:+.2f} to {100 * apart.high:+.2f})"


def _together(part: pd.DataFrame, score: str, cells: Sequence[Cell], comparisons: int) -> dict[Cell, ScoreDifference]:
    return differences_from(part, score, cells, reference_of(part), comparisons=comparisons)


def _term(part: pd.DataFrame, suffix: str) -> tuple[str, dict[str, ScoreDifference]]:
    """Methods with the term minus the same methods without, scaled alike."""
    known = set(map(tuple, part[["base", "method"]].drop_duplicates().to_numpy()))
    pairs = [
        (base, plain, term)
        for base in ("plain", "regularised")
        for plain, term in _WITH_TERM.items()
        if {(base, plain), (base, term)} <= known
    ]
    comparisons = 4 * len(pairs)
    told = {
        f"{label(base, term, way)}: {score}{suffix}": difference(
            part, score + suffix, (base, term, way), (base, plain, way), comparisons=comparisons
        )
        for base, plain, term in pairs
        for way in ("plain", "best")
        for score in ("nll", "ece")
        if f"{score}{suffix}" in part
    }
    better, worse = (sum(each.clearly == sign for each in told.values()) for sign in (-1, 1))
    sentence = f"Of {len(told)} differences {better} are clearly better and {worse} clearly worse with it"
    ece = {name: each for name, each in told.items() if name.endswith(f"ece{suffix}")}
    if not ece:
        return f"{sentence}.", told
    most = min(ece, key=lambda name: ece[name].value)
    return f"{sentence}; it lowers ECE most in {most.split(':')[0]}, by {_points(ece[most])}.", told


def _regularisation(part: pd.DataFrame) -> tuple[str, dict[str, ScoreDifference]]:
    plain, bayesian, regularised = ("plain", "fnn", "plain"), ("plain", "bnn", "plain"), ("regularised", "fnn", "plain")
    told = {
        "BNN minus FNN: ece": difference(part, "ece", bayesian, plain, comparisons=3),
        "FNN, regularised, minus FNN: ece": difference(part, "ece", regularised, plain, comparisons=3),
        "BNN minus FNN, regularised: ece": difference(part, "ece", bayesian, regularised, comparisons=3),
    }
    gained, without_bayes, left = map(_points, told.values())
    more = {-1: "the Bayesian network is clearly ahead", 0: "undecided", 1: "regularisation is clearly ahead"}
    which = more[told["BNN minus FNN, regularised: ece"].clearly]
    return (
        f"ECE {gained} by the Bayesian network, {without_bayes} by regularisation alone; between the two, {left}: {which}.",
        told,
    )


def _temperature(part: pd.DataFrame, score: str) -> tuple[str, dict[str, ScoreDifference]]:
    """Whether any method has a lower ECE than the plain network with a temperature, or could have one that matters."""
    cells = cells_up_to(part, float("inf"))
    reference = reference_of(part)
    found = differences_from(part, score, cells, reference)
    better = sorted((cell for cell in cells if found[cell].clearly < 0), key=lambda cell: found[cell].value)
    best, furthest = (min(cells, key=lambda cell: getattr(found[cell], end)) for end in ("value", "low"))
    told = {f"{label(*cell)}: {score}": found[cell] for cell in better or [best]}
    if better:
        most = f"{label(*better[0])} by {_points(found[better[0]])}"
        return f"No: {_of(len(better), len(cells))} methods are clearly lower, most {most}.", told
    if found[furthest].low > -_NOTICEABLE[score]:
        margin = 100 * _NOTICEABLE[score]
        lowest = f"{label(*best)} by {_points(found[best])}"
        return f"Yes: none of {len(cells)} methods is lower by {margin:g} points or more; {lowest}.", told
    return f"Undecided: none of {len(cells)} is clearly lower; the lowest is {label(*best)}, by {_points(found[best])}.", told


def chosen_by_validation(frame: pd.DataFrame, trainings: float) -> tuple[Cell, Mapping[Cell, float]]:
    """The method with the lowest mean rank over data sets by validation NLL, among those of at most this cost, and all ranks.

    Each scaling is scored on folds of the validation examples that it was not fitted on. Only methods that every data set with
    both bases has are ranked; one that failed on a table is last there. Test scores are not looked at.
    """
    ranks = []
    for part in by_data_set(frame).values():
        if not has_both_bases(part):
            continue
        cells = [(*REFERENCE[:2], "best"), *cells_up_to(part, trainings)]
        means = part.groupby(["task", "base", "method", "way"])["validation_nll"].mean().unstack("task")
        ranks.append(means.loc[means.index.intersection(cells)].rank(na_option="bottom").mean(axis=1))
    table = pd.concat(ranks, axis=1).dropna().rank().mean(axis=1).sort_values(kind="stable")
    found: dict[Cell, float] = dict(zip(table.index.to_list(), map(float, table), strict=True))
    return next(iter(found)), found
