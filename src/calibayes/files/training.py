"""Train a classifier on a file, and measure it on rows that it has not seen."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from calibayes.acting.guarantees import Guarantees
from calibayes.crossfit import ChosenClassifier, Selection, budget_for, choose_classifier, contenders
from calibayes.crossfit.contenders import FIRST
from calibayes.files.fold_plan import FoldPlan, fold_plan
from calibayes.files.guarantee_settings import request_to_train
from calibayes.files.held_out_file import RowsToTest, read_test_rows
from calibayes.files.image_coding import ImageCoding
from calibayes.files.labelled_rows import LabelledRows, read_labelled
from calibayes.files.model import Model
from calibayes.files.network_description import plan_of
from calibayes.files.prepare import EncodedRows, encode
from calibayes.files.representations import representation_of
from calibayes.files.set_aside_rows import SetAsideRows
from calibayes.files.set_rows_aside import set_rows_aside
from calibayes.files.settings import TrainSettings
from calibayes.methods import Examples, method_named
from calibayes.methods.fit_arguments import plain_values
from calibayes.metrics import Scores, evaluate
from calibayes.metrics.score_table import as_json_numbers
from calibayes.posthoc import TemperatureScaling
from calibayes.predictive import predict, samples_for
from calibayes.report.training_study import ScoredOn
from calibayes.wording import counted

__all__ = ["HeldOut", "Trained", "train"]

_BATCH = 512


class HeldOut(NamedTuple):
    """Predictions of rows by what has not seen them.

    Attributes:
        probs: class probabilities ``[n, K]``.
        labels: the true classes.
        rows: ``"held-out folds"`` if single members predict the rows that they were trained without, scaled and chosen by
            others; ``"test part"`` or ``"test file"`` if the model predicts rows that had no part in it.
        other_choices: the number of folds that are predicted by another method than the one taken, as all other rows would have
            it.
    """

    probs: npt.NDArray[np.float64]
    labels: npt.NDArray[np.int64]
    rows: ScoredOn
    other_choices: int = 0


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained model, and how far it can be trusted.

    Attributes:
        model: the trained model.
        held_out: predictions that the scores are computed from.
        scores: of these predictions.
        selection: the methods that were tried, and the one that was taken.
        data: all rows.
        plan: their folds.
        settings: of the training.
        seconds: that it took.
        notes: for the user.
        guarantees: sets and a threshold from the rows that were set aside, if asked for.
    """

    model: Model
    held_out: HeldOut
    scores: Scores
    selection: Selection
    data: EncodedRows
    plan: FoldPlan
    settings: TrainSettings
    seconds: float
    notes: tuple[str, ...]
    guarantees: Guarantees | None = None


def train(
    path: str | Path,
    settings: TrainSettings | None = None,
    *,
    say: Callable[[str], None] = lambda line: None,
    **others: Any,
) -> Trained:
    """Train a classifier on a table in a file, or on a folder with a folder for each class.

    Every row trains: the rows are cut into folds, and each member of an ensemble is trained without one of them. Unless a
    method is named, several are tried, and the one with the lowest out-of-fold NLL is taken. With ``sets``, ``certify`` or
    ``set_aside``, a share of the rows has no part in any of this, and calibrates prediction sets and a threshold.

    Args:
        path: the file or folder.
        settings: all settings, or by name:
        others: settings by their names in `TrainSettings`.
        say: called with each note for the user.

    Examples:
        >>> from pathlib import Path
        >>> from tempfile import mkdtemp
        >>> path = Path(mkdtemp()) / "dice.csv"
        >>> _ = path.write_text("x,label\\n" + "".join(f"{i % 6},{'low' if i % 6 < 3 else 'high'}\\n" for i in range(60)))
        >>> trained = train(path, target="label", scheme="logistic-regression")
        >>> trained.model.classes, trained.scores.n, trained.held_out.rows
        (('high', 'low'), 60, 'held-out folds')
        >>> trained.model.predict({"x": [0, 5]}).probs.shape
        torch.Size([2, 2])
    """
    begun = time.perf_counter()
    chosen = TrainSettings.of(others) if settings is None else replace(settings, **TrainSettings.named(others))
    found = read_labelled(Path(path), chosen, chosen.group, chosen.time)
    chosen = replace(chosen, target=found.settings.target, text=found.settings.text)
    request = request_to_train(chosen, found.labels.classes)
    found, aside = set_rows_aside(found, chosen)
    data, plan = _encoded(found, chosen)
    for note in (*data.notes, *plan.notes, *_left_out(data, chosen), _opening(data, plan, chosen)):
        say(note)
    other = None if chosen.test_file is None else read_test_rows(Path(chosen.test_file), data, chosen)
    classifier = _learned(data, plan, chosen, say)
    model = _model(data, classifier, chosen)
    if aside is not None:
        predictive = model.predict(aside.rows)
        kept = SetAsideRows.predicted(predictive, model.calibrated_probs(predictive), aside.labels.codes, request)
        model = replace(model, set_aside=kept, about={**model.about, "set_aside": len(kept.labels)})
    held_out = _held_out(data, plan, classifier, model, other)
    scores = evaluate(held_out.probs, held_out.labels, class_names=data.classes, seed=chosen.seed)
    model.about.update(rows=held_out.rows, scores=as_json_numbers(scores.to_dict()))
    guarantees = None
    if model.set_aside is not None and not request.empty:
        guarantees = model.set_aside.guarantees(seed=chosen.seed)
    seconds = time.perf_counter() - begun
    notes = () if other is None else other.notes
    return Trained(model, held_out, scores, classifier.selection, data, plan, chosen, seconds, notes, guarantees)


def _encoded(found: LabelledRows, settings: TrainSettings) -> tuple[EncodedRows, FoldPlan]:
    every = np.arange(len(found.labels.codes))
    leave_out = () if settings.group is None else (settings.group,)
    data = encode(found, every, leave_out)
    plan = fold_plan(found, data.inputs.numpy(), settings)
    # Test rows have no part in anything, also not in how inputs are encoded.
    return (encode(found, np.setdiff1d(every, plan.test), leave_out) if len(plan.test) else data), plan


def _learned(data: EncodedRows, plan: FoldPlan, settings: TrainSettings, say: Callable[[str], None]) -> ChosenClassifier:
    given = {name: getattr(settings, name) for name in ("epochs", "patience", "batch_size", "samples")}
    known = torch.from_numpy(np.setdiff1d(np.arange(len(data.targets)), plan.test))
    ways, blends = contenders(
        representation_of(data.coding, data.inputs[known], len(data.classes), settings),
        Examples(data.inputs, data.targets),
        len(data.classes),
        plan.folds,
        seed=settings.seed,
        samples=settings.predictive_samples,
        method=settings.scheme,
        settings=settings.of_method(),
        fit={name: value for name, value in given.items() if value is not None},
        further=settings.budget is not None,
    )
    size = len(data.targets), data.inputs[0].numel()
    budget = budget_for(*size) if settings.budget is None else 60 * settings.budget
    return choose_classifier(ways, budget=budget, blends=blends, final_folds=plan.final_folds, say=say)


def _held_out(
    data: EncodedRows, plan: FoldPlan, classifier: ChosenClassifier, model: Model, other: RowsToTest | None
) -> HeldOut:
    """Return predictions of rows that had no part in what predicts them."""
    labels = data.targets.numpy()
    if other is not None:
        return HeldOut(model.calibrated_probs(model.predict(other.rows)).numpy(), other.labels, "test file")
    if len(plan.test):
        samples = samples_for(model.posterior, model.samples)
        found = predict(model.posterior, data.inputs[plan.test], samples=samples, batch_size=_BATCH, seed=model.seed)
        return HeldOut(model.calibrated_probs(found).double().numpy(), labels[plan.test], "test part")
    return HeldOut(classifier.held_out, labels[classifier.rows], "held-out folds", classifier.other_choices)


def _model(data: EncodedRows, classifier: ChosenClassifier, settings: TrainSettings) -> Model:
    assert isinstance(classifier.scaling, TemperatureScaling)  # what `ensemble_scaling` fits unless told otherwise
    tried = [
        {
            "title": each.title,
            "result": each.result,
            "nll": each.nll,
            "seconds": each.seconds,
            "reason": each.reason,
            "folds": each.folds,
        }
        for each in classifier.selection.attempts
    ]
    side = data.coding.size if isinstance(data.coding, ImageCoding) else None
    plans = [plan_of(member.network(), side) for member in classifier.posterior.members]
    return Model(
        posterior=classifier.posterior,
        classes=data.classes,
        target=data.target,
        coding=data.coding,
        plans=tuple(plans[:1] if all(plan == plans[0] for plan in plans) else plans),
        temperature=classifier.scaling.temperature,
        calibrated=True,
        samples=settings.predictive_samples,
        seed=settings.seed,
        about={
            "settings": plain_values(asdict(settings)),
            "examples": len(data.targets),
            "method": classifier.selection.best.title,
            "tried": as_json_numbers(tried),
            "identifiers": list(data.identifiers),
        },
    )


def _left_out(data: EncodedRows, settings: TrainSettings) -> list[str]:
    """Name methods that would have been tried if their package were installed."""
    if settings.scheme is not None or data.coding.kind != "table":
        return []
    missing = [method for method in map(method_named, FIRST) if not method.installed]
    return [f"Not tried: {method.title}. To try them: pip install 'calibayes[boosting]'" for method in missing]


def _opening(data: EncodedRows, plan: FoldPlan, settings: TrainSettings) -> str:
    """Describe the training that is about to start."""
    what = "several methods are tried" if settings.scheme is None else method_named(settings.scheme).title
    classes = f"{len(data.classes)} classes of {data.target!r}"
    if len(plan.test):
        train, held_out = plan.folds[0]
        return (
            f"{len(train):,} {data.examples} to train, {len(held_out):,} to validate, {len(plan.test):,} to test; {classes}; "
            f"{what}."
        )
    return f"{len(data.targets):,} {data.examples} in {counted(len(plan.folds), 'fold')}; {classes}; {what}."
