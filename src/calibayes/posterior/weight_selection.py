"""The choice of the weights that are Bayesian, trained as point values, or frozen, and the reason for each."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from calibayes.checks import positive
from calibayes.errors import EmptySelectionError, InvalidArgumentError, UnsupportedNetworkError
from calibayes.posterior.flat import Skeleton
from calibayes.wording import first_few

__all__ = ["PatternSetting", "Role", "WeightChoice", "Where", "audit_table", "choose", "settings_of", "tied_names"]

Role = Literal["bayesian", "point", "frozen"]
Patterns = Sequence[str] | Callable[[str, Tensor], bool] | None
Where = str | Patterns

_NORMALISATION = re.compile(r"Norm(\d[dD])?$")


@dataclass(frozen=True)
class WeightChoice:
    """The role of one weight (a ``"point"`` is trained without a distribution), and the reason for it."""

    names: tuple[str, ...]
    shape: torch.Size
    dtype: torch.dtype
    role: Role
    reason: str

    @property
    def name(self) -> str:
        """The first of its names in the network, which is the one shown."""
        return self.names[0]


def choose(skeleton: Skeleton, where: Where, *, bayesian: bool) -> tuple[WeightChoice, ...]:
    """One `WeightChoice` for every parameter of the network; tied weights are one."""
    if bayesian:
        where = _checked(where)
    normalisation = _normalisation_layers(skeleton.module)
    matched: set[str] = set()
    choices = []
    for names, parameter in tied_names(skeleton.parameters):
        role: Role = "point" if parameter.requires_grad else "frozen"
        reason = "trainable" if parameter.requires_grad else "requires_grad is False"
        if bayesian and parameter.requires_grad:
            role, reason = _role(names, parameter, where, normalisation, matched)
        if len(names) > 1:
            reason += f"; tied with {', '.join(names[1:])}"
        choices.append(WeightChoice(names, parameter.shape, parameter.dtype, role, reason))
    _check_selection(choices, where, matched, bayesian)
    return tuple(choices)


def tied_names(tensors: Mapping[str, Tensor]) -> list[tuple[tuple[str, ...], Tensor]]:
    """Each tensor once, with all its names."""
    names: dict[int, list[str]] = {}
    for name, tensor in tensors.items():
        names.setdefault(id(tensor), []).append(name)
    return [(tuple(each), tensors[each[0]]) for each in names.values()]


class PatternSetting(NamedTuple):
    """A number given for a weight, and the pattern it was given by."""

    pattern: str
    value: float


def settings_of(
    argument: str, given: float | Mapping[str, float], choices: Sequence[WeightChoice]
) -> dict[str, PatternSetting]:
    """Return the value for each weight of an argument: a number, or a mapping from glob patterns to numbers.

    The first pattern that matches one of a weight's names counts.
    """
    if not isinstance(given, Mapping):
        return dict.fromkeys((choice.name for choice in choices), PatternSetting("*", positive(argument, given)))
    numbers = {pattern: positive(f"{argument}[{pattern!r}]", number) for pattern, number in given.items()}
    settings = {}
    for choice in choices:
        pattern = next((pattern for pattern in numbers if _matches(choice.names, pattern)), None)
        if pattern is None:
            raise InvalidArgumentError(
                f"`{argument}` has no pattern for {choice.name!r}, only {list(numbers)}. Add a last pattern '*' for all others."
            )
        settings[choice.name] = PatternSetting(pattern, numbers[pattern])
    unused = [pattern for pattern in numbers if pattern != "*" and all(pattern != s.pattern for s in settings.values())]
    if unused:
        raise InvalidArgumentError(
            f"`{argument}` pattern {unused[0]!r} is the first match of no Bayesian weight of {_names(choices)}."
        )
    return settings


def audit_table(choices: Sequence[WeightChoice]) -> str:
    """A table of every parameter, what is done with it, and why."""
    rows = [("parameter", "shape", "weights", "role", "why")]
    rows += [(c.name, "×".join(map(str, c.shape)) or "1", f"{c.shape.numel():,}", c.role, c.reason) for c in choices]
    widths = [max(len(row[k]) for row in rows) for k in range(4)]
    form = "{0:<{w[0]}}  {1:<{w[1]}}  {2:>{w[2]}}  {3:<{w[3]}}  {4}"
    lines = [form.format(*row, w=widths).rstrip() for row in rows]
    totals = {role: sum(c.shape.numel() for c in choices if c.role == role) for role in ("bayesian", "point", "frozen")}
    summary = f"{totals['bayesian']:,} Bayesian, {totals['point']:,} point, {totals['frozen']:,} frozen weights"
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:], summary])


def _checked(where: Any) -> Patterns:
    if isinstance(where, str):
        return [where]
    if where is None or callable(where):
        return where  # type: ignore[no-any-return]
    if isinstance(where, Sequence) and all(isinstance(pattern, str) for pattern in where):
        return where
    raise InvalidArgumentError(
        f"Expected `where` to be a glob pattern, a list of them, or a function of name and parameter, but got {where!r}."
    )


def _matches(names: Sequence[str], pattern: str) -> bool:
    return any(fnmatchcase(name, pattern) for name in names)


def _role(
    names: Sequence[str], parameter: Tensor, where: Patterns, normalisation: Mapping[str, str], matched: set[str]
) -> tuple[Role, str]:
    if where is None:
        layer = next((normalisation[name] for name in names if name in normalisation), None)
        return ("point", f"normalisation layer ({layer})") if layer else ("bayesian", "trainable")
    if callable(where):
        chosen, reason = any(where(name, parameter) for name in names), "chosen by `where`"
    else:
        hits = [pattern for pattern in where if _matches(names, pattern)]
        matched.update(hits)
        chosen, reason = bool(hits), f"matches {hits[0]!r}" if hits else ""
    return ("bayesian", reason) if chosen else ("point", "not chosen by `where`")


def _normalisation_layers(module: nn.Module) -> dict[str, str]:
    """For each parameter of a normalisation layer, the layer's type."""
    return {
        f"{prefix}.{name}" if prefix else name: type(part).__name__
        for prefix, part in module.named_modules()
        if any(_NORMALISATION.search(base.__name__) for base in type(part).__mro__)
        for name, _ in part.named_parameters(recurse=False)
    }


def _names(choices: Sequence[WeightChoice]) -> str:
    return first_few([choice.name for choice in choices])


def _check_selection(choices: Sequence[WeightChoice], where: Patterns, matched: set[str], bayesian: bool) -> None:
    trained = [c for c in choices if c.role != "frozen"]
    if not trained:
        raise EmptySelectionError(
            "The network has no trainable parameter. Did you freeze everything? Set `requires_grad_(True)` on a part."
        )
    for choice in trained:
        if not choice.dtype.is_floating_point:
            raise UnsupportedNetworkError(f"{choice.name!r} is of type {choice.dtype}; only real weights can be trained.")
    if not bayesian:
        return
    if where is not None and not callable(where):
        unused = [pattern for pattern in where if pattern not in matched]
        if unused:
            raise EmptySelectionError(f"`where` pattern {unused[0]!r} matches no trainable parameter of {_names(choices)}.")
    if not any(c.role == "bayesian" for c in choices):
        raise EmptySelectionError(
            f"No parameter is Bayesian with `where={where!r}`; the network has {_names(choices)}. "
            "Choose some of them, or use `Point` for a network without a distribution."
        )
