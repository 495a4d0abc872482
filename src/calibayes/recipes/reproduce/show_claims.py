"""The table of the paper's claims, from the records of all experiments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from calibayes.errors import InvalidArgumentError
from calibayes.recipes.reproduce.claims import Claim, claims
from calibayes.recipes.reproduce.experiments import experiment
from calibayes.recipes.reproduce.found import FoundPart
from calibayes.recipes.reproduce.show import recorded
from calibayes.sweeps.results_folder import write_whole
from calibayes.terminal import as_text

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["claims_text", "recorded_claims", "show_claims"]

_WIDTH = 120
_ABOUT = (
    "Differences are in points (hundredths), paired by seed, of scores averaged over the last quarter of the epochs, with 95 % "
    "intervals over seeds (Student's t, Bonferroni within a claim). They speak of other trainings on the same data. Clearly: "
    "the interval leaves the bound out."
)


def show_claims(folder: Path, preset: str, *, console: Console) -> list[Claim]:
    """Print every claim with our numbers and the verdict, and write them down.

    Args:
        folder: that of the experiments.
        preset: their size.
        console: where to print.
    """
    found = recorded_claims(folder, preset)
    if not found:
        raise InvalidArgumentError(
            f"Expected results of experiments in {str(folder)!r}, but there are none of preset {preset}."
        )
    printed = claims_text(found)
    write_whole(folder / "claims.txt", printed.encode())
    numbers = {"preset": preset, "claims": [claim.to_dict() for claim in found]}
    write_whole(folder / "claims.json", (json.dumps(numbers, indent=1, ensure_ascii=False) + "\n").encode())
    console.out(printed, end="", highlight=False)  # last: whoever reads it may stop listening
    return found


def recorded_claims(folder: Path, preset: str) -> list[Claim]:
    """What the records in a folder say of the claims."""
    names = ("newsgroups-epochs", "newsgroups-lambda", "newsgroups-variations")
    texts = [part for name in names for part in _parts(name, folder, preset)]
    return claims(texts, _parts("cifar10-reliability", folder, preset))


def _parts(name: str, folder: Path, preset: str) -> list[FoundPart]:
    asked = experiment(name, preset)
    return recorded(asked, folder) if (folder / asked.data).is_dir() else []


def claims_text(found: list[Claim]) -> str:
    """The table of claims as it is printed."""
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("The paper's claim", ratio=4, overflow="fold")
    table.add_column("here", ratio=4, overflow="fold")
    table.add_column("", no_wrap=True)
    for claim in found:
        table.add_row(Text(claim.text), Text("\n".join(map(str, claim.gaps))), claim.verdict)
    return as_text(Group(table, _ABOUT), _WIDTH)
