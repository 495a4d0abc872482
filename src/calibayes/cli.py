"""The command line: `calibayes --help` leads a newcomer."""

from __future__ import annotations

import errno
import json
import os
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import calibayes
from calibayes.commands import data, reproduce, sweep
from calibayes.errors import CalibayesError, InvalidArgumentError

__all__ = ["app"]


class _Commands(TyperGroup):
    """Commands whose errors are one line for the user, not a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was typed."""
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="replace")  # a terminal that has no λ shows a question mark
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except CalibayesError as error:
            typer.echo(f"calibayes: {' '.join(str(error).split())}", err=True)
            raise typer.Exit(2) from None
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
                raise
            where = f" to {error.filename!r}" if error.filename else ""
            typer.echo(f"calibayes: cannot write{where}: {error.strerror}. Make room, and try again.", err=True)
            _forget_output()
            raise typer.Exit(2) from None


def _forget_output() -> None:
    """What could not be written is not tried again when Python ends."""
    with open(os.devnull, "wb") as nothing:  # noqa: PTH123
        os.dup2(nothing.fileno(), sys.stdout.fileno())


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(data.app, name="data")
app.command()(reproduce.reproduce)
app.command()(sweep.sweep)


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

    It needs no download and takes less than two minutes on two cores. Predictions of a model of your own in a file?

        calibayes evaluate predictions.csv
    """


@app.command()
def evaluate(
    files: Annotated[
        list[Path],
        typer.Argument(help="Predictions: .csv, .tsv, .parquet or .npz; several files are compared.", show_default=False),
    ],
    label: Annotated[str | None, typer.Option(help="The column of the true classes.", show_default="found")] = None,
    columns: Annotated[
        str | None,
        typer.Option(help="The columns of the probabilities: a pattern like 'p_*', or names.", show_default="found"),
    ] = None,
    logits: Annotated[
        bool | None, typer.Option("--logits/--probabilities", help="What the columns hold.", show_default="by their names")
    ] = None,
    weights: Annotated[str | None, typer.Option(help="A column that says how much each row counts.")] = None,
    id: Annotated[str | None, typer.Option(help="A column by which the rows of several files are matched.")] = None,
    positive: Annotated[str | None, typer.Option(help="The class that a single column of probabilities is about.")] = None,
    delimiter: Annotated[str | None, typer.Option(help="What separates cells.", show_default="found")] = None,
    bins: Annotated[int, typer.Option(help="The number of bins of confidence.")] = 15,
    level: Annotated[float, typer.Option(help="The level of the intervals.")] = 0.95,
    replicates: Annotated[int, typer.Option(help="How many times the examples are resampled for the intervals.")] = 1000,
    seed: Annotated[int, typer.Option(help="The seed of the resampling.")] = 0,
    target_accuracy: Annotated[float, typer.Option(help="The accuracy that the coverage is reported for.")] = 0.95,
    report: Annotated[Path | None, typer.Option(help="Write a page (HTML) with tables and diagrams to this file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print every number as JSON instead of tables.")] = False,
) -> None:
    """Can the confidence of a classifier be trusted? Learn it from a file of its predictions.

    The file has a column with the true class, and one with the probability of each class (or of one of two). They are
    found by their names (label, p_cat, p_dog, …), or named here. With several files, each holds the predictions of
    another classifier for the same examples, and their differences are shown too.

        calibayes evaluate predictions.csv --report page.html
    """
    from rich.console import Console

    from calibayes.checks import positive_integer, share
    from calibayes.data.predictions import align, read_predictions
    from calibayes.metrics.drawing import MOST_REPLICATES
    from calibayes.metrics.evaluate import MOST_BINS
    from calibayes.report import study, write_page
    from calibayes.report.printed import show

    if report is not None:
        _check_place(report, files)
    positive_integer("--bins", bins, MOST_BINS)
    positive_integer("--replicates", replicates, MOST_REPLICATES)
    share("--level", level)
    share("--target-accuracy", target_accuracy)
    tables = align(
        [
            read_predictions(
                path,
                label=label,
                columns=columns,
                logits=logits,
                weights=weights,
                id=id,
                positive=positive,
                delimiter=delimiter,
            )
            for path in files
        ]
    )
    aside = Console(stderr=True, highlight=False)
    for table in tables:
        aside.print(f"{table.path}: {table.describe()}", markup=False, soft_wrap=True)
    found = study(
        {table.name: table.probs for table in tables},
        tables[0].targets,
        class_names=tables[0].class_names,
        weights=tables[0].weights,
        logits={table.name: table.logits for table in tables if table.logits is not None},
        bins=bins,
        level=level,
        replicates=replicates,
        seed=seed,
        target_accuracy=target_accuracy,
        origin={"command": _typed(), "files": [str(table.path) for table in tables]},
    )
    if report is not None:  # before anything is printed: whoever reads that may stop listening
        write_page(found.to_dict(), report)
    if as_json:
        typer.echo(json.dumps(found.to_dict(), indent=2, ensure_ascii=False))
    else:
        show(found, Console(highlight=False))
    if report is not None:
        aside.print(f"Written: {report}", markup=False, soft_wrap=True)


@app.command()
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
    show(settings, out, console=console, aside=aside, command=_typed(), workers=workers)


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
    show(settings, out, console=console, aside=aside, command=_typed())


def _typed() -> str:
    """The command as it was typed, for the record."""
    return shlex.join(["calibayes", *sys.argv[1:]])


def _numbers(flag: str, text: str) -> tuple[float, ...]:
    """The numbers of a list with commas."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise InvalidArgumentError(
            f"Expected {flag} to be numbers with commas between them, like 1,3,10, but got {text!r}."
        ) from None


def _check_place(path: Path, inputs: list[Path]) -> None:
    """Raise unless a file can be written there: before the work is done, not after; nothing but a file is replaced."""
    try:
        what = ""
        if path.exists() and not path.is_file():
            what = "is not a file"
        elif any(path.exists() and each.exists() and path.samefile(each) for each in inputs):
            what = "holds the predictions that are to be evaluated"
        elif not os.access(path.parent, os.W_OK | os.X_OK):
            what = f"cannot be written: is there a folder {str(path.parent)!r}, and is it yours?"
    except OSError as error:
        what = f"cannot be written: {error.strerror or error}"
    if what:
        raise InvalidArgumentError(f"Expected --report to name a file to write, but {str(path)!r} {what}")
