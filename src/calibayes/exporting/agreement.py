"""Does an exported file say the same as calibayes? Checked on real rows before the file is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from calibayes.acting.outsiders import outsider_scores
from calibayes.errors import ExportError
from calibayes.exporting.graph_files import Outputs, Run
from calibayes.exporting.row_rules import RowRules
from calibayes.files.set_aside_rows import ROUNDING
from calibayes.posterior.abstract_posterior import Posterior, Samples
from calibayes.posthoc import Scaling
from calibayes.predictive import Predictive, predict, samples_for

__all__ = ["check_agreement", "run_in_batches"]

_BATCH = 256
_RARE = 0.01
_NUMBERS = ("probs", "confidence", "epistemic", "aleatoric")


def run_in_batches(run: Run, tensors: Sequence[Tensor]) -> Outputs:
    """The outputs of a file for any number of rows."""
    parts = [run(batch) for batch in zip(*(tensor.split(_BATCH) for tensor in tensors), strict=True)]
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}


def check_agreement(
    run: Run,
    tensors: Sequence[Tensor],
    inputs: Any,
    posterior: Posterior,
    *,
    samples: Samples,
    seed: int,
    scaling: Scaling | None,
    rules: RowRules,
    tolerance: float,
) -> float:
    """Return the largest difference between the numbers of a file and those of calibayes.

    Args:
        run: the file.
        tensors: its inputs for some rows.
        inputs: those of the posterior for the same rows.
        posterior: what was exported.
        samples: of the weights.
        seed: of the samples.
        scaling: of the averaged probabilities.
        rules: for decisions and sets.
        tolerance: the largest difference that is accepted.

    Raises:
        ExportError: they differ by more than the tolerance, or in a decision that rounding does not explain.
    """
    kept = "closed-form" if samples == "closed-form" else samples_for(posterior, samples)
    predictive = predict(posterior, inputs, samples=kept, seed=seed, dtype=torch.float64)
    # The first row by itself too: a graph must not depend on the number of rows.
    found = run_in_batches(run, tensors)
    alone = run([tensor[:1] for tensor in tensors])
    probs = predictive.probs if scaling is None else scaling.transform(predictive.probs)
    largest = 0.0
    for name, value in _expected(probs, predictive).items():
        for own, where in ((found[name].double() - value, "rows"), (alone[name].double() - value[:1], "one row")):
            gap = float(own.abs().max())
            largest = max(largest, gap)
            if not gap <= tolerance:
                raise ExportError(
                    f"The exported graph does not agree with calibayes: {name!r} differs by up to {gap:.3g} for {where} of "
                    f"{len(value)}, more than {tolerance:g}. Nothing was written.{_reason(scaling)}"
                )
    for name, wrong in _different(found, probs, predictive, rules).items():
        if bool(wrong.any()):
            raise ExportError(
                f"The exported graph does not agree with calibayes: {name!r} differs for {int(wrong.sum())} of {len(wrong)} "
                f"rows, first for row {int(wrong.nonzero()[0, 0])}. Nothing was written."
            )
    return largest


def _different(found: Outputs, probs: Tensor, predictive: Predictive, rules: RowRules) -> dict[str, Tensor]:
    """True for the rows of which a file says something else, by output.

    A number next to a threshold may be rounded to the other side of it: then the file must be right about its own, and such
    rows must be rare. Where they are not, rows tie with the threshold, and all would change sides.
    """
    exact, rounded = (rules.expected(each, predictive) for each in (probs, found["probs"].double()))
    different: dict[str, Tensor] = {}
    for name in ("decision", "abstain", "set"):
        if name in exact:
            other = (found[name] != exact[name]).view(len(probs), -1).any(1)
            unexplained = other & (found[name] != rounded[name]).view(len(probs), -1).any(1)
            different[name] = other if int(other.sum()) > max(1, _RARE * len(other)) else unexplained
    if rules.set_aside is not None:
        scores = outsider_scores(predictive, rules.set_aside.outsider_score)
        known = rules.set_aside.outsiders.double()
        low, high = (torch.searchsorted(known, scores + shift) / (len(known) + 1) for shift in (-2 * ROUNDING, 0.0))
        different["outsider"] = (found["outsider"] < low - ROUNDING) | (found["outsider"] > high + ROUNDING)
    return different


def _expected(probs: Tensor, predictive: Predictive) -> dict[str, Tensor]:
    values = (probs, probs.amax(-1), predictive.epistemic, predictive.aleatoric)
    return {name: value.detach().cpu().double() for name, value in zip(_NUMBERS, values, strict=True)}


def _reason(scaling: Scaling | None) -> str:
    steps = type(scaling).__name__ in ("IsotonicScaling", "VennAbersScaling")
    return (
        " The scaling is a curve with steps, which turn rounding errors into differences. Use a temperature." if steps else ""
    )
