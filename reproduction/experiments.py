"""All experiments by name, the paper's and those beyond it, and how their results are shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from calibayes.errors import InvalidArgumentError
from calibayes.wording import did_you_mean
from reproduction.experiment import Definition, Experiment, check_preset
from reproduction.experiment_results import PartResults
from reproduction.figures import draw
from reproduction.followup_experiments import FOLLOWUP
from reproduction.membership_experiments import MEMBERSHIP
from reproduction.paper_experiments import PAPER
from reproduction.printed_tables import summary, table_text
from reproduction.shift.shift_experiments import SHIFTS
from reproduction.shift.shift_figures import draw_shift
from reproduction.shift.shift_tables import shift_summary, shift_table_text

__all__ = ["EXPERIMENTS", "Outputs", "experiment", "outputs_of"]

EXPERIMENTS: dict[str, Definition] = {**PAPER, **FOLLOWUP, **MEMBERSHIP, **SHIFTS}
_OTHERS = ("cifar10-pretrain", "claims", "followup-claims")


class Outputs(NamedTuple):
    """The functions that show the results of an experiment."""

    table_text: Callable[[Experiment, Sequence[PartResults]], str]  # the tables as they are printed
    summary: Callable[[Sequence[PartResults]], list[dict[str, Any]]]  # the same as numbers
    draw: Callable[[str, Sequence[PartResults], Path], list[str]]  # the figures, which are written into a folder


def experiment(name: str, preset: str = "cpu") -> Experiment:
    """An experiment by its name, or an error that suggests the closest one."""
    if name not in EXPERIMENTS:
        known = (*EXPERIMENTS, *_OTHERS)
        hint = did_you_mean(name, known, "")
        raise InvalidArgumentError(
            f"Expected the experiment to be one of {', '.join(known)}, but got {name!r}. {hint}".rstrip()
        )
    known_as = EXPERIMENTS[name]
    parts = tuple(known_as.parts(check_preset(preset)))
    return Experiment(name, known_as.title, preset, known_as.trial, known_as.check, parts)


def outputs_of(asked: Experiment) -> Outputs:
    """How the results of an experiment are shown."""
    if asked.name in SHIFTS:
        return Outputs(shift_table_text, shift_summary, draw_shift)
    return Outputs(table_text, summary, draw)
