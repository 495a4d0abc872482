"""The ways to learn that are chosen from, simpler ones first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from calibayes.crossfit.cross_fit import CrossFit
from calibayes.crossfit.folds import Fold
from calibayes.crossfit.network_learner import NetworkLearner
from calibayes.crossfit.representation import Representation
from calibayes.errors import InvalidArgumentError
from calibayes.extras import require_package
from calibayes.methods import METHODS, Examples, Learner, Method, method_named

__all__ = ["FIRST", "Blend", "contenders", "learner_for"]

Blend = tuple[str, tuple[int, ...]]
"""The title of an average, and the places of its parts among the contenders."""

FIRST = ("logistic-regression", "boosted-trees", "ema")
"""The methods that are tried unless one is named: one of each kind, from the simplest."""

_SECOND = "ema, second"
"""The key of the second network, where a representation has one."""


def contenders(
    representation: Representation,
    examples: Examples,
    classes: int,
    folds: Sequence[Fold],
    *,
    seed: int = 0,
    samples: int = 20,
    method: str | None = None,
    settings: Mapping[str, Any] | None = None,
    fit: Mapping[str, Any] | None = None,
    further: bool = False,
) -> tuple[list[CrossFit], list[Blend]]:
    """Return cross-fits to choose from, not trained yet, and averages of them.

    Where the representation has a second network, it is tried wherever averaged weights are.

    Args:
        representation: of the examples.
        examples: all of them.
        classes: how many there are.
        folds: of the examples.
        seed: of the trainings.
        samples: of the weights, behind a prediction.
        method: a registered method, to try no other.
        settings: of that method, by name.
        fit: arguments of `NetworkLearner`, such as ``epochs``, that replace those of the representation.
        further: try all other registered methods as well, after the first ones.
    """
    representation = replace(representation, fit={**representation.fit, **(fit or {})})
    if method is not None:
        learners = {method: _only(representation, method_named(method), settings or {})}
    else:
        names = [*FIRST, *(name for name in METHODS if further and name not in (*FIRST, "fnn"))]
        known = {name: learner_for(representation, method_named(name), {}) for name in names if method_named(name).installed}
        learners = {name: learner for name, learner in known.items() if learner is not None}
    learners = _with_second(representation, learners)
    return [CrossFit(each, examples, classes, folds, seed, samples) for each in learners.values()], _blends(list(learners))


def _with_second(representation: Representation, learners: Mapping[str, Learner]) -> dict[str, Learner]:
    """Put the second network, if there is one, right after the first."""
    found: dict[str, Learner] = {}
    for name, learner in learners.items():
        found[name] = learner
        if name == "ema" and isinstance(learner, NetworkLearner) and representation.second_network is not None:
            network = partial(representation.second_network, name)
            found[_SECOND] = replace(learner, network=network, name=representation.second_title)
    return found


def _blends(names: Sequence[str]) -> list[Blend]:
    """Averages of ways to learn that err in different ways: of both networks, and of networks and what is no network."""
    networks = [name for name in ("ema", _SECOND) if name in names]
    other = next((name for name in ("boosted-trees", "logistic-regression") if name in names and networks), None)
    wanted: list[tuple[str, list[str]]] = []
    if len(networks) == 2:
        wanted.append(("both networks, averaged", networks))
    if other is not None:
        title = "boosted trees" if other == "boosted-trees" else "logistic regression"
        wanted.append((f"{title} and network, averaged", [other, "ema"]))
        if len(networks) == 2:
            wanted.append((f"{title} and both networks, averaged", [other, *networks]))
    return [(title, tuple(names.index(part) for part in parts)) for title, parts in wanted]


def learner_for(representation: Representation, method: Method[Any], settings: Mapping[str, Any]) -> Learner | None:
    """Return the way to train a member by a method; ``None`` if it cannot learn these examples."""
    own = {**representation.settings.get(method.name, {}), **settings}
    if method.plan is not None:
        # The course of the learning rate was chosen for averaged weights; other methods have their own.
        fit = {name: value for name, value in representation.fit.items() if name != "steps" or method.name == "ema"}
        return NetworkLearner(method.name, partial(representation.network, method.name), own, **fit)
    if method.learner is None or representation.first_layer is None:
        return None
    return method.learner(representation.first_layer, method.configured(**own))


def _only(representation: Representation, method: Method[Any], settings: Mapping[str, Any]) -> Learner:
    if method.package is not None:
        require_package(method.package, f"The method {method.name!r}", "boosting")
    learner = learner_for(representation, method, settings)
    if learner is None:
        raise InvalidArgumentError(f"The method {method.name!r} cannot learn from such data. Name another method, or none.")
    return learner
