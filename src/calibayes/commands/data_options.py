"""The options of several commands: the columns and the format of a file of the user's, and the folder for results."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

TABLE_OPTIONS = ("encoding", "delimiter", "decimal", "date_format", "header")
"""The options of every command that reads a table."""

_DATA = "A table (.csv, .tsv, .parquet, .jsonl, .xlsx), or a folder with a subfolder of images or texts for each class."


def option(help: str, default: str | bool = False, *names: str) -> Any:
    """Return an option with its help, and the default that the help shows."""
    return typer.Option(*names, help=help, show_default=default)


def argument(help: str, default: str | bool = False) -> Any:
    """Return an argument with its help, and the default that the help shows."""
    return typer.Argument(help=help, show_default=default)


Data = Annotated[Path, argument(_DATA)]
OwnData = Annotated[Path | None, argument(_DATA, "images that come with calibayes")]
Target = Annotated[str | None, option("The column that holds the classes.", "one called label, target, class or the like")]
Text = Annotated[list[str] | None, option("A text column to learn from; may be repeated.", "all columns")]
Ignore = Annotated[list[str] | None, option("A column to ignore; may be repeated.")]
Categorical = Annotated[list[str] | None, option("A column of numbers that are categories, like postcodes; may be repeated.")]
DropRare = Annotated[bool | None, option("Drop classes with fewer than three examples.", False, "--drop-rare")]
Encoding = Annotated[str | None, option("The character encoding of text files.", "utf-8")]
Delimiter = Annotated[str | None, option("The character between the cells of a CSV file.", "detected")]
Decimal = Annotated[str | None, option("The decimal mark of numbers: '.' or ','.", ".")]
DateFormat = Annotated[str | None, option("The format of dates, like %d.%m.%Y; ISO dates are always recognized.")]
Header = Annotated[
    bool | None,
    option(
        "Whether the first row holds the names; without it, columns are column1, column2, ….", "header", "--header/--no-header"
    ),
]
MaxRows = Annotated[int | None, option("Train on at most this many rows, sampled at random.", "all")]
Embeddings = Annotated[
    str | None, option("Word vectors: learned, or glove (download them with: calibayes data get glove).", "learned")
]
ImageSize = Annotated[int | None, option("The height and width in pixels to resize images to.", "28 grey, 32 colour")]

Quick = Annotated[
    bool, typer.Option("--quick", help="Train for a few seconds on little data, to see what the output looks like.")
]
ResultsFolder = Annotated[
    Path, typer.Option(help="The folder for results; run the command again with the same folder to continue.")
]
Config = Annotated[Path | None, option("A TOML file with these settings; options on the command line override it.")]


def typed_in(ctx: typer.Context, names: Iterable[str]) -> dict[str, Any]:
    """Return the options among ``names`` that were typed; one that may be repeated and was not is an empty list."""
    return {name: ctx.params[name] for name in names if ctx.params[name] not in (None, (), [])}
