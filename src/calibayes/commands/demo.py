"""`calibayes demo`: the four schemes and a mixture side by side, for a first look."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from calibayes.commands import data_options as given
from calibayes.commands.data_options import option
from calibayes.terminal import status_console, stdout_console, typed_command

__all__ = ["demo"]


def demo(
    out: Annotated[Path, typer.Option(help="The folder for the figure and the numbers.")] = Path("calibayes-demo"),
    seeds: Annotated[int | None, option("The number of trainings per method, each with its own seed.", "3")] = None,
    quick: given.Quick = False,
) -> None:
    """Compare five methods on images of clothes: their accuracy, and how far their confidence can be trusted.

    FNN is a plain network and BNN a Bayesian one; CA- stands for calibration-aware. A mixture is four networks, each with a
    distribution over its weights. All are trained alike on Fashion-MNIST, which comes with calibayes, and scored on test images
    that none of them has seen.
    """

    from calibayes.recipes.compare import Settings
    from calibayes.recipes.compare.demo_comparison import run_and_print_demo

    settings = Settings.quick(1 if seeds is None else seeds) if quick else Settings(seeds=3 if seeds is None else seeds)
    console, aside = stdout_console(), status_console()
    run_and_print_demo(settings, out, console=console, aside=aside, command=typed_command())
