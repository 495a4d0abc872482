"""The choice of the weights that are Bayesian, trained as point values, or frozen, and the reason for each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from calibayes.checks import positive
from calibayes.errors import EmptySelectionError, InvalidArgumentError, UnsupportedNetworkError
from calibayes.posterior.flat import Layout, Skeleton
from calibayes.wording import first_few

__all__ = ["PatternSetting", "Role", "WeightChoice", "Where", "audit_table", "choose", "grouped", "settings_of"]

Role = Literal["bayesian", "point", "frozen"]
Patterns = Sequence[str] | Callable[[str, Tensor], bool] | None
Where = str | Patterns

_NORMALISATION = re.compile(r"Norm(\d[dD])?$")


@dataclass(frozen=True)
class WeightChoice:
    """The role of one weight, and the reason for it.

    Attributes:
        names: all its names in the network; the first is the one shown.
        shape: its shape.
        dtype: its type.
        role: ``"bayesian"``, ``"point"`` (trained, without a distribution) or ``"frozen"``.
        reason: why.
    """

    names: tuple[str, ...]
    shape: torch.Size
    dtype: torch.dtype
    role: Role
    reason: str

    @property
    def name(self) -> str:
        """The first of its names."""
        return self.names[0]


def choose(skeleton: Skeleton, where: Where, *, bayesian: bool) -> tuple[WeightChoice, ...]:
    """One `WeightChoice` for every parameter of the network; tied weights are one."""
    if bayesian:
        where = _checked(where)
    owners = _normalisation_layers(skeleton.module)
    tied: dict[int, list[str]] = {}
    for name, parameter in skeleton.parameters.items():
        tied.setdefault(id(parameter), []).append(name)
    matched: set[str] = set()
    choices = []
    for names in tied.values():
        parameter = skeleton.parameters[names[0]]
        role, reason = _role(names, parameter, where, owners, matched) if bayesian else _trained(parameter)
        if len(names) > 1:
            reason += f"; tied with {', '.join(names[1:])}"
        choices.append(WeightChoice(tuple(names), parameter.shape, parameter.dtype, role, reason))
    _check_selection(choices, where, matched, bayesian)
    return tuple(choices)


class PatternSetting(NamedTuple):
    """A number given for a weight, and the pattern it was given by."""

    pattern: str
    value: float


def settings_of(
    argument: str, given: float | Mapping[str, float], choices: Sequence[WeightChoice]
) -> dict[str, PatternSetting]:
    """Return the value for each weight of an argument that is a number, or a mapping from glob patterns to numbers.

    Args:
        argument: what error messages call it.
        given: the number or mapping; the first pattern that matches one of a weight's names counts.
        choices: the weights.
    """
    if not isinstance(given, Mapping):
        return dict.fromkeys((choice.name for choice in choices), PatternSetting("*", positive(argument, given)))
    numbers = {pattern: positive(f"{argument}[{pattern!r}]", number) for pattern, number in given.items()}
    found = {}
    for choice in choices:
        pattern = next((pattern for pattern in numbers if _matches(choice.names, pattern)), None)
        if pattern is None:
            raise InvalidArgumentError(
                f"`{argument}` has no pattern for {choice.name!r}, only {list(numbers)}. Add a last pattern '*' for all others."
            )
        found[choice.name] = PatternSetting(pattern, numbers[pattern])
    unused = [pattern for pattern in numbers if pattern != "*" and all(pattern != s.pattern for s in found.values())]
    if unused:
        raise InvalidArgumentError(
            f"`{argument}` pattern {unused[0]!r} is the first match of no Bayesian weight of {_told(choices)}."
        )
    return found


def grouped(
    choices: Sequence[WeightChoice], skeleton: Skeleton, settings: Mapping[str, PatternSetting] | None = None
) -> Iterator[tuple[str, Layout, dict[str, Tensor]]]:
    """The choices gathered into flat vectors: one per pattern of ``settings``, type and device.

    Yields the pattern (``"*"`` without settings), the layout, and the weights' values by their first names.
    """
    members: dict[tuple[str, torch.dtype, torch.device], list[WeightChoice]] = {}
    for choice in choices:
        pattern = "*" if settings is None else settings[choice.name].pattern
        key = (pattern, choice.dtype, skeleton.parameters[choice.name].device)
        members.setdefault(key, []).append(choice)
    for (pattern, _, _), part in members.items():
        layout = Layout(tuple(choice.names for choice in part), tuple(choice.shape for choice in part))
        yield pattern, layout, {choice.name: skeleton.parameters[choice.name] for choice in part}


def audit_table(choices: Sequence[WeightChoice]) -> str:
    """A table of every parameter, what is done with it, and why."""
    rows = [("parameter", "shape", "weights", "role", "why")]
    rows += [(c.name, "×".join(map(str, c.shape)) or "1", f"{c.shape.numel():,}", c.role, c.reason) for c in choices]
    widths = [max(len(row[k]) for row in rows) for k in range(4)]
    lines = [
        f"{row[0]:<{widths[0]}}  {row[1]:<{widths[1]}}  {row[2]:>{widths[2]}}  {row[3]:<{widths[3]}}  {row[4]}".rstrip()
        for row in rows
    ]
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
    names: list[str], parameter: Tensor, where: Patterns, owners: Mapping[str, str], matched: set[str]
) -> tuple[Role, str]:
    if not parameter.requires_grad:
        return "frozen", "requires_grad is False"
    if where is None:
        layer = next((owners[name] for name in names if name in owners), None)
        return ("point", f"normalisation layer ({layer})") if layer else ("bayesian", "trainable")
    if callable(where):
        return ("bayesian", "chosen by `where`") if any(where(name, parameter) for name in names) else _left_out()
    hits = [pattern for pattern in where if _matches(names, pattern)]
    matched.update(hits)
    return ("bayesian", f"matches {hits[0]!r}") if hits else _left_out()


def _left_out() -> tuple[Role, str]:
    return "point", "not chosen by `where`"


def _trained(parameter: Tensor) -> tuple[Role, str]:
    return ("point", "trainable") if parameter.requires_grad else ("frozen", "requires_grad is False")


def _normalisation_layers(module: nn.Module) -> dict[str, str]:
    """For each parameter of a normalisation layer, the layer's type."""
    return {
        f"{prefix}.{name}" if prefix else name: type(part).__name__
        for prefix, part in module.named_modules()
        if any(_NORMALISATION.search(base.__name__) for base in type(part).__mro__)
        for name, _ in part.named_parameters(recurse=False)
    }


def _told(choices: Sequence[WeightChoice]) -> str:
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
            raise EmptySelectionError(f"`where` pattern {unused[0]!r} matches no trainable parameter of {_told(choices)}.")
    if not any(c.role == "bayesian" for c in choices):
        raise EmptySelectionError(
            f"No parameter is Bayesian with `where={where!r}`; the network has {_told(choices)}. "
            "Choose some of them, or use `Point` for a network without a distribution."
        )
