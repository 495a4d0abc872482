"""Choose λ and β, and train a posterior on examples."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR

from calibayes.errors import InvalidArgumentError, NetworkOutputError
from calibayes.estimator.classifier_network import built_network
from calibayes.estimator.classifier_settings import ClassifierSettings
from calibayes.estimator.distinct_examples import Examples
from calibayes.methods import build
from calibayes.methods.fit_arguments import fit_arguments, member_networks, prepared_network
from calibayes.posterior.abstract_posterior import Posterior
from calibayes.predictive import predict
from calibayes.randomness import derived_seed
from calibayes.recipes.choosing import Tried, choose, validation_scores
from calibayes.schedules import Schedule
from calibayes.training import History, fit

__all__ = ["LearnedPosterior", "Learner", "check_outputs"]


@dataclass(frozen=True)
class LearnedPosterior:
    """A trained posterior, and the settings it was trained with."""

    posterior: Posterior
    history: History
    lam: float  # λ, zero for a method without
    beta: float  # β, zero for a method without
    tried: tuple[Tried, ...] = ()  # the pairs of them that were tried; empty if there was nothing to choose


@dataclass(frozen=True)
class Learner:
    """Trains posteriors."""

    settings: ClassifierSettings
    classes: int  # their number
    seed: int
    fits: int = 0  # earlier trainings with this seed: each has its own order and noise, but all hold out the same examples
    start: Posterior | None = None  # a trained posterior to continue from

    def learn(self, examples: Examples) -> LearnedPosterior:
        r"""Choose $\lambda$ and $\beta$ if necessary, and train.

        With the chosen values, training is repeated on all examples; but with early stopping, which needs the validation part
        to the end, the chosen posterior is kept.
        """
        settings = self.settings
        pairs = list(product(settings.lams, settings.betas))
        if len(pairs) == 1 and settings.stopping is None:
            return self.train(examples, None, *pairs[0])
        training, validation = examples.split(settings.validation_fraction, self.seed)
        rows, watched = len(examples.y), None if settings.stopping is None else validation
        if len(pairs) == 1:
            return self.train(training, watched, *pairs[0], rows=rows)
        scoring: dict[str, Any] = {"samples": settings.predict_samples, "seed": self.seed, "monitor": settings.choose_by}
        chosen = choose(
            pairs,
            lambda lam, beta: self.train(training, watched, lam, beta, rows=rows),
            lambda learned: validation_scores(learned.posterior, validation.data, **scoring),
            monitor=settings.choose_by,
        )
        learned = chosen.model
        if settings.stopping is None:
            learned = self.train(examples, None, chosen.best.lam, chosen.best.beta)
        return replace(learned, tried=chosen.tried)

    def train(
        self, training: Examples, validation: Examples | None, lam: float, beta: float, rows: int | None = None
    ) -> LearnedPosterior:
        r"""Train with one $\lambda$ and $\beta$; Ctrl-C ends this, and any search that it is a part of.

        ``validation`` is for early stopping, and ``rows`` the number of examples that determines the size of the network.
        """
        settings = self.settings
        count, features = training.x.shape
        network = self._network(rows or count, features)
        chosen = settings.of_method(lam, _times(training.rows_per_count, beta), self.seed)
        plan = build(settings.method, network, **chosen)
        posterior = plan.posterior
        if self.start is not None:
            _check_continues(self.start, posterior, settings.method)
            posterior = copy.deepcopy(self.start)
        check_outputs(posterior, training.x, self.classes)
        steps = settings.epochs * -(-count // settings.batch_size)
        own = fit_arguments(
            plan,
            optimizer=lambda parameters: settings.optimizer(parameters, lr=settings.learning_rate),
            scheduler=lambda optimizer: CosineAnnealingLR(optimizer, steps),
            scheduler_interval="step",
            samples=settings.samples,
        )
        history = fit(
            posterior,
            training.data,
            plan.objective,
            epochs=settings.epochs,
            batch_size=settings.batch_size,
            validation=None if validation is None else validation.data,
            validation_samples=settings.predict_samples,
            early_stopping=None if validation is None else settings.stopping,
            seed=derived_seed(self.seed, "fit", self.fits),
            device=settings.device,
            group=None,
            progress=bool(settings.verbose),
            **own,
        )
        if history.stopped == "interrupted":
            raise KeyboardInterrupt
        return LearnedPosterior(posterior, history, lam, beta)

    def _network(self, rows: int, features: int) -> nn.Module | Callable[[], nn.Module]:
        """The user's module, or a function that makes a network for each member of an ensemble."""
        settings = self.settings
        if isinstance(settings.network, nn.Module):
            return built_network(settings.network, rows, features, self.classes, self.seed)

        def one(seed: int) -> nn.Module:
            network = built_network(settings.network, rows, features, self.classes, seed)
            return prepared_network(settings.method, network) if isinstance(settings.network, str) else network

        return member_networks(one, self.seed)


def check_outputs(posterior: Posterior, x: Any, classes: int) -> None:
    """Raise `NetworkOutputError` unless there is an output for each class."""
    outputs = predict(posterior, x[:2], samples="mean").probs.shape[1]
    if outputs != classes:
        raise NetworkOutputError(
            f"Expected the network to have an output for each of the {classes} classes in `y`, but it has {outputs}. "
            "If `network` is a function, it gets the number: `lambda features, classes: ...`."
        )


def _times(factor: float, beta: Schedule) -> Schedule:
    return (lambda step: factor * beta(step)) if callable(beta) else factor * beta


def _check_continues(start: Posterior, new: Posterior, method: str) -> None:
    """Raise if a method cannot continue from an earlier training."""
    kinds = [[type(each), *map(type, each.members)] for each in (start, new)]
    if kinds[0] != kinds[1]:
        count = f" of {len(start.members)} members" if len(start.members) > 1 else ""
        kind = type(start).__name__
        raise InvalidArgumentError(
            f"With `warm_start`, {'an' if kind[0] in 'AEIO' else 'a'} {kind}{count} cannot continue as {method!r}. Use the "
            "method and settings that it began with, or `warm_start=False` to start again."
        )
