"""`calibayes compare`: which scheme should I use?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from calibayes.commands.typed import typed
from calibayes.errors import InvalidArgumentError

__all__ = ["compare"]


def compare(
    out: Annotated[Path, typer.Option(help="The folder for results; started again with it, it goes on.")] = Path(
        "calibayes-compare"
    ),
    seeds: Annotated[int | None, typer.Option(help="How many times each scheme is trained.", show_default="8")] = None,
    epochs: Annotated[int | None, typer.Option(help="Passes over the training examples.", show_default="12")] = None,
    lams: Annotated[str | None, typer.Option(help="Values of λ to choose from.", show_default="1,3,10,30")] = None,
    betas: Annotated[str | None, typer.Option(help="Values of β to choose from.", show_default="0.01,0.03,0.1,0.3")] = None,
    workers: Annotated[int | None, typer.Option(help="Trainings at a time.", show_default="one per core, at most 4")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A few seconds, one seed, less data: to see what it does, not for its numbers.")
    ] = False,
) -> None:
    """Which scheme should I use, by how much is it better, and how sure are we?

    Trains FNN, BNN, CA-FNN and CA-BNN over several seeds, plain and temperature-scaled, on images of clothes that come
    with calibayes (about ten minutes on two cores). λ, β and temperatures are chosen on validation images; test
    images decide nothing but the answer. Differences have intervals for the chance of the test images and of the seeds.
    """
    from rich.console import Console

    from calibayes.recipes.compare import Settings
    from calibayes.recipes.compare.show import show

    settings = Settings.quick(1 if seeds is None else seeds) if quick else Settings.thorough(8 if seeds is None else seeds)
    settings = replace(
        settings,
        epochs=settings.epochs if epochs is None else epochs,
        lams=settings.lams if lams is None else _numbers("--lams", lams),
        betas=settings.betas if betas is None else _numbers("--betas", betas),
    )

    console, aside = Console(highlight=False), Console(stderr=True, highlight=False)
    show(settings, out, console=console, aside=aside, command=typed(), workers=workers)


def _numbers(flag: str, text: str) -> tuple[float, ...]:
    """The numbers of a list with commas."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise InvalidArgumentError(
            f"Expected {flag} to be numbers with commas between them, like 1,3,10, but got {text!r}."
        ) from None
