"""All experiments by name, the paper's and those under shift, and how their results are shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from calibayes.errors import InvalidArgumentError
from calibayes.wording import did_you_mean
from reproduction.experiment_results import PartResults
from reproduction.experiments import EXPERIMENTS, Experiment, experiment
from reproduction.figures import draw
from reproduction.printed_tables import summary, table_text
from reproduction.shift.shift_experiments import SHIFTS, shift_experiment
from reproduction.shift.shift_figures import draw_shift
from reproduction.shift.shift_tables import shift_summary, shift_table_text

__all__ = ["Outputs", "find_experiment", "outputs_of"]

_OTHERS = ("cifar10-pretrain", "claims", "followup-claims")


class Outputs(NamedTuple):
    """The functions that show the results of an experiment."""

    table_text: Callable[[Experiment, Sequence[PartResults]], str]  # the tables as they are printed
    summary: Callable[[Sequence[PartResults]], list[dict[str, Any]]]  # the same as numbers
    draw: Callable[[str, Sequence[PartResults], Path], list[str]]  # the figures, which are written into a folder


def find_experiment(name: str, preset: str = "cpu") -> Experiment:
    """An experiment by its name, or an error that suggests the closest one."""
    known = (*EXPERIMENTS, *SHIFTS, *_OTHERS)
    if name not in known:
        hint = did_you_mean(name, known, "")
        raise InvalidArgumentError(
            f"Expected the experiment to be one of {', '.join(known)}, but got {name!r}. {hint}".rstrip()
        )
    return shift_experiment(name, preset) if name in SHIFTS else experiment(name, preset)


def outputs_of(asked: Experiment) -> Outputs:
    """How the results of an experiment are shown."""
    if asked.name in SHIFTS:
        return Outputs(shift_table_text, shift_summary, draw_shift)
    return Outputs(table_text, summary, draw)
