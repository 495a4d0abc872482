"""Train a classifier on a file, and measure it on held-out rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from calibayes.files.model import Model
from calibayes.files.prepare import Prepared, prepare
from calibayes.files.settings import TrainSettings
from calibayes.methods import build, method_named
from calibayes.methods.fit_arguments import fit_arguments, member_networks, plain_values
from calibayes.metrics import Scores, evaluate
from calibayes.metrics.score_table import as_json_numbers
from calibayes.posterior.abstract_posterior import Posterior
from calibayes.posthoc.temperature_choice import temperature_or_identity
from calibayes.predictive import predict, samples_for
from calibayes.randomness import seeded
from calibayes.training import History, fit

__all__ = ["Trained", "train"]

_BATCH = 512
_ENOUGH = 100  # validation examples for a temperature to be worth recommending
_WORTH = 0.01  # nats of the validation NLL: below, a temperature makes no real difference


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained model, and a record of its training.

    Attributes:
        model: the trained model.
        history: of the training.
        scores: on the test part.
        scaled: on the test part, with the temperature.
        helps: whether the temperature clearly lowers the validation NLL, with enough examples to tell.
        prepared: the data.
        notes: for the user.
    """

    model: Model
    history: History
    scores: Scores
    scaled: Scores
    helps: bool
    prepared: Prepared
    notes: tuple[str, ...]


def train(
    path: str | Path,
    settings: TrainSettings | None = None,
    *,
    say: Callable[[str], None] | None = None,
    progress: bool | None = False,
    **others: Any,
) -> Trained:
    """Train a classifier on a table in a file, or on a folder with a folder for each class.

    Args:
        path: the file or folder.
        settings: all settings, or by name:
        others: settings by their names in `TrainSettings`.
        say: called with each note for the user.
        progress: show a progress line; with None if standard error is a terminal.

    Examples:
        >>> from pathlib import Path
        >>> from tempfile import mkdtemp
        >>> path = Path(mkdtemp()) / "dice.csv"
        >>> _ = path.write_text("x,label\\n" + "".join(f"{i % 6},{'low' if i % 6 < 3 else 'high'}\\n" for i in range(60)))
        >>> trained = train(path, target="label", scheme="fnn", epochs=3)
        >>> trained.model.classes, trained.scores.n
        (('high', 'low'), 12)
        >>> trained.model.predict({"x": [0, 5]}).probs.shape
        torch.Size([2, 2])
    """
    chosen = TrainSettings.of({**({} if settings is None else asdict(settings)), **others})
    prepared = prepare(Path(path), chosen, dropout=method_named(chosen.scheme).needs_dropout)
    if say is not None:
        for note in (*prepared.notes, _opening(prepared, chosen)):
            say(note)
    plan = build(chosen.scheme, member_networks(partial(_network, prepared), chosen.seed), **chosen.of_method())
    own = fit_arguments(
        plan, optimizer=lambda parameters: torch.optim.Adam(parameters, lr=chosen.learning_rate), samples=chosen.samples
    )
    posterior = plan.posterior
    history = fit(
        posterior,
        prepared.splits.train,
        plan.objective,
        epochs=chosen.epochs,
        batch_size=chosen.batch_size,
        validation=prepared.splits.validation,
        early_stopping=chosen.patience,
        seed=chosen.seed,
        group=None,
        progress=progress,
        **own,
    )
    if history.stopped == "interrupted":
        raise KeyboardInterrupt
    posterior.to("cpu")
    return _judged(prepared, chosen, posterior, history)


def _network(prepared: Prepared, seed: int) -> nn.Module:
    with seeded(seed):
        return prepared.network()


def _judged(prepared: Prepared, settings: TrainSettings, posterior: Posterior, history: History) -> Trained:
    """Fit the temperature on the validation part, and score the model on the test part."""
    splits, notes = prepared.splits, list(prepared.notes)
    samples = samples_for(posterior, settings.predictive_samples)
    held_out, tested = (
        predict(posterior, x, samples=samples, batch_size=_BATCH, seed=settings.seed, dtype=torch.float64).probs
        for x, _ in (splits.validation, splits.test)
    )
    held_out_labels, labels = splits.validation[1], splits.test[1]
    scaling, why_none = temperature_or_identity(held_out, held_out_labels)
    if why_none is not None:
        notes.append(why_none)
    scores, scaled = (
        evaluate(probs, labels, class_names=splits.classes, seed=settings.seed) for probs in (tested, scaling.transform(tested))
    )
    before, after = (evaluate(probs, held_out_labels, intervals=False).nll for probs in (held_out, scaling.transform(held_out)))
    model = Model(
        posterior=posterior,
        classes=splits.classes,
        target=prepared.target,
        coding=prepared.coding,
        plan=prepared.plan,
        temperature=scaling.temperature,
        samples=settings.predictive_samples,
        seed=settings.seed,
        about={
            "settings": plain_values(asdict(settings)),
            "examples": {name: len(getattr(splits, name)[1]) for name in ("train", "validation", "test")},
            "best_epoch": [each.best_epoch for each in history.members] if history.members else history.best_epoch,
            "test": as_json_numbers(scores.to_dict()),
            "test_scaled": as_json_numbers(scaled.to_dict()),
        },
    )
    return Trained(model, history, scores, scaled, len(held_out) >= _ENOUGH and before - after > _WORTH, prepared, tuple(notes))


def _opening(prepared: Prepared, settings: TrainSettings) -> str:
    """Describe the training that is about to start."""
    counts = [len(part[1]) for part in (prepared.splits.train, prepared.splits.validation, prepared.splits.test)]
    weights = {name: value for name, value in (("λ", settings.lam), ("β", settings.beta)) if isinstance(value, float) and value}
    scheme = method_named(settings.scheme).title + "".join(
        f", {name} = {value:g}" if isinstance(value, int | float) else f", {name} as scheduled"
        for name, value in weights.items()
    )
    return (
        f"{counts[0]:,} {prepared.examples} to train, {counts[1]:,} to validate, {counts[2]:,} to test; "
        f"{len(prepared.splits.classes)} classes of {prepared.target!r}. {scheme}, network {prepared.plan.name}."
    )
