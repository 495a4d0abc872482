"""From contenders to one classifier: the choice, its members as an ensemble, the scaling, and scores that can be believed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from calibayes.crossfit.cross_fit import CrossFit, Probs
from calibayes.crossfit.folds import Fold
from calibayes.crossfit.selection import Selection, row_losses, select, simplest_of_the_best
from calibayes.posterior import Ensemble
from calibayes.posthoc import Scaling, ensemble_scaling
from calibayes.posthoc.temperature_choice import temperature_or_identity

__all__ = ["ChosenClassifier", "choose_classifier"]


@dataclass(frozen=True, eq=False)
class ChosenClassifier:
    """A cross-fitted ensemble, chosen by evidence, with the scaling that belongs to it.

    Attributes:
        posterior: the members of all folds.
        scaling: for the ensemble's averaged probabilities.
        selection: what was tried, and what was chosen.
        rows: those that were held out by some fold.
        held_out: probabilities of these rows by members that were trained without them, with a scaling and a choice that their
            own losses have no part in. Two small effects remain: they say when the training of a network stops, and they train
            the members by which the scaling and the choice are judged. They are predicted by single members, so the ensemble is
            at least about as good.
        other_choices: the number of folds whose ``held_out`` are of another method, since the other rows preferred that one.
    """

    posterior: Ensemble
    scaling: Scaling
    selection: Selection
    rows: np.ndarray
    held_out: Probs
    other_choices: int


def choose_classifier(
    contenders: Sequence[CrossFit],
    *,
    budget: float,
    blends: Sequence[tuple[str, tuple[int, ...]]] = (),
    final_folds: Sequence[Fold] | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> ChosenClassifier:
    """Cross-fit contenders within a budget, take the best, and fit the scaling of its ensemble.

    Args:
        contenders: from the simplest to the most complex, on the same examples and folds.
        budget: seconds for all of them.
        blends: averages to consider as well; see `select`.
        final_folds: those that the members are trained on in the end, where the others leave rows out of all trainings, as
            `forward_folds` do; the best way to learn is then cross-fitted once more.
        say: is told what is being tried.
    """
    selection = select(contenders, budget=budget, blends=blends, say=say)
    best, targets = selection.best, contenders[0].examples.targets.numpy()
    found = best.predictions()
    rows = np.flatnonzero(~np.isnan(found[:, 0]))
    parts: Sequence[CrossFit] = best.parts
    if final_folds is not None and not selection.interrupted:
        say(f"Training {best.title} on all rows.")
        parts = [replace(part, folds=final_folds, members=[], out_of_fold=[], seconds=[]).run() for part in best.parts]
    members = [each for part in parts for member in part.members for each in member.members]
    weights = contenders[0].examples.weights
    counts = None if weights is None else weights.double().numpy()
    of_rows = None if counts is None else counts[rows]
    scaling = ensemble_scaling(found[rows], targets[rows], members=len(parts[0].members), weights=of_rows)
    honest, changed = _honest(selection, targets, counts)
    return ChosenClassifier(Ensemble(members), scaling, selection, rows, honest[rows], changed)


def _honest(selection: Selection, targets: np.ndarray, weights: np.ndarray | None = None) -> tuple[Probs, int]:
    """Held-out probabilities in which a fold's rows have a part neither in the choice nor in the scaling that they get.

    Also the number of folds in which the choice was another one than that of all rows.
    """
    complete = [each for each in selection.attempts if each.result == "complete"]
    predictions = [each.predictions() for each in complete]
    losses = np.stack([row_losses(probs, targets) for probs in predictions])
    found, changed = np.full_like(predictions[0], np.nan), 0
    for fold in selection.best.parts[0].folds[: len(selection.best.parts[0].members)]:
        others = np.setdiff1d(np.flatnonzero(~np.isnan(losses[0])), fold.held_out)
        counts = None if weights is None else weights[others]
        chosen = selection.best.predictions()
        if len(others):
            place = simplest_of_the_best(losses[:, others], counts)
            chosen = predictions[place]
            changed += complete[place] is not selection.best
        own = torch.from_numpy(chosen[fold.held_out])
        if len(others):
            scaling, _ = temperature_or_identity(chosen[others], targets[others], counts)
            own = scaling.transform(own)
        found[fold.held_out] = own.numpy()
    return found, changed
