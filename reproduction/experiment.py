"""An experiment: its trainings, in one of three sizes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from calibayes.errors import InvalidArgumentError
from calibayes.recipes.single_training import TrainingSettings
from calibayes.sweeps.settings_grid import varying
from calibayes.wording import did_you_mean

__all__ = ["PRESETS", "Definition", "Experiment", "ExperimentPart", "check_preset"]

PRESETS = ("tiny", "cpu", "paper")


@dataclass(frozen=True)
class ExperimentPart:
    """Trainings that belong together: one line of a figure, or one variation."""

    name: str  # what it is called in figures and tables
    settings: tuple[TrainingSettings, ...]  # one for each training


@dataclass(frozen=True)
class Experiment:
    """All trainings of an experiment."""

    name: str  # as on the command line
    title: str  # what it shows
    preset: str  # its size
    trial: Callable[[Mapping[str, Any]], dict[str, Any]]  # the function that is run on each of the settings
    check: Callable[[Mapping[str, Any]], None]  # raises if the data of a training are not on this machine
    parts: tuple[ExperimentPart, ...]  # the trainings

    @property
    def data(self) -> str:
        """The data set."""
        return self.name.partition("-")[0]

    def settings(self) -> list[dict[str, Any]]:
        """Every training once, as a dict."""
        return list({repr(each): each.to_dict() for part in self.parts for each in part.settings}.values())

    def only(self, wanted: Mapping[str, Sequence[Any]]) -> Experiment:
        """The experiment with only the trainings that have these settings, or an error if none has."""
        known = list(dict.fromkeys(name for each in self.settings() for name in each))
        for name in wanted:
            if name not in known:
                raise InvalidArgumentError(f"Expected --only to name settings, but got {name!r}. {did_you_mean(name, known)}")
        parts = []
        for part in self.parts:
            kept = [each for each in part.settings if all(getattr(each, name) in values for name, values in wanted.items())]
            parts += [ExperimentPart(part.name, tuple(kept))] if kept else []
        if not parts:
            settings = ", ".join(f"{name}={','.join(map(str, values))}" for name, values in wanted.items())
            raise InvalidArgumentError(f"Expected some training of {self.name} to have {settings}, but none has.")
        return replace(self, parts=tuple(parts))

    def command(self, part: ExperimentPart) -> str:
        """The command that runs exactly the trainings of a part, with all its seeds."""
        settings = part.settings[0].to_dict()
        names = [name for name in varying(self.settings()) if name != "seed"]
        for name in reversed(names.copy()):
            fewer = [each for each in names if each != name]
            if self.only({each: [settings[each]] for each in fewer}).parts == (part,):
                names = fewer
        preset = "" if self.preset == "cpu" else f" --preset {self.preset}"
        values = {name: settings[name] if isinstance(settings[name], str) else json.dumps(settings[name]) for name in names}
        return " ".join([f"calibayes reproduce {self.name}{preset}", *(f"--only {name}={values[name]}" for name in names)])


def check_preset(preset: str) -> str:
    """``preset`` itself, or an error that lists the valid ones."""
    if preset not in PRESETS:
        raise InvalidArgumentError(f"Expected the preset to be one of {', '.join(PRESETS)}, but got {preset!r}.")
    return preset


class Definition(NamedTuple):
    """An experiment in every size."""

    title: str  # what it shows
    parts: Callable[[str], list[ExperimentPart]]  # its trainings, by preset
    trial: Callable[[Mapping[str, Any]], dict[str, Any]]  # as in `Experiment`
    check: Callable[[Mapping[str, Any]], None]  # likewise
