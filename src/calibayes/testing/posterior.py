"""`check_posterior`: everything that the library expects of a posterior."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from torch import nn

from calibayes.errors import InvalidArgumentError
from calibayes.testing import copy_checks, draw_checks, prediction_checks, structure_checks, training_checks
from calibayes.testing.check_runner import checks_in, run_checks
from calibayes.testing.framework_checks import check_under_lightning, check_under_transformers
from calibayes.testing.network_cases import NetworkCase, chosen_cases
from calibayes.testing.posterior_subject import Factory, PosteriorSubject
from calibayes.testing.process_checks import check_with_processes

__all__ = ["check_posterior"]

_ALWAYS = (structure_checks, draw_checks, prediction_checks, copy_checks)
_DOORS = {"lightning": check_under_lightning, "transformers": check_under_transformers}


def check_posterior(
    factory: Factory,
    *,
    networks: Mapping[str, NetworkCase | Callable[[], nn.Module]] | None = None,
    inputs: Any = None,
    classes: int = 3,
    training: Mapping[str, Any] | None = {},
    doors: Sequence[str] | bool | None = None,
    processes: int | bool = False,
    skip: Collection[str] = (),
) -> None:
    """Check everything about a posterior that users, `fit`, `predict` and `save` rely on.

    It must leave the network alone, draw all its noise from generators, give the same bits for the same seed, train alike
    however samples are grouped, have the gradient, mean, spread and KL that it states, and survive files, copies and
    interrupted trainings.

    Args:
        factory: makes the posterior of a network: a class, or a function.
        networks: by name, what to check it on: `calibayes.testing.NETWORKS` by default. For posteriors that need dropout
            there are `calibayes.testing.DROPOUT_NETWORKS`.
        inputs: at least 12 examples for ``networks`` that are functions.
        classes: how many logits those return.
        training: further arguments of `calibayes.fit`; ``None`` for a posterior that is not trained by it.
        doors: also train under ``"lightning"``, ``"transformers"``; ``True`` for those that are installed.
        processes: also train in this many processes, started with ``torchrun``; ``True`` for two.
        skip: names of checks to leave out, as messages have them.

    Raises:
        AssertionError: says which check failed, on which network, and what differed.

    Examples:
        >>> calibayes.testing.check_posterior(calibayes.Point, networks={"linear": lambda: torch.nn.Linear(2, 3)},
        ...                                   inputs=torch.randn(12, 2))
    """
    modules = _ALWAYS if training is None else (*_ALWAYS, training_checks)
    checks = [check for module in modules for check in checks_in(module.__name__)]
    cases = chosen_cases(networks, inputs, classes)
    open_doors = _chosen_doors(doors)
    for name, case in cases.items():
        subject = PosteriorSubject(factory, case, training)
        run_checks(checks, subject, subject.title, f" on the network {name!r}", skip)
    for door in open_doors:
        _DOORS[door](factory)
    if processes:
        check_with_processes(factory, cases, processes=2 if processes is True else processes, training=training)


def _chosen_doors(doors: Sequence[str] | bool | None) -> Sequence[str]:
    if isinstance(doors, bool) or doors is None:
        return [door for door in _DOORS if find_spec(door) is not None] if doors else []
    for door in doors:
        if door not in _DOORS:
            raise InvalidArgumentError(f"Expected `doors` to be among {', '.join(_DOORS)}, but got {door!r}.")
    return doors
