"""Find the columns of a table that hold the labels, and those with the probabilities or logits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np

from calibayes.data.predictions.classes import match
from calibayes.data.predictions.column_names import find_name, named_score, namings
from calibayes.data.predictions.column_values import first_labels, first_numbers, numeric_columns, read_columns
from calibayes.tables import TableFile
from calibayes.wording import listed, shown

__all__ = ["DECISIONS", "LABEL_NAMES", "NOT_SCORES", "ScoreColumns", "find_label", "find_scores"]

LABEL_NAMES = (
    *("label", "labels", "target", "targets", "y", "y_true", "true", "class", "truth", "true_label", "true_class"),
    *("ground_truth", "gold", "gold_label", "actual", "outcome"),
)
_ONE_COLUMN = re.compile(r"(?:y_|pred_|predicted_)?(?:p|probs?|probas?|probability|scores?|confidence|conf|logits?)(?:_hat)?")
_LOGIT = re.compile(r"(?:^|[\s_.])logits?(?:$|[\s_.\d])", re.IGNORECASE)
DECISIONS = (
    *("pred", "preds", "prediction", "predictions", "predicted", "predicted_label", "predicted_class", "y_pred", "y_hat"),
    *("decision", "pred_label", "pred_class"),
)
NOT_SCORES = {
    *DECISIONS,
    *("", "index", "idx", "id", "row", "row_id", "sample", "example", "fold", "split", "seed", "weight", "weights"),
    *("confidence", "conf", "correct", "loss", "entropy"),
}
_SUM_TOLERANCE = 1e-3


@dataclass(frozen=True)
class ScoreColumns:
    """The columns of the scores, whether they are logits, and what the classes may be called."""

    columns: tuple[str, ...]
    logits: bool
    namings: tuple[tuple[str, ...], ...]


def find_label(source: TableFile, label: str | None) -> str:
    """Return the column of the labels: the one that was named, or the first that is called like one."""
    if label is not None:
        return find_name(source, label, "--label")
    by_name = {name.strip().lower(): name for name in reversed(source.names)}
    name = next((by_name[name] for name in LABEL_NAMES if name in by_name), None)
    if name is not None:
        return name
    what = f"no column is called label, target, y or the like. The columns are {listed(source.names)}. "
    numbers = all(re.fullmatch(r"[\d.eE+-]+", name.strip()) for name in source.names)
    what += "Is the header line missing? Then pass --no-header; if not, name" if numbers else "Name"
    raise source.problem(what + " the column of the labels: --label.")


def find_scores(
    source: TableFile, label: str, taken: Sequence[str], columns: str | Sequence[str] | None, logits: bool | None
) -> ScoreColumns:
    """Return the columns of probabilities or logits.

    Args:
        source: the table.
        label: the column of the labels.
        taken: all columns that are something else, including the label.
        columns: names or globs from the user, or None to look for them.
        logits: whether they are logits; None means: if their names say so.
    """
    free = [name for name in source.names if name not in taken]
    if columns is not None:
        chosen, pattern = _named(source, columns, taken)
        return _scores(chosen, logits, pattern)
    by_label = _called_like_labels(source, label, free)
    # Columns p_a and p_b beside c are not a group if the labels are "p_a", "p_b" and "c".
    groups = [group for group in _groups(free, logits) if not set(group) <= set(by_label)]
    if len(groups) > 1:
        raise _ambiguous(source, groups)
    if groups:
        return _scores(groups[0], logits)
    numeric = numeric_columns(source)
    rest = [name for name in free if name in numeric and name.strip().lower() not in NOT_SCORES]
    labels = set(by_label)
    more = [name for name in rest if name not in labels]
    if by_label and more and logits:
        what = f"the columns {listed(by_label)} are called like labels, but {listed(more)} hold numbers too. "
        raise source.problem(what + "Name the columns of the logits: --columns.")
    if not logits and len(rest) >= 2 and not _sum_to_one(source, by_label) and _sum_to_one(source, rest):
        # A class without examples has a column, but no label is called like it.
        return _scores(rest, False)
    if by_label:
        # The names are those of classes, so they do not mean logits, even if a class is called "logit".
        return _scores(by_label, bool(logits))
    return _scores([_one_column(source, free, rest, logits)], logits)


def _scores(columns: Sequence[str], logits: bool | None, pattern: str | None = None) -> ScoreColumns:
    called = all(_LOGIT.search(name) for name in columns)
    return ScoreColumns(tuple(columns), called if logits is None else logits, namings(columns, pattern))


def _named(source: TableFile, columns: str | Sequence[str], taken: Sequence[str]) -> tuple[list[str], str | None]:
    """Return the columns that the user named, and the glob if it was one."""
    wanted = [columns] if isinstance(columns, str) else list(columns)
    if len(wanted) == 1 and wanted[0] not in source.names and not _matching(source, wanted[0], taken) and "," in wanted[0]:
        wanted = [part.strip() for part in wanted[0].split(",") if part.strip()]
    chosen: list[str] = []
    known = set(source.names)
    for name in wanted:
        matches = [] if name in known else _matching(source, name, taken)
        chosen += matches or [name if name in known else find_name(source, name, "--columns")]
    if not chosen:
        raise source.problem(f"--columns names no column. The columns are {listed(source.names)}.")
    chosen = list(dict.fromkeys(chosen))
    twice = next((name for name in chosen if name in taken), None)
    if twice is not None:
        what = f"the column {shown(twice)} is named by --columns, but it is also the label, weight or id. "
        raise source.problem(what + "Remove it from one of them.")
    return chosen, wanted[0] if len(wanted) == 1 and wanted[0] not in source.names else None


def _matching(source: TableFile, pattern: str, taken: Sequence[str]) -> list[str]:
    if not set("*?[") & set(pattern):
        return []
    return [name for name in source.names if name.strip() and name not in taken and fnmatchcase(name, pattern)]


def _groups(free: Sequence[str], logits: bool | None) -> list[list[str]]:
    """Return the groups of columns that follow the same naming rule, like ``p_cat`` and ``p_dog``."""
    groups: dict[tuple[str, bool], list[str]] = {}
    for name in free:
        if (score := named_score(name)) is not None:
            groups.setdefault((score.glob.lower(), score.logits), []).append(name)
    large = {how: group for how, group in groups.items() if len(group) >= 2}
    wanted = [group for (_, kind), group in large.items() if kind == logits]
    return wanted or list(large.values())


def _ambiguous(source: TableFile, groups: Sequence[Sequence[str]]) -> Exception:
    scores = [score for group in groups if (score := named_score(group[0])) is not None]
    every = " and ".join(f"{len(group)} columns {shown(score.glob)}" for group, score in zip(groups, scores, strict=True))
    what = f"there are {every}. Name the ones to use, like --columns {shown(scores[0].glob)}"
    return source.problem(what + (", or pass --logits." if any(score.logits for score in scores) else "."))


def _called_like_labels(source: TableFile, label: str, free: Sequence[str]) -> list[str]:
    """Return the columns whose names are the label values, if all values have one."""
    # The first rows rule this out for most files, without reading all labels.
    if len(free) < 2 or (match(first_labels(source, label), free) < 0).any():
        return []
    places = match(read_columns(source, [label], [])[0][label].values, free)
    if (places < 0).any() or len(set(places.tolist())) < 2:
        return []
    return [free[place] for place in sorted(set(places.tolist()))]


def _sum_to_one(source: TableFile, columns: Sequence[str]) -> bool:
    """Return True if most of the first rows do: a single bad row is then found and named, not taken for another layout."""
    sums = first_numbers(source, columns).sum(axis=1) if columns else np.empty(0)
    return bool(len(sums)) and bool((np.abs(sums - 1) <= _SUM_TOLERANCE).mean() >= 0.5)


def _one_column(source: TableFile, free: Sequence[str], rest: Sequence[str], logits: bool | None) -> str:
    """Return the one column of a binary classifier."""
    numeric = numeric_columns(source)
    free = [name for name in free if name in numeric]
    candidates = [name for name in free if _ONE_COLUMN.fullmatch(name.strip().lower()) or named_score(name) is not None]
    if logits is not None and len(candidates) > 1:
        candidates = [name for name in candidates if bool(_LOGIT.search(name)) == logits] or candidates
    if len(candidates) == 1:
        if not logits and not _LOGIT.search(candidates[0]):
            _check_not_confidence(source, candidates[0])
        return candidates[0]
    if candidates:
        hint = f"Name the one to use, like --columns {shown(candidates[0])}."
        raise source.problem(f"each of the columns {listed(candidates)} may hold the scores. {hint}")
    what = f"no columns of probabilities were found. The columns are {listed(source.names)}. "
    if len(rest) >= 2 and not logits:
        what += f"Those with numbers, {listed(rest)}, do not sum to 1. "
    what += "Name them, like --columns 'p_*', or rename them to p_<class>; add --logits if they hold logits."
    raise source.problem(what)


def _check_not_confidence(source: TableFile, column: str) -> None:
    """Raise if a column beside decisions may be their confidence, which for two classes is never below one half."""
    decision = next((name for name in source.names if name.strip().lower() in DECISIONS), None)
    if decision is None or not (first_numbers(source, [column]) >= 0.5).all():
        return
    what = f"{shown(column)} may be the probability of the second label or that of the decision in {shown(decision)}. "
    what += f"If it is the former, pass --columns {shown(column)}; if not, write the probability of a class as p_<class>."
    raise source.problem(what)
