"""Checks of an objective's terms, their names and their data."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, get_args

from calibayes.calibration.measures import one_of
from calibayes.errors import InvalidArgumentError
from calibayes.objective.losses import Loss
from calibayes.objective.terms import Of, On, Term

if TYPE_CHECKING:
    from calibayes.objective.objective import Objective

__all__ = ["check_batch_terms", "check_data", "check_names", "check_terms"]

_TAKEN = ("total", "kl", "examples", "epoch", "lr", "values")
_DATA: dict[On, str] = {"batch": "the training batch", "held_out": "held-out data", "out_of_domain": "out-of-domain inputs"}


def check_terms(terms: Any) -> tuple[Term, ...]:
    """``terms`` as a tuple, or an error that says what to pass instead."""
    if isinstance(terms, Term):
        raise InvalidArgumentError(f"Expected `terms` to be a tuple of terms, but got {terms!r} itself: pass terms=(…,).")
    if isinstance(terms, str) or not isinstance(terms, Sequence):
        raise InvalidArgumentError(f"Expected `terms` to be a tuple of terms such as (Calibration(),), but got {terms!r}.")
    for term in terms:
        if isinstance(term, type):
            raise InvalidArgumentError(
                f"Expected `terms` to hold objects, but got the class {term.__name__}: pass {term.__name__}()."
            )
        if not isinstance(term, Term):
            measure = all(callable(getattr(term, name, None)) for name in ("scores", "value"))
            hint = "Wrap a measure: Calibration(measure)." if measure else "Subclass calibayes.objective.Term."
            raise InvalidArgumentError(f"Expected `terms` to hold terms such as Calibration(), but got {term!r}. {hint}")
        for name, options in (("on", get_args(On)), ("of", get_args(Of))):
            one_of(f"{type(term).__name__}.{name}", getattr(term, name, None), options)
    return tuple(terms)


def check_names(loss: Loss, terms: Sequence[Term]) -> None:
    """Raise `InvalidArgumentError` unless loss and terms have different names, under which they can be logged."""
    seen: set[str] = set()
    for each in (loss, *terms):
        name = getattr(each, "name", None)
        if not isinstance(name, str) or not name.isidentifier() or name.startswith(("_", "val_")):
            problem = "it must be a Python identifier that does not begin with '_' or 'val_'"
        elif name in _TAKEN:
            problem = "training logs something else under it"
        elif name in seen:
            problem = "the loss or another term has it already"
        else:
            seen.add(name)
            continue
        raise InvalidArgumentError(f"{type(each).__name__} cannot have the name {name!r}: {problem}. Give it another `name`.")


def check_data(terms: Sequence[Term], given: Collection[On], arguments: Mapping[On, str]) -> None:
    """Raise `InvalidArgumentError` for a term without its data, or data without a term; ``arguments`` names each kind."""
    for on, argument in arguments.items():
        users = [term.name for term in terms if term.on == on]
        if users and on not in given:
            raise InvalidArgumentError(f"The term {users[0]!r} is taken on {_DATA[on]}, which are missing: pass `{argument}`.")
        if on in given and not users:
            raise InvalidArgumentError(
                f"`{argument}` was given, but no term of the objective is taken on {_DATA[on]}. Leave it out, or pass a term "
                f"with on={on!r} in `terms`."
            )


def check_batch_terms(objective: Objective, door: str, logged: Collection[str]) -> None:
    """Raise `InvalidArgumentError` for terms that the caller has no data for, or with a name that it logs itself."""
    for term in objective.terms:
        if term.on != "batch":
            raise InvalidArgumentError(
                f"The term {term.name!r} is taken on {_DATA[term.on]}, which {door} has none of. Train with `calibayes.fit`, "
                "or leave the term out."
            )
    for name in (objective.loss.name, *(term.name for term in objective.terms)):
        if name in logged:
            raise InvalidArgumentError(f"{door} itself logs {name!r}: give the loss or term another `name`.")
