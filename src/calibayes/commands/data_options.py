"""The options that say what a file of the user's own holds, the same for every command that trains on one."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

__all__ = [
    "TABLE_OPTIONS",
    "Categorical",
    "Config",
    "Data",
    "DateFormat",
    "Decimal",
    "Delimiter",
    "DropRare",
    "Embeddings",
    "Encoding",
    "Header",
    "Ignore",
    "ImageSize",
    "MaxRows",
    "OwnData",
    "Target",
    "Text",
    "typed_in",
]

TABLE_OPTIONS = ("encoding", "delimiter", "decimal", "date_format", "header")
"""The options of every command that reads a table."""

_DATA = "A table (.csv, .tsv, .parquet, .jsonl, .xlsx), or a folder with a subfolder of images or texts for each class."

Data = Annotated[Path, typer.Argument(help=_DATA, show_default=False)]
OwnData = Annotated[Path | None, typer.Argument(help=_DATA, show_default="images that come with calibayes")]
Target = Annotated[str | None, typer.Option(help="The column that holds the classes.", show_default=False)]
Text = Annotated[
    list[str] | None, typer.Option(help="A text column to learn from; may be repeated.", show_default="all columns")
]
Ignore = Annotated[list[str] | None, typer.Option(help="A column to ignore; may be repeated.", show_default=False)]
Categorical = Annotated[
    list[str] | None,
    typer.Option(help="A column of numbers that are categories, like postcodes; may be repeated.", show_default=False),
]
DropRare = Annotated[
    bool | None,
    typer.Option("--drop-rare", help="Drop classes with fewer than three examples.", show_default=False),
]
Encoding = Annotated[str | None, typer.Option(help="The character encoding of text files.", show_default="utf-8")]
Delimiter = Annotated[str | None, typer.Option(help="The character between the cells of a CSV file.", show_default="detected")]
Decimal = Annotated[str | None, typer.Option(help="The decimal mark of numbers: '.' or ','.", show_default=".")]
DateFormat = Annotated[
    str | None, typer.Option(help="The format of dates, like %d.%m.%Y; ISO dates are always recognized.", show_default=False)
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first row holds the names; without it, columns are column1, column2, ….",
        show_default="header",
    ),
]
MaxRows = Annotated[int | None, typer.Option(help="Train on at most this many rows, sampled at random.", show_default="all")]
Embeddings = Annotated[
    str | None,
    typer.Option(
        help="Word vectors: learned, or glove (download them with: calibayes data get glove).", show_default="learned"
    ),
]
ImageSize = Annotated[
    int | None, typer.Option(help="The height and width in pixels to resize images to.", show_default="28 grey, 32 colour")
]

Config = Annotated[
    Path | None,
    typer.Option(help="A TOML file with these settings; options on the command line override it.", show_default=False),
]


def typed_in(ctx: typer.Context, names: Iterable[str]) -> dict[str, Any]:
    """The options among ``names`` that were typed; one that may be repeated and was not is an empty list."""
    return {name: ctx.params[name] for name in names if ctx.params[name] not in (None, (), [])}
