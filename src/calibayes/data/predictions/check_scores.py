"""Check the scores and weights of a file, and turn scores into probabilities."""

from __future__ import annotations

import numpy as np

from calibayes.data.predictions.prediction_table import RawPredictions
from calibayes.tables.formats import file_problem
from calibayes.tables.numbers import Floats, not_finite
from calibayes.wording import shown

__all__ = ["check_scores", "check_weights", "probabilities_and_logits"]

# The same as calibayes.checks has for tensors of float64 and float16.
_TOLERANCE, _HALF_TOLERANCE = 1e-3, 1e-2
# A probability of 1 that was printed from float32 may be a little more.
_ROUNDING = 1e-6


def check_scores(raw: RawPredictions) -> None:
    """Raise unless logits are finite, and probabilities lie in [0, 1] and sum to 1 in each row.

    A check that passes costs three reductions; only one that fails looks for the place.
    """
    scores, (low, high), sums = raw.scores, _range(raw), _sums(raw.scores)
    # NaN fails every comparison, so it is caught here too. A sum of finite logits may overflow: `_first_bad` looks closer.
    good = np.isfinite(sums) if raw.logits or scores.shape[1] == 1 else np.abs(sums - 1) <= _tolerance(raw)
    if not (good.all() and scores.min() >= low and scores.max() <= high) and (row := _first_bad(raw)) is not None:
        raise _explained(raw, row)


def check_weights(raw: RawPredictions) -> None:
    """Raise unless the weights are finite, not negative, and not all zero."""
    weights, column = raw.weights, raw.used.weights
    if weights is None or column is None:
        return
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        row = int(np.argmax(bad))
        cell = raw.source.cell(row, column)
        what = _not_finite(cell, weights[row]) or f"the weight {shown(cell)} is negative. Weights are 0 or more."
        raise raw.source.problem(what, row, column)
    if not weights.any():
        what = "every weight is 0, so no example counts. Give at least one a positive weight."
        raise raw.source.problem(what, column=column)


def probabilities_and_logits(raw: RawPredictions) -> tuple[Floats, Floats | None]:
    r"""Return class probabilities ``[n, K]``, and the logits if the file holds logits.

    Logits become $p_k = e^{z_k - \max z} / \sum_j e^{z_j - \max z}$. One logit $z$ for two classes is the pair $(0, z)$,
    whose softmax is the sigmoid of $z$.
    """
    scores = raw.scores
    if raw.logits:
        logits = scores if scores.shape[1] > 1 else np.concatenate([np.zeros_like(scores), scores], axis=1)
        # The difference of two huge logits may overflow to -inf, whose exponential is the right 0.
        with np.errstate(over="ignore"):
            probs = logits - logits.max(axis=1, keepdims=True)
        np.exp(probs, out=probs)
        probs /= probs.sum(axis=1, keepdims=True)
        return probs, logits
    if scores.shape[1] == 1:
        ones = np.minimum(scores, 1.0)
        return np.concatenate([1 - ones, ones], axis=1), None
    # Half precision rounds rows off 1 by more than the metrics allow.
    return scores / scores.sum(axis=1, keepdims=True) if raw.half else scores, None


def _tolerance(raw: RawPredictions) -> float:
    return _HALF_TOLERANCE if raw.half else _TOLERANCE


def _range(raw: RawPredictions) -> tuple[float, float]:
    if raw.logits:
        return -np.inf, np.inf
    return 0.0, 1 + (_ROUNDING if raw.scores.shape[1] == 1 else _tolerance(raw))


def _sums(scores: Floats) -> Floats:
    with np.errstate(invalid="ignore", over="ignore"):
        sums: Floats = scores.sum(axis=1)
    return sums


def _first_bad(raw: RawPredictions) -> int | None:
    scores, (low, high) = raw.scores, _range(raw)
    bad = ~(np.isfinite(scores) & (scores >= low) & (scores <= high)).all(axis=1)
    if not raw.logits and scores.shape[1] > 1:
        bad |= ~(np.abs(_sums(scores) - 1) <= _tolerance(raw))
    return int(np.argmax(bad)) if bad.any() else None


def _explained(raw: RawPredictions, row: int) -> Exception:
    values, source, (low, high) = raw.scores[row], raw.source, _range(raw)
    for column, value in zip(raw.used.scores, values.tolist(), strict=True):
        cell = "" if low <= value <= high and np.isfinite(value) else source.cell(row, column)
        what = _not_finite(cell, value)
        if what is None and cell:
            what = f"{shown(cell)} is not a probability, it is {'negative' if value < 0 else 'above 1'}. "
            what += "If these are percentages, divide by 100." if _percentages(raw) else "If these are logits, pass --logits."
        if what is not None:
            return source.problem(what, row, column)
    head = ", ".join(f"{value:.6g}" for value in values[:5]) + (", …" if len(values) > 5 else "")
    what = f"the probabilities {head} sum to {values.sum():.6g}, not to 1 (within {_tolerance(raw):g}). "
    what += "Write more digits or divide each row by its sum; if these are not all the columns, name them: --columns."
    return file_problem(source.path, what, f"{source.where(row, raw.used.scores[0])} … {shown(raw.used.scores[-1])}")


def _percentages(raw: RawPredictions) -> bool:
    """Return True if rows sum to 100, or a single column goes from 0 to nearly 100."""
    scores = raw.scores
    if not np.isfinite(scores).all() or scores.min() < 0:
        return False
    if scores.shape[1] > 1:
        return bool((np.abs(_sums(scores) - 100) <= 1).all())
    return bool(30 < scores.max() <= 100)


def _not_finite(cell: str, value: float) -> str | None:
    return None if np.isfinite(value) else not_finite(cell, value)
