"""The command line: `calibayes --help` leads a newcomer."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import calibayes
from calibayes.errors import CalibayesError

__all__ = ["app"]


class _Commands(TyperGroup):
    """Commands whose errors are one line for the user, not a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was typed."""
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="replace")  # a terminal that has no λ shows a question mark
        try:
            return super().invoke(ctx)
        except CalibayesError as error:
            typer.echo(f"calibayes: {' '.join(str(error).split())}", err=True)
            raise typer.Exit(2) from None


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"calibayes {calibayes.__version__}")
        raise typer.Exit


@app.callback(epilog="Then put your own network in its place: the README shows it in ten lines.")
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and stop.")
    ] = False,
) -> None:
    """Train classifiers whose confidence can be trusted, and see how far it can be.

    New here? Type

        calibayes demo

    It needs no download and takes less than two minutes on two cores.
    """


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="The folder for the picture and the numbers.")] = Path("calibayes-demo"),
    seeds: Annotated[int | None, typer.Option(help="How many times each scheme is trained.", show_default="3")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A few seconds, one seed, less data: to see what it does, not for its numbers.")
    ] = False,
) -> None:
    """Compare the four schemes on images of clothes: how often they are right, and how far they can be believed.

    FNN is a plain network and BNN a Bayesian one; CA- stands for calibration-aware. All four are trained alike on
    Fashion-MNIST, which comes with calibayes, and scored on test images that none of them has seen.
    """
    from rich.console import Console

    from calibayes.recipes.demo import Settings
    from calibayes.recipes.demo.show import show

    settings = Settings.quick(1 if seeds is None else seeds) if quick else Settings(seeds=3 if seeds is None else seeds)
    console, aside = Console(highlight=False), Console(stderr=True, highlight=False)
    show(settings, out, console=console, aside=aside, command=shlex.join(["calibayes", *sys.argv[1:]]))
