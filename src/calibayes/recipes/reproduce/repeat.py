"""The command that trains one line of a figure or table again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from calibayes.errors import InvalidArgumentError
from calibayes.recipes.reproduce.experiments import Experiment, Part
from calibayes.sweeps.settings_grid import varying
from calibayes.wording import did_you_mean

__all__ = ["command", "only"]


def only(experiment: Experiment, wanted: Mapping[str, Sequence[Any]]) -> Experiment:
    """The trainings of an experiment that have these settings; an error if there are none."""
    known = list(dict.fromkeys(name for part in experiment.parts for each in part.settings for name in each.to_dict()))
    for name in wanted:
        if name not in known:
            raise InvalidArgumentError(f"Expected --only to name settings, but got {name!r}. {did_you_mean(name, known)}")
    parts = []
    for part in experiment.parts:
        kept = tuple(each for each in part.settings if all(each.to_dict()[name] in values for name, values in wanted.items()))
        if kept:
            parts.append(Part(part.name, kept))
    if not parts:
        told = ", ".join(f"{name}={','.join(map(str, values))}" for name, values in wanted.items())
        raise InvalidArgumentError(f"Expected some training of {experiment.name} to have {told}, but none has.")
    return replace(experiment, parts=tuple(parts))


def command(experiment: Experiment, part: Part) -> str:
    """What to type for the trainings of a part, and for no others: its seeds, unless another ``--only seed=…`` is added."""
    settings = part.settings[0].to_dict()
    names = [name for name in varying(experiment.settings()) if name != "seed"]
    for name in reversed(names.copy()):
        fewer = [each for each in names if each != name]
        if only(experiment, {each: [settings[each]] for each in fewer}).parts == (part,):
            names = fewer
    preset = "" if experiment.preset == "cpu" else f" --preset {experiment.preset}"
    words = [f"--only {name}={_typed(settings[name])}" for name in names]
    return " ".join([f"calibayes reproduce {experiment.name}{preset}", *words])


def _typed(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
