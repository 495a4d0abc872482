"""`calibayes demo`: the four schemes and a mixture side by side, for a first look."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from calibayes.commands.typed import typed

__all__ = ["demo"]


def demo(
    out: Annotated[Path, typer.Option(help="The folder for the picture and the numbers.")] = Path("calibayes-demo"),
    seeds: Annotated[int | None, typer.Option(help="How many times each method is trained.", show_default="3")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A few seconds, one seed, less data: to see what it does, not for its numbers.")
    ] = False,
) -> None:
    """Compare five methods on images of clothes: how often they are right, and how far they can be believed.

    FNN is a plain network and BNN a Bayesian one; CA- stands for calibration-aware. A mixture is four networks, each with a
    distribution over its weights. All are trained alike on Fashion-MNIST, which comes with calibayes, and scored on test images
    that none of them has seen.
    """
    from rich.console import Console

    from calibayes.recipes.compare import Settings
    from calibayes.recipes.compare.demo import run_and_print_demo

    settings = Settings.quick(1 if seeds is None else seeds) if quick else Settings(seeds=3 if seeds is None else seeds)
    console, aside = Console(highlight=False), Console(stderr=True, highlight=False)
    run_and_print_demo(settings, out, console=console, aside=aside, command=typed())
