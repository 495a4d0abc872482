"""The command line: `calibayes --help` leads a newcomer."""

from __future__ import annotations

import errno
import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import calibayes
from calibayes.commands import compare, data, demo, evaluate, export, methods, predict, reproduce, serve, sweep, train
from calibayes.errors import CalibayesError
from calibayes.terminal import EXIT_INVALID_INPUT, print_error

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
            print_error(error)
            raise typer.Exit(EXIT_INVALID_INPUT) from None
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG):
                raise
            where = f" to {error.filename!r}" if error.filename else ""
            hint = "Raise the limit on the size of files (ulimit -f)" if error.errno == errno.EFBIG else "Free some space"
            print_error(f"cannot write{where}: {error.strerror}. {hint}, and try again.")
            _forget_output()
            raise typer.Exit(EXIT_INVALID_INPUT) from None


def _forget_output() -> None:
    """Discard the output that could not be written, so that Python does not try again when it ends."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_WITH_METHODS = (train.train, compare.compare, sweep.sweep)
for command in (
    demo.demo,
    train.train,
    predict.predict,
    serve.serve,
    evaluate.evaluate,
    compare.compare,
    export.export,
    sweep.sweep,
    methods.methods,
    reproduce.reproduce,
):
    app.command(cls=methods.CommandWithMethods if command in _WITH_METHODS else None)(command)
app.add_typer(data.app, name="data")


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"calibayes {calibayes.__version__}")
        raise typer.Exit


@app.callback(epilog="To use your own network instead, see the README.")
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Train classifiers whose confidence can be trusted, and measure how far it can be.

    New here? Type

        calibayes demo

    It needs no download and takes less than two minutes on two cores. A table of your own, with a column of classes?

        calibayes train data.csv --target label

    Predictions of a model of your own in a file?

        calibayes evaluate predictions.csv
    """
